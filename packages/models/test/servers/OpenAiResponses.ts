/**
 * The responses endpoint of OpenAI: `POST /v1/responses`.
 *
 * Public documentation: "The response object", "Streaming events". The `error` event nests its error, as clients of the
 * real server report; the documentation shows it flat.
 */
import * as Items from "./OpenAiResponsesItems.ts"
import * as Memory from "./OpenAiResponsesMemory.ts"
import * as Rules from "./OpenAiResponsesRules.ts"
import * as OpenAi from "./OpenAiRules.ts"
import * as Protocol from "./Protocol.ts"
import * as Script from "./Script.ts"
import * as Wire from "./Wire.ts"

const usage = (reply: Script.Reply) => {
  const { cacheRead, cacheWrite, input, output, reasoning } = Script.usageOf(reply)
  const all = input + cacheRead + cacheWrite
  return {
    input_tokens: all,
    input_tokens_details: { cached_tokens: cacheRead },
    output_tokens: output + reasoning,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: all + output + reasoning
  }
}

const reasons: Partial<Record<Script.Finish, string>> = {
  length: "max_output_tokens",
  "content-filter": "content_filter"
}

const response = (body: Wire.JsonObject, number: number, state: object) => ({
  id: `resp_${number}`,
  object: "response",
  created_at: 1_700_000_000,
  status: "in_progress",
  background: false,
  error: null,
  incomplete_details: null,
  instructions: body["instructions"] ?? null,
  max_output_tokens: body["max_output_tokens"] ?? null,
  model: body["model"],
  output: [],
  parallel_tool_calls: true,
  previous_response_id: body["previous_response_id"] ?? null,
  reasoning: { effort: null, summary: null },
  store: body["store"] !== false,
  temperature: 1,
  text: { format: { type: "text" } },
  tool_choice: body["tool_choice"] ?? "auto",
  tools: Wire.list(body["tools"]),
  top_p: 1,
  truncation: "disabled",
  usage: null,
  metadata: {},
  ...state
})

const answer =
  (memory: Memory.Memory) =>
  (reply: Script.Reply, body: Wire.JsonObject, number: number): Wire.Answer => {
    const reason = reasons[Script.finishOf(reply)]
    const items = Items.make(reply, {
      number,
      encrypted: Wire.list(body["include"]).includes("reasoning.encrypted_content")
        ? (id) => memory.encrypted.issue(id, reply.reasoning?.signature)
        : undefined,
      status: reason === undefined ? "completed" : "incomplete"
    })
    Memory.remember(memory, body, { id: `resp_${number}`, output: items.map(({ item }) => item) })
    const done = response(body, number, {
      status: reason === undefined ? "completed" : "incomplete",
      incomplete_details: reason === undefined ? null : { reason },
      output: items.map(({ item }) => item),
      usage: usage(reply)
    })
    return {
      json: done,
      open: ["response.created", "response.in_progress"].map((type) => ({
        event: type,
        data: { type, response: response(body, number, {}) }
      })),
      content: items.flatMap(({ frames }) => frames),
      close: [`response.${reason === undefined ? "completed" : "incomplete"}`].map((type) => ({
        event: type,
        data: { type, response: done }
      }))
    }
  }

const overload = OpenAi.errorFor(503)

export const make = (options: Wire.Options): Protocol.Protocol => {
  const memory = Memory.make()
  return {
    ...Protocol.at("/v1/responses"),
    problems: (request) => Rules.problems(request, options, memory),
    answer: answer(memory),
    errorBody: OpenAi.errorBody,
    errorFor: OpenAi.errorFor,
    overload,
    overloadFrame: { event: "error", data: { type: "error", ...OpenAi.errorBody(overload) } },
    keepAlive: ": keep-alive\n\n",
    encode: (frame, index) => Wire.sse({ ...frame, data: { ...Wire.object(frame.data), sequence_number: index } })
  }
}
