import { describe, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as AiError from "effect/ai/AiError"
import { TestClock } from "effect/testing"
import * as Guard from "../src/Guard.ts"
import type { Observer } from "../src/Observer.ts"
import * as Plugin from "../src/Plugin.ts"
import * as Run from "../src/Run.ts"
import type { RunUpdate } from "../src/RunUpdate.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import * as YieldingStore from "../src/testing/YieldingStore.ts"
import { agentOf, during, guard, journal, ofKind, scene, settled, status, steady } from "./support/turns.ts"

const { call, calls, delta, error, hang, reply, stream, text, wait } = ScriptedModel
const input = { runId: "r", task: "go" }
type Update = RunUpdate<string, unknown>

const deltas = (updates: ReadonlyArray<Update>) =>
  updates.flatMap((update) => {
    if (update._tag === "TextDelta") return [`${update.try} ${update.text}`]
    return update._tag === "TryStarted" ? [`try ${update.try} of turn ${update.turn}`] : []
  })
const committed = (updates: ReadonlyArray<Update>) => updates.filter((update) => update._tag === "Committed")
const kinds = (updates: ReadonlyArray<Update>) => committed(updates).map(({ event }) => event._tag)
const ends = (updates: ReadonlyArray<Update>) =>
  updates.flatMap((update, i) =>
    update._tag === "Ended" || update._tag === "Failed" ? [{ update, last: i === updates.length - 1 }] : []
  )
/** The one end of a stream, which is its last update. */
const endOf = (updates: ReadonlyArray<Update>) => {
  const found = ends(updates)
  expect(found).toHaveLength(1)
  expect(found[0]?.last).toBe(true)
  return found[0]?.update
}

describe("tries in a stream", () => {
  it.effect.each(["overloaded_error", "rate_limit_error", "api_error"])(
    "RI-065 %s inside an open stream is tried again, and the consumer is told that the first text is void",
    (type) =>
      scene([stream([delta("He"), error({ type, message: "busy" })]), stream([delta("Hel"), delta("lo")])], () =>
        Effect.gen(function* () {
          const agent = yield* agentOf()
          const updates = yield* during(Stream.runCollect(Run.stream(agent, input)), "1 second")
          expect(endOf(updates)).toMatchObject({ _tag: "Ended", outcome: { _tag: "Completed", output: "Hello" } })
          expect(deltas(updates)).toEqual(["1 He", "try 2 of turn 1", "2 Hel", "2 lo"])
          const [turn] = ofKind(yield* journal("r"), "TurnCompleted")
          expect(turn?.reply).toEqual([{ type: "text", text: "Hello" }])
          expect(turn?.tries).toMatchObject([{ failure: { retryable: true } }, {}])
        }).pipe(Effect.provide(steady))
      )
  )

  it.effect.each([
    ["of a type that is the request's fault", { type: "invalid_request_error" }],
    ["that says nothing", "boom"]
  ] as const)("RI-065 an error inside a stream %s is Fatal", ([, what]) =>
    scene([stream([delta("He"), error(what)])], () =>
      Effect.gen(function* () {
        const updates = yield* Stream.runCollect(Run.stream(yield* agentOf(), input))
        expect(endOf(updates)).toMatchObject({
          _tag: "Failed",
          error: { _tag: "Fatal", reason: { _tag: "ModelRejected" } }
        })
      })
    )
  )

  it.effect("a try that failed is told at once, with how long the provider makes us wait", () => {
    const retryAfter = Duration.seconds(7)
    const limited = AiError.make({ module: "m", method: "m", reason: new AiError.RateLimitError({ retryAfter }) })
    return scene([stream([error(limited)]), text("Hello")], () =>
      Effect.gen(function* () {
        const seen: Array<Update> = []
        const running = yield* Effect.forkChild(
          Stream.runForEach(Run.stream(yield* agentOf(), input), (update) => Effect.sync(() => void seen.push(update)))
        )
        yield* Effect.repeat(TestClock.adjust("10 millis").pipe(Effect.andThen(settled)), { times: 9 })
        expect(seen.at(-1)).toMatchObject({
          _tag: "TryFailed",
          turn: 1,
          try: 1,
          failure: { tag: "ModelUnavailable" },
          waitMs: 7000
        })
        yield* during(Fiber.join(running), "7 seconds")
        expect(endOf(seen)).toMatchObject({ _tag: "Ended", outcome: { output: "Hello" } })
      })
    )
  })

  it.effect("RI-065 an AiError inside a stream counts as what it is", () => {
    const limited = AiError.make({ module: "m", method: "m", reason: new AiError.RateLimitError({}) })
    return scene([stream([delta("He"), error(limited)]), text("Hello")], () =>
      Effect.gen(function* () {
        const updates = yield* during(Stream.runCollect(Run.stream(yield* agentOf(), input)), "1 second")
        expect(endOf(updates)).toMatchObject({ _tag: "Ended", outcome: { output: "Hello" } })
      }).pipe(Effect.provide(steady))
    )
  })

  it.effect("RI-124 a failure before the first content starts no second turn", () => {
    const start: ScriptedModel.Chunk = { type: "text-start", id: "text" }
    const script = [stream([start, error({ type: "overloaded_error" })]), status(503), text("fine")]
    return scene(script, () =>
      Effect.gen(function* () {
        const updates = yield* during(Stream.runCollect(Run.stream(yield* agentOf(), input)), "3 seconds")
        expect(kinds(updates)).toEqual([
          "RunAccepted",
          "RunStarted",
          "AttemptStarted",
          "TurnStarted",
          "TurnCompleted",
          "RunFinished"
        ])
        expect(deltas(updates)).toEqual(["try 2 of turn 1", "try 3 of turn 1", "3 fine"])
      }).pipe(Effect.provide(steady))
    )
  })
})

class Hook extends Context.Service<Hook, Plugin.Plugin>()("test/Hook") {}
const hook = (attempt: Observer["attempt"]) =>
  Layer.succeed(Hook, { [Plugin.PluginId]: { name: "hook", observers: [{ name: "hook", attempt }] } })

describe("ends of a stream", () => {
  const asks = guard(({ proposal }) => (proposal._tag === "Call" ? Guard.ask("sure?") : Guard.allow))
  const never = guard(() => Guard.stop("no"))

  it.effect.each([
    ["completed", [text("ok")], [], { _tag: "Ended", outcome: { _tag: "Completed" } }],
    ["suspended", [call("save", { text: "a" })], [asks], { _tag: "Ended", outcome: { _tag: "Suspended" } }],
    ["stopped", [], [never], { _tag: "Ended", outcome: { _tag: "Stopped" } }],
    ["failed", [status(400)], [], { _tag: "Failed", error: { _tag: "Fatal" } }],
    ["resting", [status(429, { "retry-after": "100" })], [], { _tag: "Failed", error: { _tag: "Retryable" } }]
  ] as const)("RI-113 the stream of a Run that is %s ends with exactly that", ([, script, guards, expected]) =>
    scene(
      script,
      () =>
        Effect.gen(function* () {
          const updates = yield* Stream.runCollect(Run.stream(yield* agentOf(), input))
          expect(endOf(updates)).toMatchObject(expected)
          expect(committed(updates).map(({ event }) => event)).toEqual(yield* journal("r"))
          const again = yield* Stream.runCollect(Run.stream(yield* agentOf(), input))
          expect(again).toHaveLength(1)
          expect(endOf(again)?._tag).toBe(
            expected._tag === "Failed" && expected.error._tag === "Retryable" ? "Ended" : expected._tag
          )
        }),
      { guards }
    )
  )

  it.effect("RI-113 a stream that cannot begin ends with why, too", () =>
    scene([], () =>
      Effect.gen(function* () {
        const updates = yield* Stream.runCollect(Run.stream(yield* agentOf(), { runId: "no id", task: "go" }))
        expect(endOf(updates)).toMatchObject({ _tag: "Failed", error: { reason: { _tag: "RunIdInvalid" } } })
        const unknown = yield* Stream.runCollect(Run.streamResume(yield* agentOf(), { runId: "unknown" }))
        expect(endOf(unknown)).toMatchObject({ _tag: "Failed", error: { reason: { _tag: "RunNotFound" } } })
      })
    )
  )

  it.effect("RI-113 the stream of a Run that is cancelled meanwhile ends with that", () =>
    scene([hang], () =>
      Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(Stream.runCollect(Run.stream(yield* agentOf(), input)))
        yield* TestClock.adjust("1 second")
        yield* Run.cancel({ runId: "r", by: "me" })
        yield* TestClock.adjust("1 second")
        const updates = yield* Fiber.join(fiber)
        expect(endOf(updates)).toMatchObject({ _tag: "Ended", outcome: { _tag: "Cancelled", by: "me" } })
        expect(kinds(updates)).toContain("CancelRequested")
      })
    )
  )

  it.effect.each([
    ["works", () => Effect.succeed(() => Effect.void)],
    ["fails", () => Effect.succeed(() => Effect.die("the hook has a bug"))],
    ["hangs", () => Effect.succeed(() => Effect.never)],
    ["cannot begin", () => Effect.die("the hook has a bug")]
  ] as const)("RI-113 with a finish hook that %s both streams around an approval end", ([, attempt]) =>
    scene(
      [call("save", { text: "a" }), text("done")],
      () =>
        Effect.gen(function* () {
          const agent = yield* agentOf()
          const first = endOf(yield* during(Stream.runCollect(Run.stream(agent, input)), "1 second"))
          if (first?._tag !== "Ended" || first.outcome._tag !== "Suspended") throw new Error("it waits for an approval")
          const digest = first.outcome.waiting[0]?.digest ?? ""
          yield* Run.answer(agent, { runId: "r", callId: "t1.0", answer: { _tag: "Approve", digest }, by: "me" })
          const second = yield* during(Stream.runCollect(Run.streamResume(agent, input)), "1 second")
          expect(endOf(second)).toMatchObject({ _tag: "Ended", outcome: { _tag: "Completed", output: "done" } })
        }).pipe(Effect.provide(hook(attempt))),
      { guards: [asks] }
    )
  )
})

