/**
 * Maps tool names to names that every provider takes, and back (RI-083).
 *
 * A valid name stays as it is. Any other gets its illegal characters replaced and a hash of itself appended, so two names
 * hardly ever meet, and the same name is the same in every process. An agent with two that meet is ToolkitInvalid.
 *
 * @since 0.1.0
 */
import * as Hash from "effect/Hash"

/** What OpenAI, Anthropic and Google all accept. */
const valid = /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/

export const isValid = (name: string): boolean => valid.test(name)

/** The name on the wire. */
export const toWire = (name: string): string => {
  if (isValid(name)) return name
  const hash = (Hash.string(name) >>> 0).toString(36)
  return `${name
    .replace(/[^a-zA-Z0-9_-]/g, "_")
    .replace(/^[^a-zA-Z_]/, "_")
    .slice(0, 55)}_${hash}`
}
