/**
 * Compiles a glob that a model wrote into a test of paths that cannot hang the process.
 *
 * `minimatch` was chosen because it stays linear: picomatch takes 35 s for `*a*a*a*a*a*a*b` on 120 characters.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { Minimatch } from "minimatch"
import { BadPattern } from "./FileError.ts"

/** Longer ones are no globs that somebody wants; the time for one path grows with the length. In UTF-16 units. */
export const maxLength = 200
/** Each combination of braces is a pattern of its own. */
const maxBraces = 100

/** A test of paths relative to the folder. A glob without a slash is about the name of a file in any folder. */
export const compile = (glob: string): Effect.Effect<(path: string) => boolean, BadPattern> => {
  const bad = (message: string) => new BadPattern({ pattern: glob.slice(0, maxLength), message })
  if (glob.length > maxLength) return Effect.fail(bad(`the glob is longer than ${maxLength} characters`))
  if (glob.trim() === "") return Effect.fail(bad("the glob is empty"))
  return Effect.try({
    try: () => {
      const compiled = new Minimatch(glob.replaceAll("\\", "/").replace(/^(\.?\/)+/, ""), {
        braceExpandMax: maxBraces,
        dot: true,
        matchBase: true,
        nocomment: true,
        noext: true,
        nonegate: true,
        platform: "linux"
      })
      return { compiled, wrong: compiled.globSet.map(fault).find((one) => one !== undefined) }
    },
    catch: () => bad("this is no glob: use *, **, ?, [abc] and {a,b}")
  }).pipe(
    Effect.flatMap(({ compiled, wrong }) =>
      wrong === undefined ? Effect.succeed((path: string) => compiled.match(path)) : Effect.fail(bad(wrong))
    )
  )
}

/** What would be taken literally, and then match nothing without a word, in a glob whose braces are expanded. */
const fault = (glob: string): string | undefined => {
  let depth = 0
  for (let index = 0; index < glob.length; index++) {
    const letter = glob.charAt(index)
    if (letter === "{") depth++
    if (letter === "}" && depth > 0) depth--
    if (letter !== "[") continue
    // One that comes first is one of the characters.
    const first = index + (/[!^]/.test(glob.charAt(index + 1)) ? 2 : 1)
    const end = glob.indexOf("]", first + 1)
    if (end === -1) return `the [ at character ${index + 1} has no ]`
    if (hasBackwardRange(glob.slice(first, end))) return `the range at character ${first + 1} goes backwards`
    index = end
  }
  return depth > 0 ? "a { has no }" : undefined
}

const hasBackwardRange = (characters: string): boolean =>
  [...characters.matchAll(/([^-])-(?=([^-]))/gu)].some(([, from = "", to = ""]) => from > to)
