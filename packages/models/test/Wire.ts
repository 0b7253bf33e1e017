/** Replies as the four protocols write them, whole and as events, and the models that speak them. */
import { createAnthropic } from "@ai-sdk/anthropic"
import { createGoogle } from "@ai-sdk/google"
import { createOpenAI } from "@ai-sdk/openai"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import type { LanguageModelV4 } from "@ai-sdk/provider"
import { type Answer, json, named, sse } from "./Fake.ts"

export interface Call {
  readonly id: string
  readonly name: string
  /** The arguments as text, as the model wrote them. */
  readonly args: string
}

export interface Reply {
  readonly text?: string
  readonly thought?: { readonly text: string; readonly signature: string }
  readonly calls?: ReadonlyArray<Call>
  /** The provider's own word. */
  readonly finish?: string
}

export interface Protocol {
  readonly name: string
  /** `settings` go to the package: another `fetch`, for one. */
  readonly model: (url: string, settings?: { readonly fetch?: typeof fetch }) => LanguageModelV4
  readonly whole: (reply: Reply) => Answer
  readonly streamed: (reply: Reply) => Answer
}

const parse = (args: string): unknown => JSON.parse(args)

const chatUsage = {
  prompt_tokens: 2006,
  completion_tokens: 30,
  total_tokens: 2036,
  prompt_tokens_details: { cached_tokens: 1920 },
  completion_tokens_details: { reasoning_tokens: 12 }
}

const chatFinish = ({ calls, finish }: Reply) => finish ?? (calls === undefined ? "stop" : "tool_calls")

const chat = {
  whole: (reply: Reply): Answer =>
    json({
      id: "chatcmpl-1",
      object: "chat.completion",
      created: 1_760_000_000,
      model: "answering-model",
      choices: [
        {
          index: 0,
          finish_reason: chatFinish(reply),
          message: {
            role: "assistant",
            content: reply.text ?? null,
            ...(reply.thought && { reasoning_content: reply.thought.text }),
            ...(reply.calls && {
              tool_calls: reply.calls.map(({ args, id, name }) => ({
                id,
                type: "function",
                function: { name, arguments: args }
              }))
            })
          }
        }
      ],
      usage: chatUsage
    }),
  streamed: (reply: Reply): Answer => {
    const chunk = (delta: unknown, finish: string | null = null) => ({
      id: "chatcmpl-1",
      object: "chat.completion.chunk",
      created: 1_760_000_000,
      model: "answering-model",
      choices: [{ index: 0, delta, finish_reason: finish }]
    })
    return {
      body: sse([
        chunk({ role: "assistant", content: "" }),
        ...(reply.thought ? [chunk({ reasoning_content: reply.thought.text })] : []),
        ...(reply.text === undefined ? [] : [...reply.text].map((letter) => chunk({ content: letter }))),
        ...(reply.calls ?? []).flatMap(({ args, id, name }, index) => [
          chunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }),
          chunk({ tool_calls: [{ index, function: { arguments: args } }] })
        ]),
        chunk({}, chatFinish(reply)),
        { ...chunk({}), choices: [], usage: chatUsage },
        "[DONE]"
      ])
    }
  }
}

const responseItems = ({ calls = [], text, thought }: Reply) => [
  ...(thought === undefined
    ? []
    : [
        {
          type: "reasoning",
          id: "rs_1",
          summary: [{ type: "summary_text", text: thought.text }],
          encrypted_content: thought.signature
        }
      ]),
  ...(text === undefined
    ? []
    : [
        {
          type: "message",
          id: "msg_1",
          role: "assistant",
          status: "completed",
          content: [{ type: "output_text", text, annotations: [] }]
        }
      ]),
  ...calls.map(({ args, id, name }, index) => ({
    type: "function_call",
    id: `fc_${index}`,
    call_id: id,
    name,
    arguments: args,
    status: "completed"
  }))
]

const response = (reply: Reply) => ({
  id: "resp_1",
  object: "response",
  created_at: 1_760_000_000,
  status: "completed",
  error: null,
  incomplete_details: reply.finish === undefined ? null : { reason: reply.finish },
  model: "answering-model",
  output: responseItems(reply),
  usage: {
    input_tokens: 2006,
    input_tokens_details: { cached_tokens: 1920 },
    output_tokens: 30,
    output_tokens_details: { reasoning_tokens: 12 },
    total_tokens: 2036
  }
})

const responseEvents = (reply: Reply) => {
  const items = responseItems(reply)
  return [
    { type: "response.created", response: { ...response(reply), status: "in_progress", output: [], usage: null } },
    ...items.flatMap((item, output_index) => {
      const begun = {
        type: "response.output_item.added",
        output_index,
        item: {
          ...item,
          ...("content" in item ? { content: [] } : {}),
          ...("arguments" in item ? { arguments: "" } : {}),
          ...("summary" in item ? { summary: [] } : {})
        }
      }
      const item_id = item.id
      const inner =
        "content" in item
          ? [{ type: "response.output_text.delta", item_id, output_index, content_index: 0, delta: reply.text }]
          : "arguments" in item
            ? [{ type: "response.function_call_arguments.delta", item_id, output_index, delta: item.arguments }]
            : [
                { type: "response.reasoning_summary_part.added", item_id, output_index, summary_index: 0 },
                {
                  type: "response.reasoning_summary_text.delta",
                  item_id,
                  output_index,
                  summary_index: 0,
                  delta: reply.thought?.text
                },
                { type: "response.reasoning_summary_part.done", item_id, output_index, summary_index: 0 }
              ]
      return [begun, ...inner, { type: "response.output_item.done", output_index, item }]
    }),
    { type: reply.finish === undefined ? "response.completed" : "response.incomplete", response: response(reply) }
  ]
}

