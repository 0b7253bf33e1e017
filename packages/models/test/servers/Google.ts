/**
 * The generateContent endpoint of the Gemini API: `POST /v1beta/models/<model>:generateContent`, and
 * `:streamGenerateContent?alt=sse`.
 *
 * A reply that thought signs its first call, or its text where it calls nothing. Calls have ids, as those of Gemini 3 do,
 * and their arguments are one object: `rawArgs` must be the text of one. There is no word for a refusal: it is text that
 * ends with `SAFETY`.
 * Public documentation: "Generating content" (GenerateContentResponse, Candidate, UsageMetadata), "Thought signatures".
 */
import * as Rules from "./GoogleRules.ts"
import type * as Protocol from "./Protocol.ts"
import * as Script from "./Script.ts"
import * as Signatures from "./Signatures.ts"
import * as Wire from "./Wire.ts"

const finishes = { stop: "STOP", "tool-calls": "STOP", length: "MAX_TOKENS", "content-filter": "SAFETY" } as const

const finishOf = (reply: Script.Reply) => (reply.refusal === undefined ? finishes[Script.finishOf(reply)] : "SAFETY")

const usage = (reply: Script.Reply) => {
  const { cacheRead, cacheWrite, input, output, reasoning } = Script.usageOf(reply)
  const prompt = input + cacheRead + cacheWrite
  return {
    promptTokenCount: prompt,
    candidatesTokenCount: output,
    totalTokenCount: prompt + output + reasoning,
    ...(cacheRead > 0 ? { cachedContentTokenCount: cacheRead } : {}),
    ...(reasoning > 0 ? { thoughtsTokenCount: reasoning } : {})
  }
}

/** What the reply is signed with, remembered for its first call. */
const mark = ({ calls = [], reasoning }: Script.Reply, number: number, { signatures, signed }: Rules.Memory) => {
  if (reasoning === undefined) return {}
  const thoughtSignature = signatures.issue(reasoning.text, reasoning.signature)
  const [first] = calls
  if (first !== undefined) signed.set(first.id ?? idOf(number, 0), thoughtSignature)
  return { thoughtSignature }
}

const idOf = (number: number, index: number) => `call_${number}_${index}`

const callsOf = ({ calls = [] }: Script.Reply, number: number, signature: object) =>
  calls.map((call, index) => ({
    functionCall: {
      id: call.id ?? idOf(number, index),
      name: call.name,
      args: Wire.object(Wire.parse(Script.argumentsOf(call)))
    },
    ...(index === 0 ? signature : {})
  }))

const answer =
  (memory: Rules.Memory) =>
  (reply: Script.Reply, _: Wire.JsonObject, number: number): Wire.Answer => {
    const { calls = [], reasoning, refusal, text = refusal } = reply
    const signature = mark(reply, number, memory)
    const own = calls.length === 0 ? signature : {}
    const thoughts = reasoning === undefined ? [] : [{ text: reasoning.text, thought: true }]
    const called = callsOf(reply, number, signature)
    const response = (parts: ReadonlyArray<object>, finish?: string) => ({
      candidates: [
        { content: { parts, role: "model" }, ...(finish === undefined ? {} : { finishReason: finish }), index: 0 }
      ],
      usageMetadata: usage(reply),
      modelVersion: "gemini-test",
      responseId: `response-${number}`
    })
    const words = Script.words(text ?? "")
    return {
      json: response([...thoughts, ...(text === undefined ? [] : [{ text, ...own }]), ...called], finishOf(reply)),
      open: [],
      content: [
        ...thoughts.map((part) => ({ data: response([part]) })),
        ...words.map((word) => ({ data: response([{ text: word }]), text: true as const })),
        ...called.map((part) => ({ data: response([part]) }))
      ],
      // The last event says how it ended; what signs a text comes with it, in a part that says nothing.
      close: [{ data: response([{ text: "", ...own }], finishOf(reply)) }]
    }
  }

/** Public documentation: "Troubleshooting", backend error codes. */
const types = new Map([
  [400, "INVALID_ARGUMENT"],
  [401, "UNAUTHENTICATED"],
  [403, "PERMISSION_DENIED"],
  [404, "NOT_FOUND"],
  [429, "RESOURCE_EXHAUSTED"],
  [500, "INTERNAL"],
  [503, "UNAVAILABLE"],
  [504, "DEADLINE_EXCEEDED"]
])

const errorFor = (status: number): Wire.Rejection => ({
  status,
  type: types.get(status) ?? "UNKNOWN",
  message:
    status === 503 ? "The model is overloaded. Please try again later." : `The request failed with status ${status}.`
})

const errorBody = ({ message, status, type }: Wire.Rejection) => ({ error: { code: status, message, status: type } })

export const make = (options: Wire.Options): Protocol.Protocol => {
  const memory: Rules.Memory = { signatures: Signatures.make("gs_"), signed: new Map() }
  return {
    serves: (path) => Rules.path.test(path),
    streams: ({ path }) => path.includes(":streamGenerateContent"),
    problems: (request) => Rules.problems(request, options, memory),
    answer: answer(memory),
    errorBody,
    errorFor,
    overload: errorFor(503),
    overloadFrame: { data: errorBody(errorFor(503)) },
    keepAlive: ": keep-alive\n\n",
    encode: (frame) => Wire.sse(frame)
  }
}