describe("slow and absent consumers", () => {
  const many = (n: number) => Array.from({ length: n }, (_, i) => delta(`${i} `))
  const long = [
    reply([call("look", { at: 1 })]),
    stream([...many(400), call("look", { at: 2 })]),
    ...Array.from({ length: 5 }, (_, at) =>
      calls([
        ["look", { at }],
        ["save", { text: "a" }]
      ])
    ),
    text("done")
  ]

  it.effect("RI-113 a consumer that reads only after the end misses no event and gets the end", () =>
    scene(long, () =>
      Effect.gen(function* () {
        const over = yield* Deferred.make<void>()
        const fiber = yield* Run.stream(yield* agentOf(), input).pipe(
          Stream.tap(() => Deferred.await(over)),
          Stream.runCollect,
          Effect.forkChild
        )
        yield* settled
        while (
          (yield* Effect.option(Run.get("r"))).pipe(
            (found) => found._tag === "None" || found.value.status === "running"
          )
        )
          yield* Effect.yieldNow
        yield* Deferred.succeed(over, undefined)
        const updates = yield* Fiber.join(fiber)
        expect(endOf(updates)).toMatchObject({ _tag: "Ended", outcome: { _tag: "Completed", output: "done" } })
        const events = yield* journal("r")
        expect(committed(updates).map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1))
        expect(committed(updates).map(({ event }) => event)).toEqual(events)
        expect(deltas(updates).length).toBeGreaterThan(200)
        expect(deltas(updates).length).toBeLessThan(400)
      })
    )
  )

  it.effect.each([false, true])(
    "a consumer that falls behind in the middle sees each event once, in order (store yields: %s)",
    (yields) => {
      const script = [
        reply([call("look", { at: 1 })]),
        stream([...many(400), call("look", { at: 2 })]),
        call("look", { at: 3 }),
        stream([wait("1 minute"), delta("do"), delta("ne")])
      ]
      const body = () =>
        Effect.gen(function* () {
          let seen = 0
          const slow = Run.stream(yield* agentOf(), input).pipe(
            Stream.tap(() => (++seen === 5 ? Effect.sleep("10 seconds") : Effect.void)),
            Stream.runCollect
          )
          const updates = yield* during(slow, "2 minutes")
          expect(endOf(updates)).toMatchObject({ _tag: "Ended", outcome: { output: "done" } })
          const events = yield* journal("r")
          expect(committed(updates).map(({ event }) => event)).toEqual(events)
          expect(committed(updates).map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1))
          expect(deltas(updates).length).toBeLessThan(402)
          expect(deltas(updates).slice(-2)).toEqual(["1 do", "1 ne"])
        })
      return scene(script, body, yields ? { wrap: YieldingStore.make } : {})
    }
  )

  it.effect("a slow consumer does not hold up the Run", () =>
    scene(long, () =>
      Effect.gen(function* () {
        const fiber = yield* Run.stream(yield* agentOf(), input).pipe(
          Stream.tap(() => Effect.never),
          Stream.runDrain,
          Effect.forkChild
        )
        yield* settled
        yield* TestClock.adjust("1 second")
        expect((yield* Run.get("r")).status).toBe("completed")
        yield* Fiber.interrupt(fiber)
      })
    )
  )

  it.effect("RI-113 a consumer that leaves early interrupts the Run, which can be resumed as a stream", () =>
    scene([call("look", { at: 1 }), hang, text("done")], ({ store }) =>
      Effect.gen(function* () {
        const agent = yield* agentOf()
        const isSecond = (update: Update) =>
          update._tag === "Committed" && update.event._tag === "TurnStarted" && update.event.turn === 2
        const first = yield* Stream.runCollect(Run.stream(agent, input).pipe(Stream.takeUntil(isSecond)))
        expect(ends(first)).toEqual([])
        expect(yield* store.head("r")).toMatchObject({ status: "running", live: false })
        const left = yield* journal("r")
        expect(left.at(-1)).toMatchObject({ _tag: "TurnFailed", failure: { tag: "Interrupted" } })
        const second = yield* Stream.runCollect(Run.streamResume(agent, input))
        expect(endOf(second)).toMatchObject({ _tag: "Ended", outcome: { _tag: "Completed", output: "done" } })
        expect(committed(second)[0]?.seq).toBe(left.length + 1)
        expect(committed(second).map(({ event }) => event)).toEqual((yield* journal("r")).slice(left.length))
      })
    )
  )

  it.effect.each([false, true])(
    "RI-088 a Run is announced when it is stored: left at once, it goes on elsewhere (store yields: %s)",
    (yields) =>
      scene(
        () => text("done"),
        ({ model, memory }) =>
          Effect.gen(function* () {
            const agent = yield* agentOf()
            const stored: Array<number | undefined> = []
            const announced = (update: Update) => update._tag === "Committed" && update.event._tag === "RunStarted"
            yield* Run.stream(agent, input).pipe(
              Stream.tap(() => Effect.map(memory.head("r"), (head) => stored.push(head?.seq))),
              Stream.takeUntil(announced),
              Stream.runDrain
            )
            expect(stored[0]).toBeGreaterThan(0)
            expect(yield* Run.resume(agent, input)).toMatchObject({ _tag: "Completed", output: "done" })
            const events = yield* journal("r")
            const answered = ofKind(events, "TurnCompleted").length
            expect(yield* model.requests).toHaveLength(answered + ofKind(events, "TurnFailed").length)
            expect(answered).toBe(1)
          }),
        yields ? { wrap: YieldingStore.make } : {}
      )
  )

  it.effect("RI-088 a Run whose fiber is interrupted before anything is stored can be started again", () =>
    scene([text("done")], () =>
      Effect.gen(function* () {
        const agent = yield* agentOf()
        const fiber = yield* Effect.forkChild(Stream.runDrain(Run.stream(agent, input)))
        yield* Fiber.interrupt(fiber)
        expect(yield* Run.start(agent, input)).toMatchObject({ _tag: "Completed", output: "done" })
      })
    )
  )
})

it.effect.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])(
  "events after %d are refused, whatever the Run",
  (after) =>
    scene([], () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(Stream.runCollect(Run.events("nobody", { after })))
        expect(error).toMatchObject({ _tag: "Fatal", reason: { _tag: "InputInvalid", field: "Run.events: after" } })
      })
    )
)
