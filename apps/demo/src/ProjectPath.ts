/**
 * Decides from its text alone whether a path can lie in the project folder. What it points to is checked by `Workspace`.
 */

/** Why a path is refused, or undefined. Both kinds of separators count on every system. */
export const refusal = (path: string): string | undefined => {
  if (path.trim() === "") return "the path is empty"
  if (path.includes("\0")) return "the path contains a NUL character"
  if (/^[\\/]|^[A-Za-z]:/.test(path)) return "the path is absolute; paths are relative to the project folder"
  if (path.split(/[\\/]/).includes("..")) return "the path contains '..'"
  return undefined
}

/** True for a file that Node's test runner takes for a test. */
export const isTest = (path: string): boolean => /(^|\/)test\//.test(path) || /(^|[./_-])test\.[cm]?js$/.test(path)

/** What `specifier`, imported by the file `from`, names; undefined for packages and what lies outside of the project. */
export const imported = (from: string, specifier: string): string | undefined => {
  if (!specifier.startsWith(".")) return undefined
  const parts = from.split("/").slice(0, -1)
  for (const part of specifier.split("/")) {
    if (part === "..") {
      if (parts.pop() === undefined) return undefined
    } else if (part !== ".") parts.push(part)
  }
  return parts.join("/")
}
