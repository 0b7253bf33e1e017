import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import * as Guard from "../src/Guard.ts"
import * as Run from "../src/Run.ts"
import type { RunEvent } from "../src/RunEvent.ts"
import { ToolContext } from "../src/ToolContext.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import * as YieldingStore from "../src/testing/YieldingStore.ts"
import {
  agentOf,
  failure,
  journal,
  ofKind,
  scene,
  settled,
  status,
  steady,
  type WorldOptions
} from "./support/turns.ts"

const { call, calls, hang, reply, text } = ScriptedModel
const input = { runId: "r", task: "go" }
const stopped = (_tag: string) => ({ _tag: "Stopped", reason: { _tag } })

/** Calls a tool whenever it is told of one. */
const tireless: ScriptedModel.Script = ({ number, tools }) =>
  tools.length === 0 ? text("what I have so far") : call("look", { at: number })

describe("maxTurns", () => {
  it.effect.each([true, false])(
    "RI-061 a Run that reaches it is stopped with a whole history, and goes on with more (stream %s)",
    (stream) =>
      scene(tireless, ({ model }) =>
        Effect.gen(function* () {
          const agent = yield* agentOf({ stream, limits: { maxTurns: 3 } })
          const outcome = yield* Run.start(agent, input)
          expect(outcome).toMatchObject({ ...stopped("MaxTurns"), turns: 3 })
          expect(outcome).not.toHaveProperty("answer")
          expect(ofKind(yield* journal("r"), "ToolCallCompleted")).toHaveLength(3)
          expect(yield* Run.resume(agent, { runId: "r" })).toEqual(outcome)
          expect(yield* Run.resume(agent, { runId: "r", reopen: true })).toMatchObject(stopped("MaxTurns"))
          expect(yield* model.requests).toHaveLength(3)
          const more = yield* Run.resume(agent, { runId: "r", limits: { maxTurns: 6 } })
          expect(more).toMatchObject({ ...stopped("MaxTurns"), turns: 6 })
          expect(yield* model.requests).toHaveLength(6)
          expect((yield* model.requests)[5]?.messages).toHaveLength(12)
          expect(ofKind(yield* journal("r"), "ToolCallCompleted")).toHaveLength(6)
        })
      )
  )

  it.effect(
    "RI-061 with finalAnswer the model gets one last request without tools, and its answer is in the outcome",
    () =>
      scene(tireless, ({ model }) =>
        Effect.gen(function* () {
          const agent = yield* agentOf({ limits: { maxTurns: 3, finalAnswer: true } })
          const outcome = yield* Run.start(agent, input)
          expect(outcome).toMatchObject({ ...stopped("MaxTurns"), answer: "what I have so far", turns: 4 })
          expect((yield* model.requests).map(({ tools }) => tools.length)).toEqual([2, 2, 2, 0])
          expect(ofKind(yield* journal("r"), "TurnStarted").map(({ final }) => final?._tag)).toEqual([
            undefined,
            undefined,
            undefined,
            "MaxTurns"
          ])
          const more = yield* Run.resume(agent, { runId: "r", limits: { maxTurns: 6 } })
          expect(more).toMatchObject({ ...stopped("MaxTurns"), answer: "what I have so far", turns: 7 })
          expect((yield* model.requests).map(({ tools }) => tools.length)).toEqual([2, 2, 2, 0, 2, 2, 0])
          yield* journal("r")
        })
      )
  )

  it.effect("RI-061 calls of a last turn do not run, and what it says beside them is kept", () => {
    let looked = 0
    const look = () => Effect.sync(() => ({ seen: ++looked }))
    const script: ScriptedModel.Script = ({ number }) =>
      number === 2 ? reply([text("nearly"), call("look", { at: 2 })]) : call("look", { at: number })
    const body = () =>
      Effect.gen(function* () {
        const agent = yield* agentOf({ limits: { maxTurns: 1, finalAnswer: true } })
        expect(yield* Run.start(agent, input)).toMatchObject({ ...stopped("MaxTurns"), answer: "nearly", turns: 2 })
        expect(looked).toBe(1)
        expect(ofKind(yield* journal("r"), "ToolCallCompleted").map(({ ending }) => ending)).toEqual([
          "executed",
          "not-executed"
        ])
      })
    return scene(script, body, { handlers: { look } })
  })

  it.effect("RI-061 a last turn that says nothing is not repeated", () =>
    scene([call("look", { at: 1 }), reply([])], () =>
      Effect.gen(function* () {
        const outcome = yield* Run.start(yield* agentOf({ limits: { maxTurns: 1, finalAnswer: true } }), input)
        expect(outcome).toMatchObject({ ...stopped("MaxTurns"), turns: 2 })
        expect(outcome).not.toHaveProperty("answer")
      })
    )
  )

  it.effect("a last turn that fails comes again after the rest, and is still the last", () =>
    scene(
      ({ number, tools }) =>
        number === 1 ? call("look", { at: 1 }) : number < 7 ? status(503) : text(`${tools.length} tools`),
      () =>
        Effect.gen(function* () {
          const agent = yield* agentOf({ limits: { maxTurns: 1, finalAnswer: true } })
          const fiber = yield* Effect.forkChild(Run.start(agent, input))
          yield* TestClock.adjust("15 seconds")
          expect(yield* failure(Fiber.join(fiber))).toMatchObject({ _tag: "Retryable" })
          yield* TestClock.adjust("1 minute")
          expect(yield* Run.resume(agent, input)).toMatchObject({ ...stopped("MaxTurns"), answer: "0 tools" })
        }).pipe(Effect.provide(steady))
    )
  )

  it.effect("a turn that was lost counts", () =>
    scene([hang, hang, hang], ({ model }) =>
      Effect.gen(function* () {
        const agent = yield* agentOf({ limits: { maxTurns: 3 } })
        for (let i = 0; i < 3; i++) {
          const fiber = yield* Effect.forkChild(Run.start(agent, input))
          yield* settled
          yield* Fiber.interrupt(fiber)
        }
        expect(yield* Run.start(agent, input)).toMatchObject({ ...stopped("MaxTurns"), turns: 3 })
        expect(yield* model.requests).toHaveLength(3)
      })
    )
  )
})

