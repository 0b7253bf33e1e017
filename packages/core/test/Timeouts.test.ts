import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as LanguageModel from "effect/ai/LanguageModel"
import { TestClock } from "effect/testing"
import * as Guard from "../src/Guard.ts"
import * as Reconcile from "../src/Reconcile.ts"
import * as Run from "../src/Run.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import {
  agentOf,
  during,
  failure,
  guard,
  hanging,
  journal,
  ofKind,
  Save,
  scene,
  status,
  steady
} from "./support/turns.ts"

const { after, call, calls, delta, hang, keepAlive, stream, text, wait } = ScriptedModel
const input = { runId: "r", task: "go" }

/** Every second a chunk. */
const every = (chunk: ScriptedModel.Chunk, seconds: number) =>
  Array(seconds)
    .fill([wait("1 second"), chunk])
    .flat()

const tries = Effect.map(journal("r"), (events) =>
  [...ofKind(events, "TurnCompleted"), ...ofKind(events, "TurnFailed")].flatMap(({ tries = [] }) =>
    tries.map(({ at, endedAt, failure }) => ({ ms: endedAt - at, tag: failure?.tag, message: failure?.message }))
  )
)

describe("time limits of one try", () => {
  const patient = { firstPart: "120 seconds", idle: "30 seconds" } as const

  it.effect("RI-048 a first part after 90 s is in time where 120 s are allowed for it, whatever the idle limit", () =>
    scene([stream([wait("90 seconds"), delta("a"), wait("29 seconds"), delta("b")])], () =>
      Effect.gen(function* () {
        const outcome = yield* during(Run.start(yield* agentOf({ timeouts: patient }), input), "119 seconds")
        expect(outcome).toMatchObject({ _tag: "Completed", output: "ab" })
        const [turn] = ofKind(yield* journal("r"), "TurnCompleted")
        expect(turn).toMatchObject({ firstPartAt: 90_000, at: 119_000 })
        expect(turn?.tries).toBeUndefined()
      })
    )
  )

  it.effect("RI-048 without that a first part may take 60 s", () =>
    scene([stream([wait("61 seconds"), delta("a")]), text("ok")], () =>
      Effect.gen(function* () {
        yield* during(Run.start(yield* agentOf(), input), "61 seconds")
        expect((yield* tries)[0]).toEqual({
          ms: 60_000,
          tag: "ModelTimeout",
          message: expect.stringContaining("no first part within 1m")
        })
      }).pipe(Effect.provide(steady))
    )
  )

  const starts: ScriptedModel.Chunk = { type: "text-start", id: "again" }
  const metadata: ScriptedModel.Chunk = { type: "response-metadata", id: "id", modelId: "m" }

  it.effect.each([
    ["empty deltas", keepAlive],
    ["parts that only start something", starts],
    ["metadata", metadata]
  ] as const)("RI-112 %s are no progress: the idle limit ends the try", ([, chunk]) =>
    scene([stream([delta("He"), ...every(chunk, 100)]), text("Hello")], () =>
      Effect.gen(function* () {
        const agent = yield* agentOf({ timeouts: patient })
        const outcome = yield* during(Run.start(agent, input), "31 seconds")
        expect(outcome).toMatchObject({ _tag: "Completed", output: "Hello" })
        expect((yield* tries)[0]).toEqual({
          ms: 30_000,
          tag: "ModelTimeout",
          message: expect.stringContaining("no further part within 30s")
        })
      }).pipe(Effect.provide(steady))
    )
  )

  it.effect("RI-112 keep-alives before the first part do not count either", () =>
    scene([stream([...every(keepAlive, 100), delta("late")]), text("ok")], () =>
      Effect.gen(function* () {
        yield* during(Run.start(yield* agentOf(), input), "61 seconds")
        expect((yield* tries)[0]).toMatchObject({ ms: 60_000, message: expect.stringContaining("no first part") })
      }).pipe(Effect.provide(steady))
    )
  )

  it.effect("RI-112 parts that say something keep a slow stream alive up to its whole time", () =>
    scene([stream(every(delta("x"), 700)), text("ok")], () =>
      Effect.gen(function* () {
        const agent = yield* agentOf({ timeouts: { idle: "2 seconds" } })
        yield* during(Run.start(agent, input), "601 seconds")
        expect((yield* tries)[0]).toMatchObject({
          ms: 600_000,
          message: expect.stringContaining("no whole reply within 10m")
        })
      }).pipe(Effect.provide(steady))
    )
  )

  it.effect("a reply that is not streamed may take 120 s", () =>
    scene([after("119 seconds", call("look", { at: 1 })), after("121 seconds", text("late")), text("ok")], () =>
      Effect.gen(function* () {
        const outcome = yield* during(Run.start(yield* agentOf({ stream: false }), input), "240 seconds")
        expect(outcome).toMatchObject({ _tag: "Completed", output: "ok" })
        expect((yield* tries)[0]).toMatchObject({ ms: 120_000, message: expect.stringContaining("no reply within 2m") })
      }).pipe(Effect.provide(steady))
    )
  )

  it.effect("a model that never answers in time makes the Run rest with ModelTimeout", () =>
    scene(Array(5).fill(hang), () =>
      Effect.gen(function* () {
        const error = yield* failure(during(Run.start(yield* agentOf(), input), "315 seconds"))
        expect(error).toMatchObject({ _tag: "Retryable", reason: { _tag: "ModelTimeout" }, wakeAt: 375_000 })
      }).pipe(Effect.provide(steady))
    )
  )

  it.effect.each([true, false])("a time limit interrupts the request itself (stream %s)", (stream) =>
    Effect.gen(function* () {
      let interrupted = 0
      const request = hanging(() => interrupted++)
      const model = LanguageModel.make({ generateText: () => request, streamText: () => Stream.fromEffect(request) })
      const agent = yield* agentOf({ stream })
      yield* scene([], () =>
        failure(during(Run.start(agent, input), "615 seconds")).pipe(
          Effect.provide(Layer.merge(Layer.effect(LanguageModel.LanguageModel, model), steady))
        )
      )
      expect(interrupted).toBe(5)
    })
  )
})

