import type { LanguageModelV4, LanguageModelV4StreamPart } from "@ai-sdk/provider"
import { describe, expect, it } from "@effect/vitest"
import { ModelRetry, Usage } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type * as AiError from "effect/ai/AiError"
import * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as AiSdk from "../src/AiSdk.ts"
import * as Fake from "./Fake.ts"
import * as Kit from "./Kit.ts"
import * as Wire from "./Wire.ts"

const reply: Wire.Reply = {
  thought: { text: "Hm.", signature: "c2ln" },
  text: "Hej",
  calls: [{ id: "call_a", name: "weather", args: '{"city":"Oslo"}' }]
}

/** A `fetch` that answers from memory; the body ends, or its connection breaks, after so many bytes. */
const replaying = (body: string, ends: { readonly after: number; readonly broken: boolean }): typeof fetch => {
  const bytes = new TextEncoder().encode(body).slice(0, ends.after)
  return () => {
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(bytes),
      pull: (controller) =>
        ends.broken ? controller.error(new TypeError("terminated", { cause: socketError })) : controller.close()
    })
    return Promise.resolve(new globalThis.Response(stream, { headers: { "content-type": "text/event-stream" } }))
  }
}

const socketError = Object.assign(new Error("other side closed"), { code: "UND_ERR_SOCKET" })

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 }
}

const deferred = { prompt: "go", disableToolCallResolution: true, toolCallValidation: "deferred" } as const

/** What a stream left behind: its parts, and how it failed. */
const collected = (protocol: Wire.Protocol, fetch: typeof globalThis.fetch) =>
  Kit.withModel(protocol.model("http://127.0.0.1:1", { fetch }), (model) => {
    const parts: Array<Response.AnyPart> = []
    return Stream.runForEach(model.streamText(deferred), (part) => Effect.sync(() => parts.push(part))).pipe(
      Effect.result,
      Effect.map((result) => ({ parts, error: Result.isFailure(result) ? result.failure : undefined }))
    )
  })

const said = (parts: ReadonlyArray<Response.AnyPart>) => JSON.stringify(Prompt.fromResponseParts(parts).content)
const finishes = (parts: ReadonlyArray<Response.AnyPart>) => parts.filter((part) => part.type === "finish")
const isRetried = (error: AiError.AiError | undefined) =>
  error !== undefined && ModelRetry.failureOf(error, ModelRetry.table, 0).class === "retry"

/** How the stream ends if its body ends at each of these places. */
const endsOf = Effect.fnUntraced(function* (
  protocol: Wire.Protocol,
  body: string,
  places: ReadonlyArray<number>,
  broken: boolean
) {
  const whole = yield* collected(protocol, replaying(body, { after: body.length, broken: false }))
  expect(whole.error).toBeUndefined()
  const [finish] = finishes(whole.parts)
  expect(["stop", "tool-calls"]).toContain(finish?.reason)
  return yield* Effect.forEach(
    places,
    (after) =>
      Effect.map(collected(protocol, replaying(body, { after, broken })), ({ error, parts }) => {
        const reasons = finishes(parts).map(({ reason }) => reason)
        const asWhole =
          error === undefined &&
          said(parts) === said(whole.parts) &&
          reasons.length === 1 &&
          reasons[0] === finish?.reason
        const asCut = isRetried(error) && reasons.every((reason) => reason === "error")
        const end = asWhole ? "whole" : asCut ? "cut" : "wrong"
        return { after, end, said: said(parts), error: error?.reason._tag }
      }),
    { concurrency: 16 }
  )
})

it.live(
  "S1 a body that ends at any byte gives the whole reply or an error worth another try",
  () =>
    Effect.gen(function* () {
      const { body = "" } = Wire.compatible.streamed({ calls: reply.calls ?? [] })
      const every = Array.from({ length: body.length }, (_, place) => place)
      const ends = yield* endsOf(Wire.compatible, body, every, false)
      expect(ends.filter(({ end }) => end === "wrong")).toEqual([])
      // The end of the reply is known before its last events, usage and [DONE].
      const last = ends.findLast(({ end }) => end === "cut")
      expect(last?.after).toBeLessThan(body.indexOf('"usage"'))
      expect(last?.after).toBeGreaterThan(body.indexOf('"tool_calls"'))
    }),
  120_000
)

