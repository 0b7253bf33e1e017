import { describe, expect, it } from "@effect/vitest"
import { ModelRetry } from "@waystone/core"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Fake from "./Fake.ts"
import * as Kit from "./Kit.ts"
import * as Wire from "./Wire.ts"

const asks: ReadonlyArray<{
  readonly how: string
  readonly ask: (model: LanguageModel.LanguageModel) => ReturnType<typeof asked>
}> = [
  { how: "whole", ask: (model) => asked(model) },
  { how: "streamed", ask: (model) => Stream.runDrain(model.streamText({ prompt: "go" })) }
]

const asked = (model: LanguageModel.LanguageModel) => Effect.asVoid(model.generateText({ prompt: "go" }))

/** What an API says of itself when it fails. */
const refused = (status: number, headers: Readonly<Record<string, string>> = {}): Fake.Answer =>
  Fake.json({ type: "error", error: { type: "some_error", message: "said no", code: status } }, { status, headers })

const failureOf = (protocol: Wire.Protocol, ask: (typeof asks)[number]["ask"], answer: Fake.Answer) =>
  Effect.gen(function* () {
    const server = yield* Fake.serve([answer])
    const error = yield* Effect.flip(Kit.withModel(protocol.model(server.url), ask))
    expect(server.asked.length).toBe(1)
    return { error, failure: ModelRetry.failureOf(error, ModelRetry.table, 0) }
  })

describe.each(Wire.protocols.flatMap((protocol) => asks.map((one) => ({ ...one, protocol }))))(
  "$protocol.name, $how",
  ({ ask, how, protocol }) => {
    it.live.each([
      { status: 400, tag: "InvalidRequestError", class: "fatal" },
      { status: 401, tag: "AuthenticationError", class: "elsewhere" },
      { status: 403, tag: "AuthenticationError", class: "elsewhere" },
      { status: 404, tag: "UnknownError", class: "elsewhere" },
      { status: 408, tag: "UnknownError", class: "retry" },
      { status: 409, tag: "UnknownError", class: "retry" },
      { status: 413, tag: "UnknownError", class: "fatal" },
      { status: 422, tag: "UnknownError", class: "fatal" },
      { status: 429, tag: "RateLimitError", class: "retry" },
      { status: 500, tag: "InternalProviderError", class: "retry" },
      { status: 503, tag: "InternalProviderError", class: "retry" },
      { status: 529, tag: "InternalProviderError", class: "retry" }
    ])("RI-099 status $status is $class, and was asked once", (expected) =>
      Effect.gen(function* () {
        const { error, failure } = yield* failureOf(protocol, ask, refused(expected.status))
        expect(error.reason._tag).toBe(expected.tag)
        expect(failure).toMatchObject({ status: expected.status, class: expected.class })
      })
    )

    it.live.each([
      { what: "a quota that is used up", status: 429, type: "insufficient_quota", message: "You exceeded your quota" },
      { what: "no credit", status: 400, type: "invalid_request_error", message: "Your credit balance is too low" }
    ])("RI-099 $what ($status) is worth another model and no other try, in the provider's words", (one) =>
      Effect.gen(function* () {
        const body = { type: "error", error: { type: one.type, code: one.type, message: one.message } }
        const { error, failure } = yield* failureOf(protocol, ask, Fake.json(body, { status: one.status }))
        expect(error.reason._tag).toBe("QuotaExhaustedError")
        expect(failure).toMatchObject({ status: one.status, class: "elsewhere", retryable: false })
        expect(failure.message).toContain(one.message)
      })
    )

    it.live("RI-006 a limit is told in the provider's words", () =>
      Effect.gen(function* () {
        const { failure } = yield* failureOf(protocol, ask, refused(429))
        expect(failure.message).toContain("said no")
      })
    )

    it.live("RI-016 a server that always fails sees three requests with two retries, and no more", () =>
      Effect.gen(function* () {
        const server = yield* Fake.serve([refused(500)])
        const { outcome } = yield* Kit.run(protocol.model(server.url), { stream: how === "streamed" }).pipe(
          Effect.provide(Kit.fast)
        )
        expect(outcome).toMatchObject({ _tag: "Failed", error: { reason: { _tag: "ModelUnavailable" } } })
        expect(server.asked.length).toBe(3)
      })
    )

    it.live("RI-099 nobody listens: a transport error that is retried", () =>
      Effect.gen(function* () {
        const url = yield* Effect.scoped(Effect.map(Fake.serve([{}]), (server) => server.url))
        const error = yield* Effect.flip(Kit.withModel(protocol.model(url), ask))
        expect(error.reason).toMatchObject({ _tag: "NetworkError", reason: "TransportError" })
        expect(ModelRetry.failureOf(error, ModelRetry.table, 0)).toMatchObject({ class: "retry" })
      })
    )

    it.live("the connection breaks before the answer: a transport error that is retried", () =>
      Effect.gen(function* () {
        const { error, failure } = yield* failureOf(protocol, ask, { reset: true })
        expect(error.reason).toMatchObject({ _tag: "NetworkError", reason: "TransportError" })
        expect(failure.class).toBe("retry")
      })
    )

    it.live("the connection breaks in the answer: it is retried, whatever the package makes of it", () =>
      Effect.gen(function* () {
        const { failure } = yield* failureOf(protocol, ask, { body: "{", cut: true })
        expect(failure.class).toBe("retry")
      })
    )

    it.live.each([
      { what: "breaks in its body", fault: { body: '{"id":', headers: { "content-length": "9000" }, cut: true } },
      { what: "cannot be read", fault: { body: "<html>" } }
    ])("RI-101 a whole reply that $what is counted by an estimate, and one that never came is not", ({ fault }) =>
      Effect.gen(function* () {
        const server = yield* Fake.serve([fault, refused(503), protocol.whole({ text: "4" })])
        const { events } = yield* Kit.run(protocol.model(server.url), { stream: false }).pipe(Effect.provide(Kit.fast))
        const tries = events.flatMap(({ event }) => (event._tag === "TurnCompleted" ? (event.tries ?? []) : []))
        expect(tries[0]?.usage).toMatchObject({ estimated: true })
        expect(tries[0]?.usage?.input).toBeGreaterThan(0)
        expect(tries[1]?.usage).toMatchObject({ input: 0, output: 0 })
      })
    )

    it.live.each([0, 1])("an answer that is no JSON (of a stream, event %i) is asked for again", (position) =>
      Effect.gen(function* () {
        const events = (protocol.streamed({ text: "x" }).body ?? "").split("\n\n").slice(0, position)
        const body = how === "whole" ? "<html>" : [...events, "data: <html>", ""].join("\n\n")
        const { error, failure } = yield* failureOf(protocol, ask, { body })
        expect(error.reason._tag).toBe("InvalidOutputError")
        expect(failure.class).toBe("retry")
      })
    )

    it.live.each([true, false])(
      "RI-099 an interrupted call aborts its request and is not sent again (the answer had begun: %s)",
      (begun) =>
        Effect.gen(function* () {
          const body = begun ? (protocol.streamed({ text: "x" }).body ?? "").slice(0, 40) : ""
          const server = yield* Fake.serve([{ body, hang: true }])
          const fiber = yield* Effect.forkChild(Kit.withModel(protocol.model(server.url), ask))
          yield* Effect.repeat(Effect.sleep("2 millis"), { until: () => server.asked.length === 1 })
          yield* Fiber.interrupt(fiber)
          yield* Effect.repeat(Effect.sleep("2 millis"), { until: () => server.left() === 1 })
          expect(server.asked.length).toBe(1)
        })
    )
  }
)

