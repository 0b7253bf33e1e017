/**
 * Says when two calls are the same: one name, and arguments whose canonical JSON (RFC 8785) is equal.
 *
 * @since 0.1.0
 */
import canonicalize from "canonicalize"
import * as Hash from "effect/Hash"

/** UTF-16 units of what is kept of a call; of more, its beginning, its length and a hash stand for it. */
const maxKept = 1000

/** The identity of JSON, bounded. Equal data has equal identities, whatever the order of its keys. */
export const ofJson = (json: unknown): string => {
  const text = canonical(json)
  return text.length <= maxKept ? text : `${text.slice(0, maxKept)}…${text.length}:${Hash.string(text)}`
}

/** The identity of a call whose cosmetic arguments do not count. */
export const ofCall = (name: string, args: unknown, cosmetic: ReadonlyArray<string>): string => {
  const read = parsed(args)
  if (cosmetic.length === 0 || !isObject(read)) return `${name}(${ofJson(read)})`
  return `${name}(${ofJson(Object.fromEntries(Object.entries(read).filter(([key]) => !cosmetic.includes(key))))})`
}

/** What canonical JSON has no word for (a lone surrogate) is the same where its plain JSON is. */
const canonical = (json: unknown): string => {
  try {
    return canonicalize(json) ?? "null"
  } catch {
    return JSON.stringify(json) ?? "null"
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Some adapters hand arguments over as text; core reads them in the same way (RI-104). */
const parsed = (args: unknown): unknown => {
  if (typeof args !== "string") return args
  try {
    const value: unknown = JSON.parse(args)
    return typeof value === "object" && value !== null ? value : args
  } catch {
    return args
  }
}