describe.each(Wire.protocols)("$name", (protocol) => {
  it.live.each([{ broken: false }, { broken: true }])(
    "S1 a body that ends around any event gives the whole reply or an error worth another try (broken: $broken)",
    ({ broken }) =>
      Effect.gen(function* () {
        const { body = "" } = protocol.streamed(reply)
        const events = [...body.matchAll(/\n\n/g)].map(({ index }) => index + 2)
        const places = [0, ...events.flatMap((end) => [end - 20, end - 2, end - 1, end])].slice(0, -1)
        const ends = yield* endsOf(protocol, body, places, broken)
        expect(ends.filter(({ end }) => end === "wrong")).toEqual([])
        expect(ends.filter(({ end }) => end === "cut").length).toBeGreaterThan(0)
      })
  )

  it.live.each([true, false])("RI-166 usage comes in classes that do not overlap (stream: %s)", (stream) =>
    Effect.gen(function* () {
      const server = yield* Fake.serve([stream ? protocol.streamed({ text: "x" }) : protocol.whole({ text: "x" })])
      const { events } = yield* Kit.run(protocol.model(server.url), { stream })
      const [usage] = events.flatMap(({ event }) => (event._tag === "TurnCompleted" ? [event.usage] : []))
      expect(usage).toEqual(
        protocol === Wire.anthropic
          ? { input: 9, cacheRead: 17_102, cacheWrite: 40, output: 30, reasoning: 0 }
          : { input: 86, cacheRead: 1920, cacheWrite: 0, output: 18, reasoning: 12 }
      )
      if (usage !== undefined) expect(Usage.total(usage)).toBe(protocol === Wire.anthropic ? 17_181 : 2036)
    })
  )
})

const chatty = [Wire.openaiChat, Wire.compatible]
const endings = [
  ...chatty.flatMap((protocol) => [
    { protocol, finish: "length", reason: "length" },
    { protocol, finish: "content_filter", reason: "content-filter" },
    { protocol, finish: "something_new", reason: "other" }
  ]),
  { protocol: Wire.openaiResponses, finish: "max_output_tokens", reason: "length" },
  { protocol: Wire.openaiResponses, finish: "content_filter", reason: "content-filter" },
  { protocol: Wire.anthropic, finish: "max_tokens", reason: "length" },
  { protocol: Wire.anthropic, finish: "model_context_window_exceeded", reason: "length" },
  { protocol: Wire.anthropic, finish: "pause_turn", reason: "pause" },
  { protocol: Wire.google, finish: "MAX_TOKENS", reason: "length" },
  { protocol: Wire.google, finish: "SAFETY", reason: "content-filter" }
]

describe.each(endings.flatMap((one) => [true, false].map((stream) => ({ ...one, stream }))))(
  "$protocol.name says $finish (stream: $stream)",
  ({ finish, protocol, reason, stream }) => {
    it.live(`RI-071 the reply ends with ${reason}`, () =>
      Effect.gen(function* () {
        const partial = { text: "Hel", finish }
        const server = yield* Fake.serve([stream ? protocol.streamed(partial) : protocol.whole(partial)])
        const parts = yield* Kit.withModel(protocol.model(server.url), (model) =>
          stream
            ? Effect.map(Stream.runCollect(model.streamText(deferred)), (all): ReadonlyArray<Response.AnyPart> => all)
            : Effect.map(model.generateText(deferred), ({ content }): ReadonlyArray<Response.AnyPart> => content)
        )
        expect(finishes(parts)).toMatchObject([{ reason }])
        expect(said(parts)).toContain("Hel")
      })
    )
  }
)