describe.each(asks)("Retry-After, $how", ({ ask }) => {
  it.live.each([
    { headers: { "retry-after-ms": "1500" }, ms: 1500 },
    { headers: { "Retry-After": "2" }, ms: 2000 },
    { headers: { "retry-after": "0.5" }, ms: 500 },
    { headers: { "retry-after-ms": "1500", "retry-after": "9" }, ms: 1500 },
    { headers: { "retry-after": "86400" }, ms: 86_400_000 },
    { headers: { "retry-after": "-1" }, ms: undefined },
    { headers: { "retry-after": "abc" }, ms: undefined },
    { headers: {}, ms: undefined }
  ])("RI-006 429 with $headers waits $ms ms", ({ headers, ms }) =>
    Effect.gen(function* () {
      const { error, failure } = yield* failureOf(Wire.openaiChat, ask, refused(429, { ...headers }))
      expect(error.retryAfter === undefined ? undefined : Duration.toMillis(error.retryAfter)).toBe(ms)
      expect(failure.retryAfterMs).toBe(ms)
    })
  )

  it.live.each([429, 503])("RI-006 %s with a date waits until then", (status) =>
    Effect.gen(function* () {
      const date = "Mon, 30 Nov 2126 12:00:03 GMT"
      const { error } = yield* failureOf(Wire.anthropic, ask, refused(status, { "retry-after": date }))
      if (status === 429) expect(error.retryAfter).toBeDefined()
      else expect(ModelRetry.failureOf(error, ModelRetry.table, Date.parse(date) - 3000).retryAfterMs).toBe(3000)
    })
  )
})

it.live("RI-006 a Run waits as long as the provider asked, and says so in its journal", () =>
  Effect.gen(function* () {
    const server = yield* Fake.serve([refused(429, { "retry-after-ms": "7" }), Wire.anthropic.streamed({ text: "ok" })])
    const { events, outcome } = yield* Kit.run(Wire.anthropic.model(server.url), { stream: true })
    expect(outcome).toMatchObject({ _tag: "Completed", output: "ok" })
    const tries = events.flatMap(({ event }) => (event._tag === "TurnCompleted" ? (event.tries ?? []) : []))
    expect(tries).toMatchObject([{ failure: { retryAfterMs: 7, status: 429 } }, {}])
    expect(server.asked.length).toBe(2)
  })
)

it.live("an error keeps the headers that tell something, the body, and no cookie", () =>
  Effect.gen(function* () {
    const headers = { "x-request-id": "req_1", "set-cookie": "session=secret", "x-ratelimit-remaining-tokens": "0" }
    const { error } = yield* failureOf(Wire.openaiChat, asked, refused(400, headers))
    const { reason } = error
    const http = "http" in reason ? reason.http : undefined
    expect(http?.response?.headers).toEqual({ "x-request-id": "req_1", "x-ratelimit-remaining-tokens": "0" })
    expect(http?.body).toContain("said no")
    expect(error.message).toContain("said no")
  })
)

it.live("without a key nothing is sent, and the error says what is missing", () =>
  Effect.gen(function* () {
    const { createAnthropic } = yield* Effect.promise(() => import("@ai-sdk/anthropic"))
    const key = process.env["ANTHROPIC_API_KEY"]
    yield* Effect.acquireRelease(
      Effect.sync(() => delete process.env["ANTHROPIC_API_KEY"]),
      () => Effect.sync(() => key !== undefined && (process.env["ANTHROPIC_API_KEY"] = key))
    )
    const error = yield* Effect.flip(Kit.withModel(createAnthropic()("claude-sonnet-4-5"), asked))
    expect(error.reason).toMatchObject({ _tag: "AuthenticationError", kind: "MissingKey" })
    expect(error.message).toContain("ANTHROPIC_API_KEY")
  })
)
