/**
 * Takes secrets out of JSON before it is written down. What it has redacted stays as it is when it is redacted again.
 *
 * @since 0.1.0
 */
import type { Json } from "effect/Schema"
import * as Text from "../Text.ts"

/** Names of fields whose text is a secret whatever it looks like. */
const secretName =
  /^(?:x-)?(?:proxy-)?(?:authorization|api[-_]?key|(?:access|auth|refresh|session|id|bearer)[-_]?token|token|secret|client[-_]?secret|password|passwd|cookie|set-cookie|private[-_]?key|credentials?)$/i

/** Keys of providers that carry no separator that Text's shapes look for: Google's, and AWS's. */
const shapes = /\b(?:AIza[\w-]{30,}|(?:AKIA|ASIA)[A-Z0-9]{16}|glpat-[\w-]{16,}|hf_\w{16,}|npm_\w{16,}|gsk_\w{16,})/g

/** Removes known shapes of keys and tokens, and what a caller's own function removes. */
export type Redact = (text: string) => string

const known: Redact = (text) => Text.secretless(text).replace(shapes, "[redacted]")

/** Every text of the value redacted, keys of objects included, and fields named like secrets emptied. */
export const make = (redact: Redact = (text) => text): ((json: Json) => Json) => {
  const text: Redact = (value) => known(redact(value))
  const walk = (json: Json): Json => {
    if (typeof json === "string") return text(json)
    if (typeof json !== "object" || json === null) return json
    if (Array.isArray(json)) return json.map(walk)
    return Object.fromEntries(
      Object.entries(json).map(([key, value]) => [
        text(key),
        typeof value === "string" && value !== "" && secretName.test(key) ? "[redacted]" : walk(value)
      ])
    )
  }
  return walk
}