it.live.each([true, false])(
  "RI-071 a content filter stops the Run with the partial text, and no call runs (stream: %s)",
  (stream) =>
    Effect.gen(function* () {
      const filtered: Wire.Reply = { ...reply, text: "Hel", finish: "content_filter" }
      const server = yield* Fake.serve([stream ? Wire.openaiChat.streamed(filtered) : Wire.openaiChat.whole(filtered)])
      const { events, outcome } = yield* Kit.run(Wire.openaiChat.model(server.url), { stream })
      expect(outcome).toMatchObject({ _tag: "Stopped", reason: { _tag: "ContentFiltered" } })
      const calls = events.flatMap(({ event }) => (event._tag === "ToolCallCompleted" ? [event] : []))
      expect(calls).toMatchObject([{ ending: "not-executed" }])
    })
)

const refusing: ReadonlyArray<{ readonly protocol: Wire.Protocol; readonly answer: (stream: boolean) => Fake.Answer }> =
  [
    {
      protocol: Wire.anthropic,
      answer: (stream) =>
        stream
          ? Wire.anthropic.streamed({ text: "No.", finish: "refusal" })
          : Wire.anthropic.whole({ text: "No.", finish: "refusal" })
    },
    ...chatty.map((protocol) => ({
      protocol,
      answer: (stream: boolean) => {
        const { body = "" } = stream ? protocol.streamed({ text: "N" }) : protocol.whole({ text: "N" })
        return { body: body.replace('"content":"N"', '"content":null,"refusal":"N"') }
      }
    }))
  ]

describe.each(refusing.flatMap((one) => [true, false].map((stream) => ({ ...one, stream }))))(
  "$protocol.name (stream: $stream)",
  ({ answer, protocol, stream }) => {
    it.live(
      "RI-150 RI-101 a refusal ends the Run after one request, with its reason, and what it cost is counted",
      () =>
        Effect.gen(function* () {
          const server = yield* Fake.serve([answer(stream)])
          const { events, outcome } = yield* Kit.run(protocol.model(server.url), { stream })
          expect(outcome).toMatchObject({ _tag: "Failed", error: { reason: { _tag: "ModelRefusal" } } })
          expect(server.asked.length).toBe(1)
          const failed = events.flatMap(({ event }) => (event._tag === "TurnFailed" ? [event] : []))
          expect(failed[0]?.failure.message).toMatch(/N/)
          expect(failed[0]?.usage.cacheRead).toBeGreaterThan(1000)
          expect(failed[0]?.usage.estimated).toBeUndefined()
        })
    )
  }
)

const begun = (protocol: Wire.Protocol, letters: string): string => {
  const { body = "" } = protocol.streamed({ text: letters })
  const at = body.lastIndexOf(`"${letters.at(-1)}"`)
  return body.slice(0, body.indexOf("\n\n", at) + 2)
}

const overloads = [
  {
    protocol: Wire.anthropic,
    how: "after the first words",
    body: `${begun(Wire.anthropic, "He")}${Fake.named([{ type: "error", error: { type: "overloaded_error", message: "Overloaded" } }])}`
  },
  {
    protocol: Wire.anthropic,
    how: "before anything",
    body: Fake.named([{ type: "error", error: { type: "overloaded_error", message: "Overloaded" } }])
  },
  ...chatty.map((protocol) => ({
    protocol,
    how: "after the first words",
    body: `${begun(protocol, "He")}${Fake.sse([{ error: { message: "busy", type: "server_error", code: null, param: null } }])}`
  })),
  {
    protocol: Wire.google,
    how: "after the first words",
    body: `${begun(Wire.google, "He")}${Fake.sse([{ error: { code: 503, message: "busy", status: "UNAVAILABLE" } }])}`
  },
  ...[Wire.anthropic, Wire.openaiChat].map((protocol) => ({
    protocol,
    how: "never: the connection is cut",
    body: begun(protocol, "He")
  }))
]

