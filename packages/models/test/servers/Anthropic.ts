/**
 * The messages endpoint of Anthropic: `POST /v1/messages`.
 *
 * Public documentation: "Create a Message", "Streaming messages" (event types, error events), "Errors".
 */
import * as Rules from "./AnthropicRules.ts"
import * as Thinking from "./AnthropicThinking.ts"
import * as Protocol from "./Protocol.ts"
import * as Script from "./Script.ts"
import * as Wire from "./Wire.ts"

const stops = { stop: "end_turn", length: "max_tokens", "tool-calls": "tool_use", "content-filter": "refusal" } as const

/** Reasoning is part of the output; cache reads and writes are not part of the input ("Prompt caching"). */
const usage = (reply: Script.Reply) => {
  const { cacheRead, cacheWrite, input, output, reasoning } = Script.usageOf(reply)
  return {
    input_tokens: input,
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cacheRead,
    output_tokens: output + reasoning,
    output_tokens_details: { thinking_tokens: reasoning }
  }
}

const event = (type: string, data: object, text?: true): Wire.Frame => ({
  event: type,
  data: { type, ...data },
  ...(text ? { text } : {})
})

interface Block {
  readonly block: Wire.JsonObject
  /** The block as `content_block_start` shows it. */
  readonly first: object
  readonly deltas: ReadonlyArray<object>
}

const textBlock = (text: string): Block => ({
  block: { type: "text", text },
  first: { type: "text", text: "" },
  deltas: Script.words(text).map((piece) => ({ type: "text_delta", text: piece }))
})

const thinkingBlock = (block: Wire.JsonObject): Block =>
  block["type"] === "redacted_thinking"
    ? { block, first: block, deltas: [] }
    : {
        block,
        first: { type: "thinking", thinking: "", signature: "" },
        deltas: [
          ...Script.words(Wire.string(block["thinking"]) ?? "").map((thinking) => ({
            type: "thinking_delta",
            thinking
          })),
          { type: "signature_delta", signature: block["signature"] }
        ]
      }

const toolBlock = (call: Script.Call, id: string): Block => {
  const text = Script.argumentsOf(call)
  return {
    block: { type: "tool_use", id, name: call.name, input: Wire.parse(text) ?? text },
    first: { type: "tool_use", id, name: call.name, input: {} },
    deltas: ["", ...Script.halves(text)].map((partial_json) => ({ type: "input_json_delta", partial_json }))
  }
}

const answer =
  (thinking: Thinking.Memory) =>
  (reply: Script.Reply, body: Wire.JsonObject, number: number): Wire.Answer => {
    const calls = (reply.calls ?? []).map((call, place) => ({ call, id: call.id ?? `toolu_${number}_${place}` }))
    const thought = reply.reasoning === undefined ? [] : [Thinking.issue(thinking, reply.reasoning)]
    for (const { id } of calls) thinking.before.set(id, thought)
    const text = [reply.text, reply.refusal].flatMap((part) => (part === undefined ? [] : [textBlock(part)]))
    const blocks = [...thought.map(thinkingBlock), ...text, ...calls.map(({ call, id }) => toolBlock(call, id))]
    const stop = {
      stop_reason: reply.refusal === undefined ? stops[Script.finishOf(reply)] : "refusal",
      stop_sequence: null
    }
    const message = { id: `msg_${number}`, type: "message", role: "assistant", model: body["model"] }
    const counted = usage(reply)
    const tail = { service_tier: "standard" }
    return {
      json: { ...message, content: blocks.map(({ block }) => block), ...stop, usage: { ...counted, ...tail } },
      open: [
        event("message_start", {
          message: {
            ...message,
            content: [],
            stop_reason: null,
            stop_sequence: null,
            usage: { ...counted, output_tokens: 1, output_tokens_details: null, ...tail }
          }
        }),
        event("ping", {})
      ],
      content: blocks.flatMap(({ deltas, first }, index) => [
        event("content_block_start", { index, content_block: first }),
        ...deltas.map((delta) => event("content_block_delta", { index, delta }, "text" in delta ? true : undefined)),
        event("content_block_stop", { index })
      ]),
      close: [event("message_delta", { delta: stop, usage: counted }), event("message_stop", {})]
    }
  }

const errorBody = ({ message, type }: Wire.Rejection) => ({
  type: "error",
  error: { type, message },
  request_id: "req_test"
})

/** Public documentation: "Errors". */
const types = new Map([
  [400, "invalid_request_error"],
  [401, "authentication_error"],
  [403, "permission_error"],
  [404, "not_found_error"],
  [413, "request_too_large"],
  [429, "rate_limit_error"],
  [504, "timeout_error"],
  [529, "overloaded_error"]
])

const errorFor = (status: number): Wire.Rejection => ({
  status,
  type: types.get(status) ?? (status >= 500 ? "api_error" : "invalid_request_error"),
  message: status === 529 ? "Overloaded" : `The request failed with status ${status}.`
})

export const make = (options: Wire.Options): Protocol.Protocol => {
  const thinking = Thinking.make()
  return {
    ...Protocol.at("/v1/messages"),
    problems: (request) => Rules.problems(request, options, thinking),
    answer: answer(thinking),
    errorBody,
    errorFor,
    overload: errorFor(529),
    overloadFrame: event("error", { error: errorBody(errorFor(529)).error }),
    keepAlive: 'event: ping\ndata: {"type":"ping"}\n\n',
    encode: Wire.sse
  }
}
