import { describe, expect, it } from "@effect/vitest"
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage
} from "@ai-sdk/provider"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Kit from "./Kit.ts"

const usage: LanguageModelV4Usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 }
}
const finishReason: LanguageModelV4FinishReason = { unified: "stop", raw: "stop" }

/** A provider model that answers with these parts, whatever their shape, and keeps what it was asked. */
const providing = (
  content: ReadonlyArray<unknown>,
  more: { readonly usage?: unknown; readonly finishReason?: LanguageModelV4FinishReason } = {}
) => {
  const seen: Array<LanguageModelV4CallOptions> = []
  const given = [...content] as Array<LanguageModelV4Content> // what the type promises is what a test breaks
  const ended = {
    usage: (more.usage ?? usage) as LanguageModelV4Usage,
    finishReason: more.finishReason ?? finishReason
  }
  const model: LanguageModelV4 = {
    specificationVersion: "v4",
    provider: "odd.chat",
    modelId: "odd-1",
    supportedUrls: {},
    doGenerate: (options) => {
      seen.push(options)
      return Promise.resolve({ content: given, ...ended, warnings: [{ type: "other", message: "too hot" }] })
    },
    doStream: (options) => {
      seen.push(options)
      const parts = [
        { type: "stream-start", warnings: [] },
        ...content.flatMap((part, index) => started(part, index)),
        { type: "finish", ...ended }
      ] as Array<LanguageModelV4StreamPart>
      return Promise.resolve({ stream: ReadableStream.from(parts) })
    }
  }
  return { model, seen }
}

const started = (part: unknown, index: number): ReadonlyArray<unknown> => {
  if (typeof part !== "object" || part === null || !("type" in part)) return [part]
  if (part.type !== "text" && part.type !== "reasoning") return [part]
  const { text, type, ...rest } = { text: "", ...part }
  const id = String(index)
  return [
    { type: `${type}-start`, id },
    { type: `${type}-delta`, id, delta: text },
    { type: `${type}-end`, id, ...rest }
  ]
}

const deferred = { prompt: "go", disableToolCallResolution: true, toolCallValidation: "deferred" } as const

const Search = Tool.providerDefined({
  id: "odd.search",
  customName: "search",
  providerName: "search",
  args: Schema.Struct({ max: Schema.Number }),
  parameters: Schema.Struct({ query: Schema.String }),
  success: Schema.Struct({ hits: Schema.Array(Schema.String) })
})

/** The reply as the assistant message that is kept, whole and from a stream. */
const kept = (content: ReadonlyArray<unknown>) =>
  Effect.gen(function* () {
    const toolkit = Toolkit.make(Search({ max: 3 }))
    const { model } = providing(content)
    const whole = yield* Kit.withModel(model, (one) =>
      Effect.map(one.generateText({ ...deferred, toolkit }), ({ content }) => Prompt.fromResponseParts(content))
    )
    const streamed = yield* Kit.withModel(model, (one) =>
      Effect.map(Stream.runCollect(one.streamText({ ...deferred, toolkit })), Prompt.fromResponseParts)
    )
    return { whole, streamed }
  })

/** What the provider is sent for that message. */
const resent = (prompt: Prompt.Prompt) =>
  Effect.gen(function* () {
    const { model, seen } = providing([{ type: "text", text: "ok" }])
    yield* Kit.withModel(model, (one) => one.generateText({ prompt }))
    return seen[0]?.prompt[0]?.content
  })

const sign = { odd: { signature: "x", nested: { list: [1, null] } } }