describe.each(overloads)("$protocol.name, an overload $how", ({ body, protocol }) => {
  it.live("RI-065 RI-101 RI-124 is tried again without doubling text, and the failed try is counted", () =>
    Effect.gen(function* () {
      const server = yield* Fake.serve([{ body }, protocol.streamed({ text: "Hello" })])
      const { events, outcome } = yield* Kit.run(protocol.model(server.url), { stream: true }).pipe(
        Effect.provide(Kit.fast)
      )
      expect(outcome).toMatchObject({ _tag: "Completed", output: "Hello" })
      expect(server.asked.length).toBe(2)
      const started = events.filter(({ event }) => event._tag === "TurnStarted")
      expect(started.length).toBe(1)
      const tries = events.flatMap(({ event }) => (event._tag === "TurnCompleted" ? (event.tries ?? []) : []))
      expect(tries).toMatchObject([{ failure: { tag: "ModelUnavailable", retryable: true } }, {}])
      const [failed] = tries
      if (body.includes("He") || body.includes('"H"')) {
        expect(Usage.total(failed?.usage ?? Usage.zero)).toBeGreaterThan(0)
        expect(failed?.usage?.estimated).toBe(true)
      }
    })
  )
})

it.live("an error event with a word that nobody knows is not tried again, but the table may say so (RI-099)", () =>
  Effect.gen(function* () {
    const event = { type: "error", error: { type: "brand_new_error", message: "new" } }
    const { error } = yield* collected(
      Wire.anthropic,
      replaying(`${begun(Wire.anthropic, "He")}${Fake.named([event])}`, { after: 1e6, broken: false })
    )
    if (error === undefined) throw new Error("did not fail")
    expect(isRetried(error)).toBe(false)
    const types = { brand_new_error: "retry" as const }
    expect(ModelRetry.failureOf(error, { ...ModelRetry.table, types }, 0).class).toBe("retry")
  })
)

it.live("S2 a stream that is left in the middle gives its connection back", () =>
  Effect.gen(function* () {
    const server = yield* Fake.serve([{ body: begun(Wire.openaiChat, "Hello"), hang: true }])
    const parts = yield* Kit.withModel(Wire.openaiChat.model(server.url), (model) =>
      Stream.runCollect(Stream.takeUntil(model.streamText(deferred), (part) => part.type === "text-delta"))
    )
    expect(parts.at(-1)?.type).toBe("text-delta")
    yield* Effect.repeat(Effect.sleep("2 millis"), { until: () => server.left() === 1 })
  })
)

it.effect.each(["is left in the middle", "ends", "fails"])(
  "S2 a stream of a package that hears no abort is given back too where it %s",
  (how) =>
    Effect.gen(function* () {
      let returned = 0
      const stream = new ReadableStream<LanguageModelV4StreamPart>({
        start: (controller) => {
          controller.enqueue({ type: "text-start", id: "t" })
          controller.enqueue({ type: "text-delta", id: "t", delta: "Hello" })
          if (how === "ends")
            controller.enqueue({ type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage })
          if (how === "fails") controller.enqueue({ type: "error", error: { message: "no", code: 400 } })
        },
        cancel: () => {
          returned++
        }
      })
      const deaf: LanguageModelV4 = {
        specificationVersion: "v4",
        provider: "deaf.chat",
        modelId: "deaf-1",
        supportedUrls: {},
        doGenerate: () => Promise.reject(new Error("not asked")),
        doStream: () => Promise.resolve({ stream })
      }
      yield* Kit.withModel(deaf, (model) => {
        const parts = model.streamText(deferred)
        const some =
          how === "ends" ? parts : Stream.takeUntil(parts, (part) => part.type === "text-delta" && how !== "fails")
        return Effect.exit(Stream.runDrain(some))
      })
      expect(returned).toBe(1)
    })
)

it.live("S2 an unused layer asks nobody", () =>
  Effect.gen(function* () {
    const server = yield* Fake.serve([{}])
    yield* Effect.scoped(Layer.build(AiSdk.layer(Wire.openaiChat.model(server.url))))
    expect(server.asked).toEqual([])
  })
)