const blocks = ({ calls = [], text, thought }: Reply) => [
  ...(thought === undefined ? [] : [{ type: "thinking", thinking: thought.text, signature: thought.signature }]),
  ...(text === undefined ? [] : [{ type: "text", text }]),
  ...calls.map(({ args, id, name }) => ({ type: "tool_use", id, name, args }))
]

const stopReason = ({ calls, finish }: Reply) => finish ?? (calls === undefined ? "end_turn" : "tool_use")
const messageUsage = { input_tokens: 9, cache_read_input_tokens: 17_102, cache_creation_input_tokens: 40 }

const anthropicEvents = (reply: Reply) => [
  {
    type: "message_start",
    message: {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "answering-model",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { ...messageUsage, output_tokens: 1 }
    }
  },
  { type: "ping" },
  ...blocks(reply).flatMap((block, index) => {
    const start = (content_block: unknown) => ({ type: "content_block_start", index, content_block })
    const delta = (one: unknown) => ({ type: "content_block_delta", index, delta: one })
    const stop = { type: "content_block_stop", index }
    if ("thinking" in block) {
      return [
        start({ type: "thinking", thinking: "", signature: "" }),
        delta({ type: "thinking_delta", thinking: block.thinking }),
        delta({ type: "signature_delta", signature: block.signature }),
        stop
      ]
    }
    if ("text" in block) {
      return [
        start({ type: "text", text: "" }),
        ...[...block.text].map((text) => delta({ type: "text_delta", text })),
        stop
      ]
    }
    return [
      start({ type: "tool_use", id: block.id, name: block.name, input: {} }),
      delta({ type: "input_json_delta", partial_json: block.args }),
      stop
    ]
  }),
  {
    type: "message_delta",
    delta: { stop_reason: stopReason(reply), stop_sequence: null },
    usage: { output_tokens: 30 }
  },
  { type: "message_stop" }
]

const geminiParts = ({ calls = [], text, thought }: Reply) => [
  ...(thought === undefined ? [] : [{ text: thought.text, thought: true }]),
  ...(text === undefined ? [] : [{ text }]),
  ...calls.map(({ args, id, name }) => ({
    functionCall: { id, name, args: parse(args) },
    ...(thought === undefined ? {} : { thoughtSignature: thought.signature })
  }))
]

const gemini = (reply: Reply) => ({
  responseId: "gem_1",
  modelVersion: "answering-model",
  candidates: [
    { index: 0, content: { role: "model", parts: geminiParts(reply) }, finishReason: reply.finish ?? "STOP" }
  ],
  usageMetadata: {
    promptTokenCount: 2006,
    cachedContentTokenCount: 1920,
    candidatesTokenCount: 18,
    thoughtsTokenCount: 12,
    totalTokenCount: 2036
  }
})

/** JSON text in which `__proto__` is a key like any other. */
const withArgs = (value: unknown): string =>
  JSON.stringify(value).replace(
    /"args":"((?:[^"\\]|\\.)*)"/g,
    (_, text: string) => `"input":${JSON.parse(`"${text}"`)}`
  )

export const openaiChat: Protocol = {
  name: "OpenAI chat completions",
  model: (url, settings) => createOpenAI({ baseURL: url, apiKey: "key", ...settings }).chat("gpt-4.1"),
  ...chat
}

export const compatible: Protocol = {
  name: "an OpenAI-compatible server",
  model: (url, settings) =>
    createOpenAICompatible({ name: "local", baseURL: url, apiKey: "key", includeUsage: true, ...settings })("llama"),
  ...chat
}

export const openaiResponses: Protocol = {
  name: "OpenAI responses",
  model: (url, settings) => createOpenAI({ baseURL: url, apiKey: "key", ...settings }).responses("gpt-5"),
  whole: (reply) => json(response(reply)),
  streamed: (reply) => ({ body: named(responseEvents(reply)) })
}

export const anthropic: Protocol = {
  name: "Anthropic messages",
  model: (url, settings) => createAnthropic({ baseURL: url, apiKey: "key", ...settings })("claude-sonnet-4-5"),
  whole: (reply) => ({
    body: withArgs({
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "answering-model",
      content: blocks(reply),
      stop_reason: stopReason(reply),
      stop_sequence: null,
      usage: { ...messageUsage, output_tokens: 30 }
    })
  }),
  streamed: (reply) => ({ body: named(anthropicEvents(reply)) })
}

export const google: Protocol = {
  name: "Google generateContent",
  model: (url, settings) => createGoogle({ baseURL: url, apiKey: "key", ...settings })("gemini-2.5-flash"),
  whole: (reply) => json(gemini(reply)),
  streamed: (reply) => ({ body: sse([gemini(reply)]) })
}

export const protocols: ReadonlyArray<Protocol> = [openaiChat, openaiResponses, anthropic, google, compatible]