const roundTrips: ReadonlyArray<{ readonly what: string; readonly part: object; readonly sent: object }> = [
  {
    what: "text",
    part: { type: "text", text: "hi", providerMetadata: sign },
    sent: { type: "text", text: "hi", providerOptions: sign }
  },
  {
    what: "reasoning",
    part: { type: "reasoning", text: "hm", providerMetadata: sign },
    sent: { type: "reasoning", text: "hm", providerOptions: sign }
  },
  {
    what: "reasoning without text",
    part: { type: "reasoning", text: "", providerMetadata: { odd: { redactedData: "y" } } },
    sent: { type: "reasoning", text: "", providerOptions: { odd: { redactedData: "y" } } }
  },
  {
    what: "a call",
    part: { type: "tool-call", toolCallId: "c", toolName: "any", input: '{"a":[1]}', providerMetadata: sign },
    sent: { type: "tool-call", toolCallId: "c", toolName: "any", input: { a: [1] }, providerOptions: sign }
  },
  {
    what: "a call that the provider runs",
    part: { type: "tool-call", toolCallId: "c", toolName: "search", input: '{"query":"q"}', providerExecuted: true },
    sent: { type: "tool-call", toolCallId: "c", toolName: "search", input: { query: "q" }, providerExecuted: true }
  },
  {
    what: "a result of the provider's",
    part: { type: "tool-result", toolCallId: "c", toolName: "search", result: { hits: ["h"] }, providerMetadata: sign },
    sent: {
      type: "tool-result",
      toolCallId: "c",
      toolName: "search",
      output: { type: "json", value: { hits: ["h"] } },
      providerOptions: sign
    }
  },
  {
    what: "a file",
    part: { type: "file", mediaType: "image/png", data: { type: "data", data: "aGk=" }, providerMetadata: sign },
    sent: { type: "file", mediaType: "image/png", data: { type: "data", data: "aGk=" }, providerOptions: sign }
  },
  {
    what: "a part of the provider's own kind",
    part: { type: "custom", kind: "odd.compaction", providerMetadata: sign },
    sent: { type: "custom", kind: "odd.compaction", providerOptions: sign }
  },
  {
    what: "a file of a thought",
    part: {
      type: "reasoning-file",
      mediaType: "image/png",
      data: { type: "data", data: new Uint8Array([104, 105]) },
      providerMetadata: sign
    },
    sent: {
      type: "reasoning-file",
      mediaType: "image/png",
      data: { type: "data", data: "aGk=" },
      providerOptions: sign
    }
  },
  {
    what: "a file of a thought, by its address",
    part: { type: "reasoning-file", mediaType: "image/png", data: { type: "url", url: new URL("https://x.org/a") } },
    sent: { type: "reasoning-file", mediaType: "image/png", data: { type: "url", url: new URL("https://x.org/a") } }
  }
]

describe("RI-092 a part that comes back is what was sent, with all that its provider hung on it", () => {
  it.effect.each(roundTrips)("$what", ({ part, sent }) =>
    Effect.gen(function* () {
      const { streamed, whole } = yield* kept([part])
      expect(yield* resent(whole)).toEqual([sent])
      expect(yield* resent(streamed)).toEqual([sent])
    })
  )

  it.effect("the order of all of them stays", () =>
    Effect.gen(function* () {
      const { streamed, whole } = yield* kept(roundTrips.map(({ part }) => part))
      expect(yield* resent(whole)).toEqual(roundTrips.map(({ sent }) => sent))
      expect(yield* resent(streamed)).toEqual(roundTrips.map(({ sent }) => sent))
    })
  )
})

const odd: ReadonlyArray<{ readonly what: string; readonly part: unknown; readonly note: string }> = [
  { what: "an unknown type", part: { type: "hologram", data: 1 }, note: "a part of the type hologram" },
  { what: "an approval", part: { type: "tool-approval-request", approvalId: "a", toolCallId: "c" }, note: "approval" },
  {
    what: "what the provider ran unasked",
    part: { type: "tool-call", toolCallId: "c", toolName: "mcp.x", input: "{}", providerExecuted: true },
    note: "the provider ran as mcp.x"
  },
  {
    what: "a file that is elsewhere",
    part: { type: "file", mediaType: "image/png", data: { type: "url", url: new URL("https://x.org") } },
    note: "a file without its bytes"
  },
  {
    what: "a file that is no base64",
    part: { type: "file", mediaType: "image/png", data: { type: "data", data: "?" } },
    note: "a file without its bytes"
  },
  {
    what: "a source without an address",
    part: { type: "source", sourceType: "url", id: "s", url: "nowhere" },
    note: "a source without an address"
  }
]

