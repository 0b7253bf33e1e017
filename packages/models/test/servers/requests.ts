/** Requests that each protocol accepts, for tests to break in one place. */
import type * as Client from "./client.ts"
import * as Wire from "./Wire.ts"

const schema = { type: "object", properties: { path: { type: "string" } }, required: ["path"] }

export const calls = ["call_a", "call_b"] as const

/** A question, two calls, their two results: what a client sends in the second turn. */
export const valid: Readonly<Record<Client.Name, Wire.JsonObject>> = {
  "openai-chat": {
    model: "gpt-test",
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Read a and b." },
      {
        role: "assistant",
        content: null,
        tool_calls: calls.map((id) => ({
          id,
          type: "function",
          function: { name: "read_file", arguments: '{"path":"a"}' }
        }))
      },
      ...calls.map((id) => ({ role: "tool", tool_call_id: id, content: "text" }))
    ],
    tools: [{ type: "function", function: { name: "read_file", parameters: schema } }]
  },
  "openai-responses": {
    model: "gpt-test",
    input: [
      { role: "user", content: [{ type: "input_text", text: "Read a and b." }] },
      ...calls.map((id) => ({ type: "function_call", call_id: id, name: "read_file", arguments: '{"path":"a"}' })),
      ...calls.map((id) => ({ type: "function_call_output", call_id: id, output: "text" }))
    ],
    tools: [{ type: "function", name: "read_file", parameters: schema }]
  },
  anthropic: {
    model: "claude-test",
    max_tokens: 2048,
    messages: [
      { role: "user", content: "Read a and b." },
      {
        role: "assistant",
        content: calls.map((id) => ({ type: "tool_use", id, name: "read_file", input: { path: "a" } }))
      },
      { role: "user", content: calls.map((id) => ({ type: "tool_result", tool_use_id: id, content: "text" })) }
    ],
    tools: [{ name: "read_file", input_schema: schema }]
  }
}

/** The shortest request that each protocol accepts. */
export const short: Readonly<Record<Client.Name, Wire.JsonObject>> = {
  "openai-chat": { model: "gpt-test", messages: [{ role: "user", content: "Hi" }] },
  "openai-responses": { model: "gpt-test", input: "Hi" },
  anthropic: { model: "claude-test", max_tokens: 64, messages: [{ role: "user", content: "Hi" }] }
}

export const protocols = ["openai-chat", "openai-responses", "anthropic"] as const

export type Answer = Wire.JsonObject

/** The request that follows an answer, its parts going back as they came; `change` may break them. */
export const next = {
  "openai-chat": (answer: Answer) => {
    const message = Wire.object(Wire.objects(answer["choices"])[0]?.["message"])
    const results = Wire.objects(message["tool_calls"]).map((call) => ({
      role: "tool",
      tool_call_id: call["id"],
      content: "text"
    }))
    return { ...short["openai-chat"], messages: [{ role: "user", content: "Hi" }, message, ...results] }
  },
  "openai-responses": (answer: Answer) => responses(Wire.objects(answer["output"])),
  anthropic: (answer: Answer) => anthropic(Wire.objects(answer["content"]))
}

export const outputs = (items: ReadonlyArray<Answer>) =>
  items
    .filter((item) => item["type"] === "function_call")
    .map((call) => ({ type: "function_call_output", call_id: call["call_id"], output: "text" }))

export const responses = (items: ReadonlyArray<Answer>, more: object = {}) => ({
  model: "gpt-test",
  input: [{ role: "user", content: "Hi" }, ...items, ...outputs(items)],
  ...more
})

const loop = (blocks: ReadonlyArray<Answer>) => [
  { role: "assistant", content: blocks },
  {
    role: "user",
    content: blocks
      .filter((block) => block["type"] === "tool_use")
      .map((use) => ({ type: "tool_result", tool_use_id: use["id"], content: "text" }))
  }
]

export const anthropic = (...turns: ReadonlyArray<ReadonlyArray<Answer>>) => ({
  model: "claude-test",
  max_tokens: 2048,
  messages: [{ role: "user", content: "Hi" }, ...turns.flatMap(loop)]
})
