/** The output items of one response, each with the events that stream it. Public documentation: "Streaming events". */
import * as Script from "./Script.ts"
import type * as Wire from "./Wire.ts"

export interface Item {
  readonly item: Wire.JsonObject & { readonly id: string }
  readonly frames: ReadonlyArray<Wire.Frame>
}

export interface Making {
  readonly number: number
  /** Gives the encrypted content of a reasoning item, when the request asked for it. */
  readonly encrypted: ((id: string) => string) | undefined
  /** The status of the last item; all others are completed. */
  readonly status: "completed" | "incomplete"
}

type Draft = (index: number, status: string) => Item

const event = (type: string, data: object, text?: true): Wire.Frame => ({
  event: type,
  data: { type, ...data },
  ...(text ? { text } : {})
})

/** Wraps the events of an item into the two that open and close it. */
const framed = (
  index: number,
  first: object,
  item: Wire.JsonObject & { readonly id: string },
  inner: ReadonlyArray<Wire.Frame>
): Item => ({
  item,
  frames: [
    event("response.output_item.added", { output_index: index, item: first }),
    ...inner,
    event("response.output_item.done", { output_index: index, item })
  ]
})

const reasoning =
  (given: Script.Reasoning, making: Making): Draft =>
  (index) => {
    const id = `rs_${making.number}`
    const at = { item_id: id, output_index: index, summary_index: 0 }
    const sealed = making.encrypted === undefined ? {} : { encrypted_content: making.encrypted(id) }
    const part = { type: "summary_text", text: given.text }
    const inner =
      given.text === ""
        ? []
        : [
            event("response.reasoning_summary_part.added", { ...at, part: { ...part, text: "" } }),
            ...Script.words(given.text).map((delta) =>
              event("response.reasoning_summary_text.delta", { ...at, delta })
            ),
            event("response.reasoning_summary_text.done", { ...at, text: given.text }),
            event("response.reasoning_summary_part.done", { ...at, part })
          ]
    const first = { id, type: "reasoning", summary: [], ...sealed }
    return framed(index, first, { ...first, summary: given.text === "" ? [] : [part] }, inner)
  }

const text =
  (given: string, making: Making): Draft =>
  (index, status) => {
    const id = `msg_${making.number}`
    const at = { item_id: id, output_index: index, content_index: 0 }
    const part = { type: "output_text", text: given, annotations: [], logprobs: [] }
    const first = { id, type: "message", role: "assistant", status: "in_progress", content: [] }
    return framed(index, first, { ...first, status, content: [part] }, [
      event("response.content_part.added", { ...at, part: { ...part, text: "" } }),
      ...Script.words(given).map((delta) => event("response.output_text.delta", { ...at, delta, logprobs: [] }, true)),
      event("response.output_text.done", { ...at, text: given, logprobs: [] }),
      event("response.content_part.done", { ...at, part })
    ])
  }

const refusal =
  (given: string, making: Making): Draft =>
  (index, status) => {
    const id = `msg_${making.number}`
    const at = { item_id: id, output_index: index, content_index: 0 }
    const part = { type: "refusal", refusal: given }
    const first = { id, type: "message", role: "assistant", status: "in_progress", content: [] }
    return framed(index, first, { ...first, status, content: [part] }, [
      event("response.content_part.added", { ...at, part: { ...part, refusal: "" } }),
      ...Script.words(given).map((delta) => event("response.refusal.delta", { ...at, delta })),
      event("response.refusal.done", { ...at, refusal: given }),
      event("response.content_part.done", { ...at, part })
    ])
  }

const call =
  (given: Script.Call, place: number, making: Making): Draft =>
  (index, status) => {
    const id = `fc_${making.number}_${place}`
    const at = { item_id: id, output_index: index }
    const args = Script.argumentsOf(given)
    const call_id = given.id ?? `call_${making.number}_${place}`
    const first = { id, type: "function_call", status: "in_progress", arguments: "", call_id, name: given.name }
    return framed(index, first, { ...first, status, arguments: args }, [
      ...Script.halves(args).map((delta) => event("response.function_call_arguments.delta", { ...at, delta })),
      event("response.function_call_arguments.done", { ...at, arguments: args, name: given.name })
    ])
  }

export const make = (reply: Script.Reply, making: Making): ReadonlyArray<Item> => {
  const drafts = [
    ...(reply.reasoning === undefined ? [] : [reasoning(reply.reasoning, making)]),
    ...(reply.text === undefined ? [] : [text(reply.text, making)]),
    ...(reply.refusal === undefined ? [] : [refusal(reply.refusal, making)]),
    ...(reply.calls ?? []).map((given, place) => call(given, place, making))
  ]
  return drafts.map((draft, index) => draft(index, index === drafts.length - 1 ? making.status : "completed"))
}