describe("a part that has no place is left out, and the log says so once", () => {
  it.effect.each(odd)("$what", ({ note, part }) =>
    Effect.gen(function* () {
      const said: Array<string> = []
      const logger = Logger.make(({ message }) => said.push(String(message)))
      const { model } = providing([{ type: "text", text: "a" }, part, { type: "text", text: "b" }])
      const text = yield* Kit.withModel(model, (one) =>
        Effect.gen(function* () {
          yield* one.generateText(deferred)
          yield* Stream.runDrain(one.streamText(deferred))
          return (yield* one.generateText(deferred)).text
        })
      ).pipe(Effect.provide(Logger.layer([logger])))
      expect(text).toBe("ab")
      expect(said.filter((line) => line.includes(note)).length).toBe(1)
      expect(said.filter((line) => line === "odd odd-1: other: too hot").length).toBe(1)
    })
  )
})

it.effect("a model that finds ever new things to warn of is heard a hundred times, and no more", () =>
  Effect.gen(function* () {
    const said: Array<string> = []
    const logger = Logger.make(({ message }) => said.push(String(message)))
    const { model } = providing(Array.from({ length: 150 }, (_, i) => ({ type: `odd-${i}` })))
    yield* Kit.withModel(model, (one) => one.generateText(deferred)).pipe(Effect.provide(Logger.layer([logger])))
    expect(said.length).toBe(100)
  })
)

it.effect("what a package warns of is heard where the model refuses, too", () =>
  Effect.gen(function* () {
    const said: Array<string> = []
    const logger = Logger.make(({ message }) => said.push(String(message)))
    const { model } = providing([{ type: "text", text: "No." }], {
      finishReason: { unified: "content-filter", raw: "refusal" }
    })
    const asked = Kit.withModel(model, (one) => one.generateText(deferred))
    const error = yield* Effect.flip(asked).pipe(Effect.provide(Logger.layer([logger])))
    expect(error.reason._tag).toBe("ContentPolicyError")
    expect(said).toEqual(["odd odd-1: other: too hot"])
  })
)

it.effect.each([
  { unified: "other", raw: undefined },
  { unified: "interrupted", raw: undefined },
  { unified: "interrupted", raw: "gone" }
] as const)("S1 a stream that ends with $unified and $raw broke off, and its input is counted", (finishReason) =>
  Effect.gen(function* () {
    const { model } = providing([{ type: "text", text: "He" }], { finishReason })
    const seen: Array<Response.AnyPart> = []
    const stream = Effect.flip(
      Kit.withModel(model, (one) =>
        Stream.runForEach(one.streamText(deferred), (part) => Effect.sync(() => seen.push(part)))
      )
    )
    expect((yield* stream).reason).toMatchObject({ _tag: "NetworkError", reason: "TransportError" })
    expect(seen.at(-1)).toMatchObject({ type: "finish", reason: "error", usage: { inputTokens: { total: 10 } } })
  })
)

it.effect("S1 a whole reply that was interrupted ends with an error", () =>
  Effect.gen(function* () {
    const { model } = providing([{ type: "text", text: "He" }], {
      finishReason: { unified: "interrupted", raw: undefined }
    })
    const { finishReason } = yield* Kit.withModel(model, (one) => one.generateText(deferred))
    expect(finishReason).toBe("error")
  })
)

it.effect("S1 what a provider calls other in its own word is an end", () =>
  Effect.gen(function* () {
    const { model } = providing([{ type: "text", text: "He" }], { finishReason: { unified: "other", raw: "sated" } })
    const parts = yield* Kit.withModel(model, (one) => Stream.runCollect(one.streamText(deferred)))
    expect(parts.at(-1)).toMatchObject({ type: "finish", reason: "other" })
  })
)