describe("the deadline of a Run", () => {
  const second = { activeTime: "1 second" } as const
  const stoppedIn = (phase: string) => ({ _tag: "Stopped", reason: { _tag: "Deadline", phase } })
  const reopened = { runId: "r", limits: { activeTime: "1 minute" } } as const

  it.effect.each([
    ["hangs", hang],
    [
      "is still streaming",
      stream(every(delta("x"), 100).map((chunk) => ("_tag" in chunk ? wait("100 millis") : chunk)))
    ]
  ] as const)("RI-090 ends a model call that %s", ([, entry]) =>
    scene([entry, text("ok")], ({ store }) =>
      Effect.gen(function* () {
        const agent = yield* agentOf({ limits: second })
        expect(yield* during(Run.start(agent, input), "1 second")).toMatchObject(stoppedIn("model"))
        expect(yield* store.head("r")).toMatchObject({ status: "stopped", live: false })
        const [turn] = ofKind(yield* journal("r"), "TurnFailed")
        expect(turn).toMatchObject({ at: 1000, failure: { tag: "Deadline" }, usage: { estimated: true } })
        expect(yield* Run.resume(agent, reopened)).toMatchObject({ _tag: "Completed", output: "ok" })
      })
    )
  )

  it.effect.each([
    ["readonly", call("look", { at: 1 }), "cancelled"],
    ["unsafe", call("save", { text: "a" }), "unknown"]
  ] as const)("RI-090 interrupts a %s tool", ([, entry, ending]) => {
    let interrupted = 0
    const tool = () => hanging(() => interrupted++)
    return scene(
      [entry],
      () =>
        Effect.gen(function* () {
          const agent = yield* agentOf({ limits: second })
          expect(yield* during(Run.start(agent, input), "1 second")).toMatchObject(stoppedIn("tool"))
          expect(interrupted).toBe(1)
          expect(ofKind(yield* journal("r"), "ToolCallCompleted")).toMatchObject([
            { at: 1000, ending, isFailure: true }
          ])
        }),
      { handlers: { look: tool, save: tool } }
    )
  })

  it.effect("RI-090 of calls side by side the finished one keeps its result", () =>
    scene(
      [
        calls([
          ["save", { text: "a" }],
          ["look", { at: 1 }]
        ])
      ],
      () =>
        Effect.gen(function* () {
          const agent = yield* agentOf({ limits: second, concurrency: 2 })
          expect(yield* during(Run.start(agent, input), "1 second")).toMatchObject(stoppedIn("tool"))
          expect(
            ofKind(yield* journal("r"), "ToolCallCompleted").map(({ callId, ending }) => [callId, ending])
          ).toEqual([
            ["t1.0", "executed"],
            ["t1.1", "cancelled"]
          ])
        }),
      { handlers: { look: () => Effect.never } }
    )
  )

  it.effect("RI-090 ends the sleep between two tries", () =>
    scene([status(503), status(503)], ({ model }) =>
      Effect.gen(function* () {
        const agent = yield* agentOf({ limits: { activeTime: 1500 } })
        expect(yield* during(Run.start(agent, input), 1500)).toMatchObject(stoppedIn("retry"))
        expect(yield* model.requests).toHaveLength(2)
        expect(ofKind(yield* journal("r"), "TurnFailed")).toMatchObject([{ at: 1500, failure: { tag: "Deadline" } }])
      }).pipe(Effect.provide(steady))
    )
  )

  it.effect.each(["Step", "Call"])("RI-090 ends a guard that takes its time about a %s", (kind) => {
    let interrupted = 0
    const slow = guard(({ proposal }) => (proposal._tag === kind ? hanging(() => interrupted++) : Guard.allow))
    return scene(
      kind === "Step" ? [] : [call("look", { at: 1 })],
      () =>
        Effect.gen(function* () {
          const agent = yield* agentOf({ limits: second })
          expect(yield* during(Run.start(agent, input), "1 second")).toMatchObject(stoppedIn("guard"))
          expect(interrupted).toBe(1)
          expect((yield* Run.get("r")).status).toBe("stopped")
          yield* journal("r")
        }),
      { guards: [slow] }
    )
  })

  it.effect("RI-090 waits for a reconciler, which has at most 30 s, and then ends the Run", () => {
    const reconcile = Reconcile.layer(Save, () => Effect.never)
    return scene(
      [call("save", { text: "a" })],
      () =>
        Effect.gen(function* () {
          const agent = yield* agentOf({ limits: second })
          const fiber = yield* Effect.forkChild(Run.start(agent, input))
          yield* TestClock.adjust(500)
          yield* Fiber.interrupt(fiber)
          expect(yield* during(Run.resume(agent, input), "30 seconds")).toMatchObject(stoppedIn("loop"))
          expect(ofKind(yield* journal("r"), "ToolCallCompleted")).toMatchObject([{ ending: "unknown" }])
        }).pipe(Effect.provide(reconcile)),
      { handlers: { save: () => Effect.never } }
    )
  })

  it.effect("RI-090 does not count the wait for an approval", () => {
    const asks = guard(({ proposal }) => (proposal._tag === "Call" ? Guard.ask("sure?") : Guard.allow))
    return scene(
      [after(600, call("save", { text: "a" })), after(300, text("done"))],
      () =>
        Effect.gen(function* () {
          const agent = yield* agentOf({ limits: second })
          const rests = yield* during(Run.start(agent, input), 600)
          if (rests._tag !== "Suspended") throw new Error("it waits for an approval")
          yield* TestClock.adjust("1 day")
          const digest = rests.waiting[0]?.digest ?? ""
          yield* Run.answer(agent, { runId: "r", callId: "t1.0", answer: { _tag: "Approve", digest }, by: "me" })
          expect(yield* during(Run.resume(agent, input), 300)).toMatchObject({ _tag: "Completed", output: "done" })
        }),
      { guards: [asks] }
    )
  })

  it.effect("RI-090 counts the time of all attempts, and not the time between them", () =>
    scene([hang, hang], () =>
      Effect.gen(function* () {
        const agent = yield* agentOf({ limits: second })
        const fiber = yield* Effect.forkChild(Run.start(agent, input))
        yield* TestClock.adjust(600)
        yield* Fiber.interrupt(fiber)
        yield* TestClock.adjust("1 hour")
        const before = yield* Clock.currentTimeMillis
        expect(yield* during(Run.resume(agent, input), 400)).toMatchObject(stoppedIn("model"))
        expect(ofKind(yield* journal("r"), "RunFinished")).toMatchObject([{ at: before + 400 }])
      })
    )
  )
})