describe("maxConsecutiveFailures", () => {
  const limits = { maxConsecutiveFailures: 3 }
  const broken = { look: () => Effect.die(new Error("broken")) }

  it.effect("calls that fail one after the other stop the Run, whatever is wrong with them", () =>
    scene(
      [call("look", { at: 1 }), call("look", { at: "one" }), call("lock", {})],
      () =>
        Effect.gen(function* () {
          const agent = yield* agentOf({ limits })
          expect(yield* Run.start(agent, input)).toMatchObject({ ...stopped("ConsecutiveFailures"), turns: 3 })
          expect(ofKind(yield* journal("r"), "ToolCallCompleted").map(({ ending }) => ending)).toEqual([
            "executed",
            "invalid",
            "invalid"
          ])
        }),
      { handlers: broken }
    )
  )

  it.effect("a call that succeeds starts the count again, and a reopened Run starts at 0", () => {
    const bad = call("lock", {})
    const script = [bad, bad, call("look", { at: 1 }), bad, bad, bad, bad, bad, bad]
    return scene(script, () =>
      Effect.gen(function* () {
        const agent = yield* agentOf({ limits })
        expect(yield* Run.start(agent, input)).toMatchObject({ ...stopped("ConsecutiveFailures"), turns: 6 })
        expect(yield* Run.resume(agent, { runId: "r", reopen: true })).toMatchObject({ turns: 9 })
        yield* journal("r")
      })
    )
  })

  it.effect("the calls of one reply count one by one, in call order", () => {
    const bad = ["lock", {}] as const
    return scene(
      [calls([bad, bad, ["look", { at: 1 }]]), calls([bad, bad, bad, ["look", { at: 1 }]]), text("done")],
      () =>
        Effect.gen(function* () {
          expect(yield* Run.start(yield* agentOf({ limits }), input)).toMatchObject({ _tag: "Completed", turns: 3 })
        })
    )
  })
})

/** Stops after so many results, from its own memory. */
const detector = Guard.make({
  name: "detector",
  stage: "loop",
  initial: 0,
  fold: (seen, event) => (event._tag === "ToolCallCompleted" ? seen + 1 : seen),
  check: ({ memory, proposal }) =>
    proposal._tag === "Step" && memory >= 4 ? Guard.stop("enough", { _tag: "Loop" }) : Guard.allow
})