it.effect.each(["toString", "constructor", "__proto__"])(
  "a name that a package looked up among what every object inherits is %s again",
  (name) =>
    Effect.gen(function* () {
      const lookUp: object = {}
      const { model } = providing([
        { type: "tool-call", toolCallId: "c", toolName: Reflect.get(lookUp, name), input: "{}" }
      ])
      const { toolCalls } = yield* Kit.withModel(model, (one) => one.generateText(deferred))
      expect(toolCalls.map((call) => call.name)).toEqual([name])
      const begun = providing([{ type: "tool-input-start", id: "c", toolName: Reflect.get(lookUp, name) }])
      const [part] = yield* Kit.withModel(begun.model, (one) => Stream.runCollect(one.streamText(deferred)))
      expect(part).toMatchObject({ type: "tool-params-start", name })
    })
)

it.effect("sources come through, an untitled one under its address", () =>
  Effect.gen(function* () {
    const { model } = providing([
      { type: "source", sourceType: "url", id: "s", url: "https://x.org/a" },
      { type: "source", sourceType: "document", id: "d", mediaType: "text/plain", title: "T", filename: "t.txt" }
    ])
    const { content } = yield* Kit.withModel(model, (one) => one.generateText(deferred))
    expect(content.filter(({ type }) => type === "source")).toMatchObject([
      { sourceType: "url", title: "https://x.org/a" },
      { sourceType: "document", title: "T", fileName: "t.txt" }
    ])
  })
)

it.effect("U1 usage that no counter can be costs nothing but itself", () =>
  Effect.gen(function* () {
    const numbers = { total: Number.NaN, noCache: -3, cacheRead: 2.4, cacheWrite: "7" }
    const { model } = providing([{ type: "text", text: "a" }], {
      usage: { inputTokens: numbers, outputTokens: { total: 5, text: -7, reasoning: 12 } }
    })
    const { usage } = yield* Kit.withModel(model, (one) => one.generateText(deferred))
    expect(usage.inputTokens).toEqual({})
    expect(usage.outputTokens).toEqual({})
  })
)

