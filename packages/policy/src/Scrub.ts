/**
 * Takes secrets out of JSON: known shapes, named fields, patterns and values of the user's.
 *
 * Invariants
 *   C1  No pattern can hang it: patterns of the user's are RE2's, the rest is bounded.
 *   C2  Keys are looked at like values, since some tools make maps by secret.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { RE2JS } from "re2js"
import * as Secrets from "./Secrets.ts"
import { OptionsInvalid } from "./OptionsInvalid.ts"

export interface Settings {
  readonly shapes: boolean
  readonly fields: ReadonlyArray<string>
  readonly patterns: ReadonlyArray<string>
  readonly values: ReadonlyArray<Redacted.Redacted<string>>
}

export interface Scrub {
  readonly text: (text: string) => string
  /** Any value: strings in plain objects and arrays are changed, everything else stays as it is. */
  readonly json: (value: unknown) => unknown
}

/** Strings, and whatever else there is, in objects and arrays. */
export type Walked<A> = string | A | ReadonlyArray<Walked<A>> | { readonly [key: string]: Walked<A> }

/** What the package has beside what it shows to others. */
export interface Walking extends Scrub {
  /** As `json`; `other` says what becomes of what is no text, no array and no plain object, or throws. */
  readonly walk: <A>(value: unknown, other: (value: unknown) => A) => Walked<A>
}

/** Compiles the settings; a pattern that is none, or matches nothing at all, is refused by its place. */
export const make = Effect.fnUntraced(function* ({
  fields,
  patterns,
  shapes,
  values
}: Settings): Effect.fn.Return<Walking, OptionsInvalid> {
  const compiled = yield* Effect.forEach(patterns, compile)
  const known = values.flatMap((value) => forms(Redacted.value(value)))
  const numbers = new Set(known)
  const names = new Set(fields.map(plain))
  const plainly = (text: string): string => {
    let next = text
    for (const value of known) next = next.replaceAll(value, Secrets.mark("value"))
    for (const pattern of compiled) {
      if (pattern.test(next)) next = pattern.matcher(next).replaceAll(Secrets.mark("pattern"))
    }
    return shapes ? Secrets.redactShapes(next) : next
  }
  const text = (input: string): string => {
    const json = mayBeJson(input) ? fromJson(input) : undefined
    const next = json === undefined ? input : inJson(input, json)
    return Secrets.redactEncoded(plainly(next), plainly)
  }
  /** A look is cheap, and says no to nearly all texts. */
  const mayBeJson = (input: string): boolean => names.size > 0 && /^\s{0,100}[{[]/.test(input)
  /** Written anew only where a named field was hidden. */
  const inJson = (input: string, json: unknown): string => {
    const indent = /^\s*[{[]\s*\n( *)/.exec(input)?.[1]
    const next = JSON.stringify(named(json), null, indent)
    return next === JSON.stringify(json, null, indent) ? input : next
  }
  const named = (json: unknown): unknown => {
    if (Array.isArray(json)) return json.map(named)
    if (!isPlain(json)) return json
    return Object.fromEntries(
      Object.entries(json).map(([key, part]) => [key, isNamed(key) ? hidden(part, (other) => other) : named(part)])
    )
  }
  const isNamed = (key: string): boolean => names.has(plain(key)) || endings(key).some((ending) => names.has(ending))
  const walk = <A>(value: unknown, other: (value: unknown) => A): Walked<A> => {
    if (typeof value === "string") return text(value)
    if (typeof value === "number" && numbers.has(String(value))) return Secrets.mark("value")
    if (Array.isArray(value)) return value.map((part) => walk(part, other))
    if (!isPlain(value)) return other(value)
    const shown = unique(Object.keys(value).map(text))
    return Object.fromEntries(
      Object.entries(value).map(([key, part], i) => [
        shown[i] ?? key,
        isNamed(key) ? hidden(part, other) : walk(part, other)
      ])
    )
  }
  return { text, walk, json: (value) => walk(value, (other) => other) }
})

/** UTF-16 units of a pattern. */
const maxPattern = 1000

const compile = (pattern: string, index: number): Effect.Effect<RE2JS, OptionsInvalid> => {
  const invalid = (detail: string) => new OptionsInvalid({ policy: "Sanitizer", field: `patterns[${index}]`, detail })
  if (pattern.length > maxPattern) return Effect.fail(invalid(`it is longer than ${maxPattern} characters`))
  return Effect.try({
    try: () => RE2JS.compile(pattern),
    catch: () => invalid("it is no pattern of RE2, which has no look-around and no back references")
  }).pipe(
    Effect.flatMap((compiled) =>
      compiled.test("") ? Effect.fail(invalid("it matches the empty text")) : Effect.succeed(compiled)
    )
  )
}

/** A value as it stands in text, in JSON and in an address, which has no characters outside of the BMP here. */
const forms = (value: string): ReadonlyArray<string> => [
  ...new Set([value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value.replaceAll(/[\uD800-\uDFFF]/g, ""))])
]

/** `API_KEY`, `api-key` and `apiKey` are one name. */
const plain = (name: string): string => name.replaceAll(/[-_ ]/g, "").toLowerCase()

/** What a name ends with: `DB_PASSWORD` is a password, `X-Api-Key` and `openaiApiKey` are API keys. */
const endings = (name: string): ReadonlyArray<string> => {
  const words = name
    .replaceAll(/([a-z\d])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[-_. ]+/)
  return words.slice(1).map((_, index) => words.slice(index + 1).join(""))
}

const fromJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // it only begins like JSON
  }
}

/** Two keys that hid a secret each stay two. */
const unique = (keys: ReadonlyArray<string>): ReadonlyArray<string> =>
  keys.map((key, i) => {
    const before = keys.slice(0, i).filter((other) => other === key).length
    return before === 0 ? key : `${key} ${before + 1}`
  })

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" &&
  value !== null &&
  (Object.getPrototypeOf(value) === Object.prototype || Object.getPrototypeOf(value) === null)

/** Everything in a field that is named. What says nothing (true, null, an empty text) stays. */
const hidden = <A>(value: unknown, other: (value: unknown) => A): Walked<A> => {
  if (typeof value === "number") return Secrets.mark("field")
  if (typeof value === "string") return value === "" ? value : Secrets.mark("field")
  if (Array.isArray(value)) return value.map((part) => hidden(part, other))
  return isPlain(value)
    ? Object.fromEntries(Object.entries(value).map(([key, part]) => [key, hidden(part, other)]))
    : other(value)
}
