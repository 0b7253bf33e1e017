/** What the responses endpoint remembers between requests: stored items and responses, and which reasoning led to what. */
import * as Signatures from "./Signatures.ts"
import type * as Wire from "./Wire.ts"

export interface Memory {
  /** Items of responses that were stored, by id; `item_reference` finds them here. */
  readonly items: Map<string, Wire.JsonObject>
  /** The reasoning item that must stand before an item, by the item's id. */
  readonly reasoningOf: Map<string, string>
  /** The whole conversation up to and with a stored response, by the response's id. */
  readonly responses: Map<string, ReadonlyArray<Wire.JsonObject>>
  /** Encrypted content, bound to the id of its reasoning item. */
  readonly encrypted: Signatures.Signatures
}

export const make = (): Memory => ({
  items: new Map(),
  reasoningOf: new Map(),
  responses: new Map(),
  encrypted: Signatures.make("enc_")
})

/** The input as items, the stored ones of `previous_response_id` first; a bare string is one message of the user. */
export const conversation = (body: Wire.JsonObject, memory: Memory): ReadonlyArray<Wire.JsonObject> => {
  const input = body["input"]
  const own: ReadonlyArray<unknown> =
    typeof input === "string" ? [{ role: "user", content: input }] : Array.isArray(input) ? input : []
  return [...before(body, memory), ...own.map((item) => resolve(item, memory))]
}

/** How many of them come from `previous_response_id`. */
export const before = (body: Wire.JsonObject, memory: Memory): ReadonlyArray<Wire.JsonObject> => {
  const previous = body["previous_response_id"]
  return typeof previous === "string" ? (memory.responses.get(previous) ?? []) : []
}

/** An item that is a reference becomes what it refers to; an unknown one stays and is rejected by the rules. */
const resolve = (value: unknown, memory: Memory): Wire.JsonObject => {
  const item = typeof value === "object" && value !== null ? { ...value } : {}
  return "type" in item && item.type === "item_reference" && "id" in item && typeof item.id === "string"
    ? (memory.items.get(item.id) ?? item)
    : item
}

/** Remembers what one response put out. Every item after a reasoning item of the same response needs that reasoning. */
export const remember = (
  memory: Memory,
  body: Wire.JsonObject,
  response: { readonly id: string; readonly output: ReadonlyArray<Wire.JsonObject & { readonly id: string }> }
): void => {
  const reasoning = response.output.find((item) => item["type"] === "reasoning")
  const input = conversation(body, memory)
  for (const item of response.output) {
    if (reasoning !== undefined && item !== reasoning) memory.reasoningOf.set(item.id, reasoning.id)
    if (body["store"] !== false) memory.items.set(item.id, item)
  }
  if (body["store"] !== false) memory.responses.set(response.id, [...input, ...response.output])
}
