import { describe, expect, it } from "@effect/vitest"
import { Agent, MemoryStore, ModelRetry, Run } from "@waystone/core"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { setTimeout } from "node:timers/promises"
import * as AiSdk from "../src/AiSdk.ts"
import * as Script from "./servers/Script.ts"
import { type ModelServer, serve } from "./servers/serve.ts"
import { google, type Spoken, spoken } from "./Spoken.ts"

/** Real time passes for the server, while the Run's own clock stands still. */
const really = (millis: number) => Effect.promise(() => setTimeout(millis))
const until = <E, R>(condition: Effect.Effect<boolean, E, R>) =>
  Effect.repeat(Effect.andThen(really(2), condition), { until: (holds) => holds })
const count = (server: ModelServer) => Effect.map(server.requests, ({ length }) => length)

const second = (schedule: Schedule.Schedule<unknown>) =>
  Layer.succeed(ModelRetry.ModelRetry, {
    table: ModelRetry.table,
    schedule: Schedule.upTo(schedule, { times: 2 }),
    longestWait: Duration.seconds(60)
  })

const layer = ({ model }: Spoken, server: ModelServer, schedule: Schedule.Schedule<unknown>) =>
  Layer.mergeAll(AiSdk.layer(model(server.url)), MemoryStore.layer, second(schedule))

const events = Effect.map(Stream.runCollect(Run.events("r", { follow: false })), (entries) =>
  entries.map(({ event }) => event)
)
const tries = Effect.map(events, (all) =>
  all.flatMap((event) => (event._tag === "TurnCompleted" || event._tag === "TurnFailed" ? (event.tries ?? []) : []))
)

describe.each([...spoken, google])("$protocol", (one) => {
  const { protocol } = one
  /** The first request gets the fault, all others a text. */
  const once = (fault: Script.Fault) =>
    serve({ protocol, script: (_, number) => (number === 0 ? fault : { text: "Hello" }) })

  describe.each([
    { stream: true, limit: 60_000 },
    { stream: false, limit: 120_000 }
  ] as const)("stream: $stream", ({ limit, stream }) => {
    it.effect.each([
      { how: "says nothing", fault: Script.hang },
      { how: "only keeps the connection open (RI-112)", fault: Script.keepAliveHang }
    ])("a server that $how is given up when the time is over, not earlier, and asked again", ({ fault }) =>
      Effect.gen(function* () {
        const server = yield* once(fault)
        const agent = Agent.make("a", { instructions: "i", stream })
        yield* Effect.gen(function* () {
          const running = yield* Effect.forkChild(Run.start(agent, { runId: "r", task: "go" }))
          yield* until(Effect.map(count(server), (asked) => asked === 1))
          yield* TestClock.adjust(Duration.millis(limit - 1))
          yield* really(50)
          expect(yield* count(server)).toBe(1)
          yield* TestClock.adjust("1 millis")
          expect(yield* Fiber.join(running)).toMatchObject({ _tag: "Completed", output: "Hello" })
          expect(yield* count(server)).toBe(2)
          expect(yield* tries).toMatchObject([{ failure: { tag: "ModelTimeout", retryable: true } }, {}])
        }).pipe(Effect.provide(layer(one, server, Schedule.recurs(2))))
      })
    )
  })

  it.effect.each([
    { headers: { "retry-after-ms": "1500" }, ms: 1500 },
    { headers: { "retry-after": "2" }, ms: 2000 },
    { headers: { "retry-after": "0.25" }, ms: 250 },
    // The clock of these tests begins in 1970.
    { headers: { "retry-after": "Thu, 01 Jan 1970 00:00:03 GMT" }, ms: 3000 },
    { headers: { "retry-after": "-1" }, ms: 700 },
    { headers: { "retry-after": "abc" }, ms: 700 },
    { headers: {}, ms: 700 }
  ])("RI-006 RI-016 after a 429 with $headers the second and last request comes at $ms ms", ({ headers, ms }) =>
    Effect.gen(function* () {
      const server = yield* once(Script.status(429, { ...headers }))
      const agent = Agent.make("a", { instructions: "i" })
      yield* Effect.gen(function* () {
        const waits: Array<number> = []
        const running = yield* Run.stream(agent, { runId: "r", task: "go" }).pipe(
          Stream.runForEach((update) => Effect.sync(() => update._tag === "TryFailed" && waits.push(update.waitMs))),
          Effect.forkChild
        )
        yield* until(Effect.sync(() => waits.length === 1))
        expect(waits).toEqual([ms])
        yield* TestClock.adjust(Duration.millis(ms - 1))
        yield* really(20)
        expect(yield* count(server)).toBe(1)
        yield* TestClock.adjust("1 millis")
        yield* Fiber.join(running)
        expect(yield* count(server)).toBe(2)
        expect(yield* tries).toMatchObject([{ failure: { status: 429 } }, {}])
        // No request is left to come.
        yield* TestClock.adjust("1 hour")
        yield* really(20)
        expect(yield* count(server)).toBe(2)
      }).pipe(Effect.provide(layer(one, server, Schedule.spaced("700 millis"))))
    })
  )

  it.effect("RI-006 after a 429 that asks for a day the Run rests for a day, and nothing else is asked", () =>
    Effect.gen(function* () {
      const server = yield* once(Script.status(429, { "retry-after": "86400" }))
      const agent = Agent.make("a", { instructions: "i" })
      yield* Effect.gen(function* () {
        const running = yield* Effect.forkChild(Effect.flip(Run.start(agent, { runId: "r", task: "go" })))
        yield* until(Effect.map(count(server), (asked) => asked === 1))
        yield* really(50)
        yield* TestClock.adjust("1 minute")
        expect(yield* Fiber.join(running)).toMatchObject({ _tag: "Retryable", reason: { _tag: "ModelUnavailable" } })
        expect(yield* Run.get("r")).toMatchObject({
          status: "waiting",
          wakeAt: 86_400_000,
          waiting: [{ kind: "retry" }]
        })
        expect(yield* count(server)).toBe(1)
      }).pipe(Effect.provide(layer(one, server, Schedule.spaced("700 millis"))))
    })
  )

  it.live(
    "RI-065 RI-124 an overload inside a stream is another try: who watches hears of it, and text is not doubled",
    () =>
      Effect.gen(function* () {
        const server = yield* once(Script.overloadInStream("He"))
        const agent = Agent.make("a", { instructions: "i" })
        yield* Effect.gen(function* () {
          const updates = yield* Stream.runCollect(Run.stream(agent, { runId: "r", task: "go" }))
          const told = updates.flatMap((update) => {
            if (update._tag === "TextDelta") return update.text === "" ? [] : [`${update.try}: ${update.text}`]
            if (update._tag === "Committed") return update.event._tag === "TurnStarted" ? ["turn"] : []
            return update._tag.startsWith("Try") ? [update._tag] : []
          })
          expect(told).toEqual(["turn", "1: He", "TryFailed", "TryStarted", "2: Hello"])
          expect(updates.at(-1)).toMatchObject({ _tag: "Ended", outcome: { _tag: "Completed", output: "Hello" } })
          expect(yield* count(server)).toBe(2)
        }).pipe(Effect.provide(layer(one, server, Schedule.recurs(2))))
      })
  )
})
