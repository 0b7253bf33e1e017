/**
 * Finds the first place where two JSON values differ, in words that fit on a screen.
 *
 * @since 0.1.0
 */
import type { Json } from "effect/Schema"
import * as Text from "../Text.ts"

export interface Difference {
  /** Such as `$.messages[2].content[0].text`. */
  readonly path: string
  /** JSON, in at most 200 UTF-16 units around the place where it differs; `nothing` where there is none. */
  readonly expected: string
  readonly actual: string
}

/** UTF-16 units that are shown of a value: enough to see what it is, not a dump. */
const shown = 200
/** How many of them come before the place where two texts part. */
const before = 60

/** Undefined if both are the same; the order of keys does not matter. */
export const first = (expected: Json | undefined, actual: Json | undefined, path = "$"): Difference | undefined => {
  if (Object.is(expected, actual)) return undefined
  if (Array.isArray(expected) && Array.isArray(actual)) {
    for (let i = 0; i < Math.max(expected.length, actual.length); i++) {
      const found = first(expected[i], actual[i], `${path}[${i}]`)
      if (found !== undefined) return found
    }
    return undefined
  }
  if (isRecord(expected) && isRecord(actual)) {
    for (const key of new Set([...Object.keys(expected), ...Object.keys(actual)])) {
      const found = first(own(expected, key), own(actual, key), `${path}${step(key)}`)
      if (found !== undefined) return found
    }
    return undefined
  }
  const [a, b] = [print(expected), print(actual)]
  return { path, expected: around(a, b), actual: around(b, a) }
}

type JsonRecord = { readonly [key: string]: Json }

const isRecord = (value: Json | undefined): value is JsonRecord =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const own = (record: JsonRecord, key: string): Json | undefined =>
  Object.hasOwn(record, key) ? record[key] : undefined

/** A step of a path into an object. */
export const step = (key: string): string => (/^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`)

const print = (value: Json | undefined): string => (value === undefined ? "nothing" : JSON.stringify(value))

/** The part of `text` around the place where it parts from `other`. */
const around = (text: string, other: string): string => {
  let same = 0
  while (same < text.length && text[same] === other[same]) same++
  const start = Math.max(0, Math.min(same - before, text.length - shown))
  const end = start + shown
  return `${start > 0 ? "…" : ""}${Text.wellFormed(text.slice(start, end))}${end < text.length ? "…" : ""}`
}
