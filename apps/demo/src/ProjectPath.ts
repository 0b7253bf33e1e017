/**
 * Reads what a path inside a project says from its text alone.
 */

/** True for a file that a test runner takes for a test, or that lies among them. */
export const isTest = (path: string): boolean =>
  /(^|\/)(tests?|__tests__)\//.test(path) || /(^|[./_-])(test|spec)\.[cm]?[jt]sx?$/.test(path)

/** The file of the project that `specifier`, imported by the file `from`, names; undefined if there is none. */
export const imported = (from: string, specifier: string, files: ReadonlyArray<string>): string | undefined => {
  if (!specifier.startsWith(".")) return undefined
  const parts = from.split("/").slice(0, -1)
  for (const part of specifier.split("/")) {
    if (part === "..") {
      if (parts.pop() === undefined) return undefined
    } else if (part !== "." && part !== "") parts.push(part)
  }
  const path = parts.join("/")
  return endings.map((ending) => (path + ending).replace(/^\//, "")).find((candidate) => files.includes(candidate))
}

/** As it stands, or as `require` and bundlers complete it. */
const endings = ["", ".js", ".cjs", ".mjs", ".ts", "/index.js", "/index.cjs", "/index.mjs", "/index.ts"]
