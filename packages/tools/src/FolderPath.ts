/**
 * Decides from its text alone which file of a folder a path names.
 *
 * A path is relative to the folder, or absolute and inside of it; `/` and `\` are separators on every system. What lies
 * at that place, and where links lead, is for `RealPath` and `Held`.
 *
 * Invariants
 *   P1  The parts hold no separator, no NUL, no half character, no "." and no "..": joined to the folder they cannot leave it.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"

/** Longer paths are no names of source files; the system's own limit is 4,096 bytes or less. In UTF-16 units. */
export const maxLength = 1_000
/** A handle is held for each folder on the way. */
export const maxDepth = 64

/** Where the folder lies. */
export interface Place {
  /** Absolute paths of the folder: its real one, and the one that it was given by. */
  readonly roots: ReadonlyArray<string>
  readonly windows: boolean
}

/** The parts of a path inside of the folder (none for the folder itself), or why it is refused. */
export const parse = (path: string, place: Place): Result.Result<ReadonlyArray<string>, string> => {
  if (path.trim() === "") return Result.fail("the path is empty")
  if (path.includes("\0")) return Result.fail("the path contains a NUL character")
  // The system gets U+FFFD for half a character, so that two paths would name one file.
  if (/\p{Surrogate}/u.test(path)) return Result.fail("the path contains half a character (a lone surrogate)")
  const asked = partsOf(path)
  const roots = place.roots.map(partsOf)
  if (path.length > maxLength || asked.length > maxDepth) return Result.fail("the path is too long")
  if (/^[\\/]{2}/.test(path)) return Result.fail("the path names a network share")
  if (!isAbsolute(path, place)) return inside(asked, place)
  for (const root of roots) {
    if (root.every((part, index) => same(part, asked[index], place))) return inside(asked.slice(root.length), place)
  }
  return Result.fail("the path is absolute and not in the folder; use one relative to it")
}

const partsOf = (path: string): ReadonlyArray<string> =>
  path.split(/[\\/]/).filter((part) => part !== "" && part !== ".")

/** A drive is refused where there are none too: `C:\x` was never meant as a name. */
const isAbsolute = (path: string, { windows }: Place): boolean =>
  /^[\\/]/.test(path) || (windows ? /^[A-Za-z]:/ : /^[A-Za-z]:[\\/]/).test(path)

const same = (part: string, other: string | undefined, { windows }: Place): boolean =>
  part === other || (windows && part.toLowerCase() === other?.toLowerCase())

const inside = (asked: ReadonlyArray<string>, { windows }: Place): Result.Result<ReadonlyArray<string>, string> => {
  const parts: Array<string> = []
  for (const part of asked) {
    if (part !== "..") parts.push(part)
    else if (parts.pop() === undefined) return Result.fail("the path leads out of the folder with '..'")
  }
  // There `name:stream` is another file, and a name is cut at its trailing dots and spaces.
  const odd = windows && parts.some((part) => part.includes(":") || /[. ]$/.test(part))
  return odd ? Result.fail("the path contains a name that Windows reads as another one") : Result.succeed(parts)
}