describe("a request", () => {
  const One = Tool.make("one", { description: "first", parameters: Schema.Struct({ a: Schema.String }) })
  const Two = Tool.make("two", { parameters: Schema.Struct({}) }).annotate(Tool.Strict, true)
  const toolkit = Toolkit.make(One, Two, Search({ max: 3 }))
  const asking = (options: object) =>
    Effect.gen(function* () {
      const { model, seen } = providing([{ type: "text", text: "a" }])
      yield* Kit.withModel(model, (one) => one.generateText({ ...deferred, ...options }))
      return seen[0]
    })

  it.effect("describes tools of all kinds, each as an object", () =>
    Effect.gen(function* () {
      const { tools } = (yield* asking({ toolkit })) ?? {}
      expect(tools).toMatchObject([
        { type: "function", name: "one", description: "first", inputSchema: { type: "object", required: ["a"] } },
        { type: "function", name: "two", strict: true, inputSchema: { type: "object" } },
        { type: "provider", id: "odd.search", name: "search", args: { max: 3 } }
      ])
    })
  )

  it.effect.each([
    { toolChoice: "auto", sent: { type: "auto" }, names: ["one", "two", "search"] },
    { toolChoice: "none", sent: { type: "none" }, names: ["one", "two", "search"] },
    { toolChoice: "required", sent: { type: "required" }, names: ["one", "two", "search"] },
    { toolChoice: { tool: "one" }, sent: { type: "tool", toolName: "one" }, names: ["one", "two", "search"] },
    { toolChoice: { oneOf: ["two"] }, sent: { type: "auto" }, names: ["two"] },
    { toolChoice: { mode: "required", oneOf: ["two"] }, sent: { type: "required" }, names: ["two"] }
  ])("the choice $toolChoice goes out as $sent", ({ names, sent, toolChoice }) =>
    Effect.gen(function* () {
      const asked = yield* asking({ toolkit, toolChoice })
      expect(asked?.toolChoice).toEqual(sent)
      expect(asked?.tools?.map(({ name }) => name)).toEqual(names)
    })
  )

  it.effect("without tools names neither tools nor a choice", () =>
    Effect.gen(function* () {
      const asked = yield* asking({})
      expect(asked).not.toHaveProperty("tools")
      expect(asked).not.toHaveProperty("toolChoice")
    })
  )

  it.effect("asks for JSON with its schema where an object is generated", () =>
    Effect.gen(function* () {
      const { model, seen } = providing([{ type: "text", text: '{"a":1}' }])
      const schema = Schema.Struct({ a: Schema.Number })
      const { value } = yield* Kit.withModel(model, (one) => one.generateObject({ prompt: "go", schema }))
      expect(value).toEqual({ a: 1 })
      expect(seen[0]?.responseFormat).toMatchObject({ type: "json", schema: { type: "object", required: ["a"] } })
    })
  )

  it.effect("keeps an empty text that Gemini signed", () =>
    Effect.gen(function* () {
      const options = { google: { thoughtSignature: "sealed" } }
      const prompt = Prompt.fromMessages([
        Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text: "go" })] }),
        Prompt.makeMessage("assistant", {
          content: [Prompt.makePart("text", { text: "", options }), Prompt.makePart("text", { text: "" })]
        })
      ])
      const asked = yield* asking({ prompt })
      expect(asked?.prompt[1]).toMatchObject({ content: [{ type: "text", text: "", providerOptions: options }] })
      expect(asked?.prompt[1]?.content).toHaveLength(1)
    })
  )

  it.effect("holds nothing that a provider refuses: no empty text, no empty message, no approval", () =>
    Effect.gen(function* () {
      const prompt = Prompt.fromMessages([
        Prompt.makeMessage("system", { content: " " }),
        Prompt.makeMessage("user", { content: [Prompt.makePart("text", { text: "" })] }),
        Prompt.makeMessage("user", {
          content: [
            Prompt.makePart("text", { text: "see" }),
            Prompt.makePart("file", { mediaType: "image/png", data: "data:image/png;base64,aGk=", fileName: "a.png" }),
            Prompt.makePart("file", { mediaType: "image/png", data: new URL("https://x.org/a.png") }),
            Prompt.makePart("file", { mediaType: "image/png", data: "https://x.org/b.png" })
          ]
        }),
        Prompt.makeMessage("assistant", {
          content: [
            Prompt.makePart("text", { text: "\n" }),
            Prompt.makePart("tool-call", { id: "c", name: "one", params: "{", providerExecuted: false })
          ]
        }),
        Prompt.makeMessage("tool", {
          content: [
            Prompt.makePart("tool-result", {
              id: "c",
              name: "one",
              isFailure: true,
              result: { error: "no" },
              providerExecuted: false
            })
          ]
        })
      ])
      const asked = yield* asking({ prompt })
      expect(asked?.prompt).toEqual([
        {
          role: "user",
          content: [
            { type: "text", text: "see" },
            { type: "file", mediaType: "image/png", data: { type: "data", data: "aGk=" }, filename: "a.png" },
            { type: "file", mediaType: "image/png", data: { type: "url", url: new URL("https://x.org/a.png") } },
            { type: "file", mediaType: "image/png", data: { type: "url", url: new URL("https://x.org/b.png") } }
          ]
        },
        {
          role: "assistant",
          content: [{ type: "tool-call", toolCallId: "c", toolName: "one", input: { malformed_arguments: "{" } }]
        },
        {
          role: "tool",
          content: [
            {
              type: "tool-result",
              toolCallId: "c",
              toolName: "one",
              output: { type: "error-json", value: { error: "no" } }
            }
          ]
        }
      ])
    })
  )
})
