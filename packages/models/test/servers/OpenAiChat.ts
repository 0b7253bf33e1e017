/**
 * The chat completions endpoint of OpenAI: `POST /v1/chat/completions`.
 *
 * Reasoning goes out as `reasoning_content`, which OpenAI itself does not send and many of its imitators do.
 * Public documentation: "The chat completion object", "The chat completion chunk object".
 */
import * as Rules from "./OpenAiChatRules.ts"
import * as OpenAi from "./OpenAiRules.ts"
import * as Protocol from "./Protocol.ts"
import * as Script from "./Script.ts"
import * as Wire from "./Wire.ts"

const finishes = {
  stop: "stop",
  length: "length",
  "tool-calls": "tool_calls",
  "content-filter": "content_filter"
} as const

const usage = (reply: Script.Reply) => {
  const { cacheRead, cacheWrite, input, output, reasoning } = Script.usageOf(reply)
  const prompt = input + cacheRead + cacheWrite
  return {
    prompt_tokens: prompt,
    completion_tokens: output + reasoning,
    total_tokens: prompt + output + reasoning,
    prompt_tokens_details: { cached_tokens: cacheRead, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: reasoning,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0
    }
  }
}

const base = (body: Wire.JsonObject, number: number, kind: string) => ({
  id: `chatcmpl-${number}`,
  object: kind,
  created: 1_700_000_000,
  model: body["model"],
  service_tier: "default",
  system_fingerprint: "fp_test"
})

const callsOf = (reply: Script.Reply, number: number) =>
  (reply.calls ?? []).map((call, index) => ({
    id: call.id ?? `call_${number}_${index}`,
    type: "function",
    function: { name: call.name, arguments: Script.argumentsOf(call) }
  }))

const message = (reply: Script.Reply, number: number) => {
  const calls = callsOf(reply, number)
  return {
    role: "assistant",
    content: reply.text ?? null,
    refusal: reply.refusal ?? null,
    annotations: [],
    ...(reply.reasoning === undefined ? {} : { reasoning_content: reply.reasoning.text }),
    ...(calls.length === 0 ? {} : { tool_calls: calls })
  }
}

const deltas = (reply: Script.Reply, number: number) => [
  ...Script.words(reply.reasoning?.text ?? "").map((piece) => ({ reasoning_content: piece })),
  ...Script.words(reply.text ?? "").map((piece) => ({ content: piece })),
  ...Script.words(reply.refusal ?? "").map((piece) => ({ refusal: piece })),
  ...callsOf(reply, number).flatMap((call, index) => [
    { tool_calls: [{ index, ...call, function: { name: call.function.name, arguments: "" } }] },
    ...Script.halves(call.function.arguments).map((half) => ({
      tool_calls: [{ index, function: { arguments: half } }]
    }))
  ])
]

const answer = (reply: Script.Reply, body: Wire.JsonObject, number: number): Wire.Answer => {
  const counted = Wire.object(body["stream_options"])["include_usage"] === true
  const head = base(body, number, "chat.completion.chunk")
  const chunk = (delta: object, reason: string | null = null): Wire.Frame => ({
    data: {
      ...head,
      choices: [{ index: 0, delta, logprobs: null, finish_reason: reason }],
      ...(counted ? { usage: null } : {})
    },
    ...("content" in delta && delta.content !== "" ? { text: true } : {})
  })
  const reason = finishes[Script.finishOf(reply)]
  return {
    json: {
      ...base(body, number, "chat.completion"),
      choices: [{ index: 0, message: message(reply, number), logprobs: null, finish_reason: reason }],
      usage: usage(reply)
    },
    open: [chunk({ role: "assistant", content: "", refusal: null })],
    content: deltas(reply, number).map((delta) => chunk(delta)),
    close: [
      chunk({}, reason),
      ...(counted ? [{ data: { ...head, choices: [], usage: usage(reply) } }] : []),
      { data: "[DONE]" }
    ]
  }
}

const overload = OpenAi.errorFor(503)

export const make = (options: Wire.Options): Protocol.Protocol => ({
  ...Protocol.at("/v1/chat/completions"),
  problems: (request) => Rules.problems(request, options),
  answer,
  errorBody: OpenAi.errorBody,
  errorFor: OpenAi.errorFor,
  overload,
  overloadFrame: { data: OpenAi.errorBody(overload) },
  keepAlive: ": keep-alive\n\n",
  encode: (frame) => Wire.sse(frame)
})
