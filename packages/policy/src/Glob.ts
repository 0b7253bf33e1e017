/**
 * Says which globs a policy may hold: those that can match a real path, and that are compiled whole.
 *
 * @since 0.1.0
 */
import { Minimatch, type MinimatchOptions } from "minimatch"

/** More alternatives than a person has looked through; minimatch would leave out the rest without a word. */
const maxAlternatives = 100

/** Characters. No path that a rule is about is as long. */
const maxLength = 1000

const options: MinimatchOptions = {
  dot: true,
  nocomment: true,
  noext: true,
  nonegate: true,
  platform: "linux",
  braceExpandMax: maxAlternatives + 1
}

/** Compiled; without regard to capitals if that is asked for. */
export const compile = (glob: string, nocase: boolean): Minimatch => new Minimatch(glob, { ...options, nocase })

/** What is wrong with a glob; undefined if nothing is. A glob that matches nothing would make its rule vanish. */
export const objection = (glob: string): string | undefined => {
  if (glob.length > maxLength) return `is longer than ${maxLength} characters`
  const { globSet } = compile(glob, false)
  if (globSet.length > maxAlternatives) return `has more than ${maxAlternatives} alternatives in its braces`
  return first(globSet, placeless)
}

/** What is wrong with the name of a folder. `.` and `..` are looked up as the file system does. */
export const folderObjection = (folder: string): string | undefined =>
  folder.includes("\0") ? "holds a NUL" : folder === "~" || folder.startsWith("~/") ? home : undefined

const home = "begins with ~, which only a shell knows: write the whole path"

/** Real paths have no such parts, so nothing would ever match. */
const placeless = (glob: string): string | undefined => {
  if (glob === "~" || glob.startsWith("~/")) return home
  if (glob.endsWith("/")) return "ends with /: write x and x/** for a folder and what is in it"
  const parts = glob.split("/")
  if (parts.slice(1).includes("")) return "has an empty part between two /"
  return parts.some((part) => part === "." || part === "..")
    ? "has a part . or ..: globs are about real paths, relative to the root without ./, or absolute"
    : undefined
}

const first = (all: ReadonlyArray<string>, check: (one: string) => string | undefined): string | undefined => {
  for (const one of all) {
    const found = check(one)
    if (found !== undefined) return found
  }
  return undefined
}
