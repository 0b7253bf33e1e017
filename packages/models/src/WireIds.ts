/**
 * Gives tool calls ids on the wire that every provider takes.
 *
 * Providers are strict about ids that others made: Anthropic takes letters, digits, `_` and `-` only, OpenAI's chat
 * completions at most 40 of them. Only the request is changed, never what is stored.
 *
 * Invariants
 *   I1  Two ids of one request are two on the wire; a call and its result have the same.
 *   I2  The same conversation has the same ids in every request, so that caches of prompts hold.
 *   I3  A server of a family gets its own ids back as they are: the templates of some models read them.
 *
 * @since 0.1.0
 */
import * as Hash from "effect/Hash"
import type * as Prompt from "effect/ai/Prompt"
import { isObject, own } from "./Json.ts"

/** The characters are Anthropic's; 40 are OpenAI's limit for chat completions (its responses take 64). */
const valid = /^[a-zA-Z0-9_-]{1,40}$/

/** The ids on the wire of this request; `keepsOwn`: what core marked as written by the model asked stays as it is. */
export const writer = (prompt: Prompt.Prompt, keepsOwn: boolean): ((id: string) => string) => {
  const taken = new Set<string>()
  const others = new Set<string>()
  for (const message of prompt.content) {
    const asIs = keepsOwn && message.role === "assistant" && isObject(message.options[own])
    for (const id of idsOf(message)) (asIs || valid.test(id) ? taken : others).add(id)
  }
  const renamed = new Map<string, string>()
  for (const id of others) {
    if (taken.has(id)) continue
    const name = free(short(id), taken)
    taken.add(name)
    renamed.set(id, name)
  }
  return (id) => renamed.get(id) ?? id
}

const idsOf = ({ content, role }: Prompt.Message): ReadonlyArray<string> =>
  role === "assistant" || role === "tool"
    ? content.flatMap((part) => (part.type === "tool-call" || part.type === "tool-result" ? [part.id] : []))
    : []

/** What is legible of the id, and a hash of all of it; at most 30 units, so that there is room for a number. */
const short = (id: string): string =>
  `${id.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 22)}_${(Hash.string(id) >>> 0).toString(36)}`

const free = (name: string, taken: ReadonlySet<string>): string => {
  let count = 1
  while (taken.has(count === 1 ? name : `${name}_${count}`)) count++
  return count === 1 ? name : `${name}_${count}`
}