/** What happened, without when and how often it was begun. */
const story = (events: ReadonlyArray<RunEvent>) =>
  events.flatMap((event) => {
    switch (event._tag) {
      case "TurnStarted":
      case "TurnCompleted":
        return [`${event._tag} ${event.turn}`]
      case "ToolCallCompleted":
        return [`${event._tag} ${event.callId} ${event.isFailure}`]
      case "RunFinished":
        return [JSON.stringify(event.outcome)]
      default:
        return []
    }
  })

describe("RI-032 a Run that is interrupted at every step", () => {
  const wrong = (at: number) => Effect.die(new Error(`broken ${at}`))
  const cases = [
    ["maxTurns", { maxTurns: 3 }, ({ at }: { readonly at: number }) => Effect.succeed({ seen: at }), 3],
    ["maxConsecutiveFailures", { maxConsecutiveFailures: 3 }, ({ at }: { readonly at: number }) => wrong(at), 3],
    [
      "maxConsecutiveFailures after a success",
      { maxConsecutiveFailures: 2 },
      ({ at }: { readonly at: number }) => (at === 2 ? Effect.succeed({ seen: at }) : wrong(at)),
      4
    ],
    ["a guard's own memory", {}, ({ at }: { readonly at: number }) => Effect.succeed({ seen: at }), 4]
  ] as const

  /** Hangs at the first sight of each place, so that it can be interrupted there and nowhere else. */
  const places = () => {
    const seen = new Set<string>()
    return (place: string) =>
      Effect.suspend(() =>
        seen.has(place)
          ? Effect.void
          : Effect.andThen(
              Effect.sync(() => seen.add(place)),
              Effect.never
            )
      )
  }

  /** Interrupts whatever cannot go on, and starts it again. */
  const outcomeOf = <A, E, R>(start: Effect.Effect<A, E, R>, lives: { count: number }): Effect.Effect<A, E, R> =>
    Effect.gen(function* () {
      while (true) {
        lives.count++
        const fiber = yield* Effect.forkChild(start)
        yield* settled
        const exit = fiber.pollUnsafe()
        if (exit !== undefined) return yield* exit
        yield* Fiber.interrupt(fiber)
      }
    })

  it.effect.each(
    cases.flatMap(([name, limits, look, turns]) =>
      [false, true].map((yields) => [name, yields, limits, look, turns] as const)
    )
  )("trips %s at the same step (store yields: %s)", ([, yields, limits, look, turns]) =>
    Effect.gen(function* () {
      const agent = yield* agentOf({ limits })
      const drive = (handlers: WorldOptions["handlers"], check: Guard.Guard["check"], lives: { count: number }) => {
        const gate = Guard.make({ name: "gate", stage: "limits", initial: undefined, fold: () => undefined, check })
        const guards = [detector, gate]
        const options = {
          ...(yields ? { wrap: YieldingStore.make } : undefined),
          guards,
          ...(handlers && { handlers })
        }
        return scene(
          tireless,
          () =>
            Effect.flatMap(outcomeOf(Run.start(agent, input), lives), (outcome) =>
              Effect.map(journal("r"), (events) => ({ outcome, events }))
            ),
          options
        )
      }
      const at = places()
      const hangs = (params: { readonly at: number }) =>
        Effect.gen(function* () {
          yield* at((yield* ToolContext).callId)
          return yield* look(params)
        })
      const lives = { count: 0 }
      const asks: Guard.Guard["check"] = ({ proposal, state }) =>
        Effect.as(at(`${proposal._tag} ${state.head.turn}`), Guard.allow)
      const interrupted = yield* drive({ look: hangs }, asks, lives)
      const whole = yield* drive({ look }, () => Guard.allow, { count: 0 })
      expect(lives.count).toBeGreaterThan(2 * turns)
      expect(whole.outcome).toMatchObject({ _tag: "Stopped", turns })
      expect(interrupted.outcome).toEqual(whole.outcome)
      expect(story(interrupted.events)).toEqual(story(whole.events))
    })
  )
})
