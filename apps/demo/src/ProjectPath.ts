/**
 * Reads what a path inside a project says from its text alone.
 */

/** True for a file that a test runner takes for a test, or that lies among them. */
export const isTest = (path: string): boolean =>
  /(^|\/)(tests?|__tests__)\//.test(path) || /(^|[./_-])(test|spec)\.[cm]?[jt]sx?$/.test(path)

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
