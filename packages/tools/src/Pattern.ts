/**
 * Compiles a regular expression that a model wrote into a search that takes linear time.
 *
 * `re2js` speaks RE2's syntax: no back references, no look-around, and no pattern that takes for ever.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { RE2JS, RE2JSException } from "re2js"
import { BadPattern } from "./FileError.ts"

/** In UTF-16 units. */
export const maxLength = 1_000
/** The time for a line is some 20 to 150 ns (measured) times its length times the size, which `Search` reckons with. */
const maxSize = 1_000

export interface Pattern {
  /** Where in a line it first matches; -1 if nowhere. */
  readonly find: (line: string) => number
  /** Instructions of the compiled pattern; one of a large class of characters, such as `\pL`, counts as up to four. */
  readonly size: number
}

export const compile = (
  pattern: string,
  { ignoreCase }: { readonly ignoreCase: boolean }
): Effect.Effect<Pattern, BadPattern> => {
  const bad = (message: string) => new BadPattern({ pattern: pattern.slice(0, maxLength), message })
  if (pattern.length > maxLength) return Effect.fail(bad(`the pattern is longer than ${maxLength} characters`))
  return Effect.try({
    try: () => RE2JS.compile(pattern, ignoreCase ? RE2JS.CASE_INSENSITIVE : 0),
    catch: (error) => bad(error instanceof RE2JSException ? said(error.message, pattern) : "this is no RE2 pattern")
  }).pipe(
    Effect.flatMap((compiled) => {
      const size = sizeOf(compiled)
      return size > maxSize
        ? Effect.fail(bad("the pattern is too large: repeat less, or search for a part of it"))
        : Effect.succeed({ find: finder(compiled), size })
    })
  )
}

/** A character is looked for in the ranges of its instruction by halves. */
const sizeOf = (compiled: RE2JS): number => {
  // The library's types say `any`; its version is fixed.
  const instructions: ReadonlyArray<{ readonly runes?: ReadonlyArray<number> }> = compiled.re2().prog.inst
  return instructions.reduce((sum, { runes = [] }) => {
    const halvings = Math.log2(Math.max(1, runes.length / 2))
    return sum + 1 + Math.floor(halvings / 3)
  }, 0)
}

/** Most lines do not match, and `test` is three times as fast as a matcher. */
const finder =
  (compiled: RE2JS) =>
  (line: string): number => {
    if (!compiled.test(line)) return -1
    const matcher = compiled.matcher(line)
    return matcher.find() ? matcher.start() : -1
  }

/** The library quotes the part that it does not take; say where that stands too. */
const said = (message: string, pattern: string): string => {
  const quoted = /: `([^]*)`$/.exec(message)?.[1] ?? ""
  const at = quoted === "" ? -1 : pattern.indexOf(quoted)
  const where = at === -1 || quoted === pattern ? "" : ` at character ${at + 1}`
  return `${message.replace(/^error parsing regexp: /, "")}${where}; RE2 syntax, without look-around and back references`
}
