import { describe, expect, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as AiError from "effect/ai/AiError"
import * as WebCrypto from "effect/crypto/WebCrypto"
import { TestClock } from "effect/testing"
import { type Plugin, PluginId } from "../src/Plugin.ts"
import * as Run from "../src/Run.ts"
import type { RunEvent } from "../src/RunEvent.ts"
import * as RunState from "../src/RunState.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import {
  answer,
  approve,
  begin,
  clerk,
  digestOf,
  eventsOf,
  expectValid,
  type Handlers,
  pass,
  settle,
  tagsOf,
  told,
  world
} from "./support/scenario.ts"

const { after, call, calls, fail, hang, text } = ScriptedModel

const runId = "r"
const start = Run.start(clerk, { runId, task: "go" })
const resume = Run.resume(clerk, { runId })
const statusOf = Effect.map(Run.get(runId), ({ status }) => status)

/** Wraps every tool, and does not come to an end with its output. */
class Slow extends Context.Service<Slow, Plugin>()("test/Slow") {
  static readonly layer: Layer.Layer<never> = Layer.succeed(Slow, {
    [PluginId]: {
      name: "slow",
      interceptors: [{ name: "slow", stage: "trace", tool: (_, next) => Effect.andThen(next, Effect.never) }]
    }
  })
}

const completions = (events: ReadonlyArray<RunEvent>) =>
  events.flatMap((event) =>
    event._tag === "ToolCallCompleted" ? [{ callId: event.callId, ending: event.ending, result: event.result }] : []
  )

const rolesOf = (events: ReadonlyArray<RunEvent>) =>
  RunState.fromEvents(events)
    .history.slice()
    .map(({ role }) => role)

describe("cancel", () => {
  const log = (heard: Array<string>, what: string) => () => {
    heard.push(what)
  }
  const ways: ReadonlyArray<readonly [string, (heard: Array<string>) => Effect.Effect<never>]> = [
    ["Effect.onInterrupt", (heard) => Effect.onInterrupt(Effect.never, () => Effect.sync(log(heard, "interrupted")))],
    [
      "the AbortSignal of Effect.promise",
      (heard) =>
        Effect.promise((signal) => {
          signal.addEventListener("abort", log(heard, "interrupted"))
          return new Promise<never>(() => {})
        })
    ],
    [
      "the AbortSignal of Effect.tryPromise",
      (heard) =>
        Effect.orDie(
          Effect.tryPromise((signal) => {
            signal.addEventListener("abort", log(heard, "interrupted"))
            return new Promise<never>(() => {})
          })
        )
    ]
  ]

  it.effect.each(ways)("RI-038 reaches a running tool within a second, by %s", ([, wait]) =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const heard: Array<string> = []
      const model = yield* ScriptedModel.make([call("mail", { to: "bob" })])
      const fiber = yield* begin(process({ model, handlers: { mail: () => wait(heard) } })(start))
      yield* here(Run.cancel({ runId, by: "ann", reason: "wrong address" }))
      expect(heard).toEqual([])
      yield* pass(1000)
      expect(heard).toEqual(["interrupted"])
      expect(yield* Fiber.join(fiber)).toMatchObject({ _tag: "Cancelled", by: "ann", reason: "wrong address" })
      expect(yield* here(statusOf)).toBe("cancelled")
      const done = completions(yield* here(eventsOf(runId)))
      expect(done).toMatchObject([{ callId: "t1.0", ending: "unknown" }])
      yield* here(expectValid(runId))
    })
  )

  it.effect("RI-038 reaches a tool that a person approved, and one that is readonly", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const heard: Array<string> = []
      const wait = (what: string) => Effect.onInterrupt(Effect.never, () => Effect.sync(log(heard, what)))
      const handlers: Partial<Handlers> = { pay: () => wait("pay"), look: () => wait("look") }
      const model = yield* ScriptedModel.make([call("pay", { amount: 1 }), call("look", { at: 1 })])
      const busy = process({ model, handlers })
      yield* busy(start)
      yield* here(approve(runId, "t1.0"))
      const paying = yield* begin(busy(resume))
      yield* here(Run.cancel({ runId }))
      yield* pass(1000)
      expect(yield* Fiber.join(paying)).toMatchObject({ _tag: "Cancelled" })
      const looking = yield* begin(busy(Run.start(clerk, { runId: "looking", task: "go" })))
      yield* here(Run.cancel({ runId: "looking" }))
      yield* pass(1000)
      expect(yield* Fiber.join(looking)).toMatchObject({ _tag: "Cancelled" })
      expect(heard).toEqual(["pay", "look"])
      expect(completions(yield* here(eventsOf(runId)))).toMatchObject([{ ending: "unknown" }])
      expect(completions(yield* here(eventsOf("looking")))).toMatchObject([{ ending: "cancelled" }])
    })
  )

  it.effect("RI-038 stops a model that is answering", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* ScriptedModel.make([hang])
      const fiber = yield* begin(process({ model })(start))
      yield* here(Run.cancel({ runId }))
      yield* pass(1000)
      expect(yield* Fiber.join(fiber)).toMatchObject({ _tag: "Cancelled", turns: 1 })
      const failed = (yield* here(eventsOf(runId))).find(({ _tag }) => _tag === "TurnFailed")
      expect(failed).toMatchObject({ failure: { tag: "Cancelled" } })
    })
  )

  it.effect("RI-143 is durable: an approval that comes later changes nothing", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const model = yield* ScriptedModel.make([call("pay", { amount: 1 })])
      yield* process({ model })(start)
      const digest = yield* here(digestOf(runId, "t1.0"))
      yield* here(Run.cancel({ runId, by: "ann" }))
      expect(yield* here(told(answer(runId, "t1.0", { _tag: "Approve", digest })))).toBe("Fatal RunTerminal")
      const other = process({ name: "B", model })
      expect(yield* other(start)).toMatchObject({ _tag: "Cancelled", by: "ann" })
      expect(yield* other(resume)).toMatchObject({ _tag: "Cancelled", by: "ann" })
      expect(yield* other(Run.recover([clerk]))).toEqual([])
      expect(yield* here(statusOf)).toBe("cancelled")
      expect(ran).toEqual([])
      expect(yield* model.requests).toHaveLength(1)
    })
  )

  it.effect("RI-095 a cancelled wait keeps what was finished", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const model = yield* ScriptedModel.make([
        calls([
          ["mail", { to: "bob" }],
          ["pay", { amount: 1 }]
        ])
      ])
      yield* process({ model })(start)
      yield* here(Run.cancel({ runId }))
      const events = yield* here(eventsOf(runId))
      expect(completions(events)).toEqual([
        { callId: "t1.0", ending: "executed", result: { sent: "bob" } },
        { callId: "t1.1", ending: "cancelled", result: { error: "Cancelled; not executed." } }
      ])
      expect(rolesOf(events)).toEqual(["user", "assistant", "tool"])
      expect(events.at(-1)?._tag).toBe("RunFinished")
      expect(yield* here(told(Run.send({ runId, message: "and now?" })))).toBe("Fatal RunTerminal")
      expect(ran).toEqual(["mail bob"])
      yield* here(expectValid(runId))
    })
  )

  it.effect("RI-095 a cancelled wait keeps what was answered, though nobody had taken the answer yet", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const script = [
        calls([
          ["ask", { question: "one?" }],
          ["ask", { question: "two?" }]
        ])
      ]
      const model = yield* ScriptedModel.make(script)
      yield* process({ model })(start)
      yield* here(answer(runId, "t1.0", { _tag: "Value", value: 1 }))
      yield* here(Run.cancel({ runId }))
      expect(completions(yield* here(eventsOf(runId)))).toMatchObject([
        { callId: "t1.0", ending: "answered", result: 1 },
        { callId: "t1.1", ending: "cancelled" }
      ])
    })
  )

  it.effect("RI-159 of three calls the finished one keeps its result, the others say what is known of them", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const script = [
        calls([
          ["mail", { to: "bob" }],
          ["book", { seat: 1 }],
          ["mail", { to: "eve" }]
        ])
      ]
      const model = yield* ScriptedModel.make(script)
      const fiber = yield* begin(process({ model, handlers: { book: () => Effect.never } })(start))
      yield* here(Run.cancel({ runId }))
      yield* pass(1000)
      expect(yield* Fiber.join(fiber)).toMatchObject({ _tag: "Cancelled" })
      const events = yield* here(eventsOf(runId))
      expect(completions(events).map(({ callId, ending }) => [callId, ending])).toEqual([
        ["t1.0", "executed"],
        ["t1.1", "unknown"],
        ["t1.2", "cancelled"]
      ])
      expect(rolesOf(events)).toEqual(["user", "assistant", "tool"])
      expect(ran).toEqual(["mail bob"])
      yield* here(expectValid(runId))
    })
  )

  it.effect("of a Run that nobody drives is carried out by whoever takes it next", () =>
    Effect.gen(function* () {
      const { here, mortal, process, ran } = yield* world
      const model = yield* ScriptedModel.make([call("mail", { to: "bob" })])
      const dying = yield* mortal({ name: "A", model, deadly: "mail" })
      yield* dying.untilDead(start)
      yield* here(Run.cancel({ runId }))
      expect(yield* here(statusOf)).toBe("running")
      expect(yield* process({ name: "B", model })(Run.recover([clerk]))).toMatchObject([
        { outcome: { _tag: "Cancelled" } }
      ])
      expect(completions(yield* here(eventsOf(runId)))).toMatchObject([{ ending: "unknown" }])
      expect(ran).toEqual(["mail died"])
    })
  )
})

describe("interrupting the fiber that drives a Run", () => {
  it.effect("RI-147 is no failure: the lease is free, and a resume asks the model again and runs nothing again", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const model = yield* ScriptedModel.make([call("mail", { to: "bob" }), hang, text("done")])
      const fiber = yield* begin(process({ model })(start))
      expect(yield* here(Run.get(runId))).toMatchObject({ status: "running", phase: "thinking", turn: 2 })
      yield* Fiber.interrupt(fiber)
      const exit = yield* Fiber.await(fiber)
      expect(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)).toBe(true)
      const info = yield* here(Run.get(runId))
      expect(info).toMatchObject({ status: "running", turn: 2 })
      expect(info.owner).toBeUndefined()
      const failed = (yield* here(eventsOf(runId))).at(-1)
      expect(failed).toMatchObject({ _tag: "TurnFailed", turn: 2, failure: { tag: "Interrupted" } })
      expect(failed?._tag === "TurnFailed" && failed.usage.input).toBeGreaterThan(0)
      expect(yield* process({ name: "B", model })(resume)).toMatchObject({ _tag: "Completed", turns: 3 })
      expect(ran).toEqual(["mail bob"])
      yield* model.assertConsumed
      const [, lost, again] = yield* model.requests
      expect(yield* lost?.digest ?? Effect.succeed("")).toBe(yield* again?.digest ?? Effect.succeed("-"))
      yield* here(expectValid(runId))
    })
  )

  it.effect("RI-147 a sweep takes an interrupted Run at once", () =>
    Effect.gen(function* () {
      const { process } = yield* world
      const model = yield* ScriptedModel.make([hang, text("done")])
      const fiber = yield* begin(process({ model })(start))
      yield* Fiber.interrupt(fiber)
      expect(yield* process({ name: "B", model })(Run.recover([clerk]))).toMatchObject([
        { _tag: "Driven", outcome: { _tag: "Completed" } }
      ])
    })
  )

  it.effect("RI-147 in the middle of an effect interrupts its handler and leaves the call in doubt", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const heard: Array<string> = []
      const mail = () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => void heard.push("stopped")))
      const model = yield* ScriptedModel.make([call("mail", { to: "bob" })])
      const fiber = yield* begin(process({ model, handlers: { mail } })(start))
      yield* Fiber.interrupt(fiber)
      expect(heard).toEqual(["stopped"])
      expect(completions(yield* here(eventsOf(runId)))).toEqual([])
      expect(yield* process({ name: "B", model })(resume)).toMatchObject({
        _tag: "Suspended",
        waiting: [{ id: "t1.0", kind: "in-doubt" }]
      })
    })
  )

  it.effect("L2 RI-147 after an effect keeps its result, whatever still works on it, and nothing runs again", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const model = yield* ScriptedModel.make([call("mail", { to: "bob" }), text("done")])
      // Its handler has ended; an interceptor around it has not.
      const fiber = yield* begin(process({ model, extra: Slow.layer })(start))
      expect(ran).toEqual(["mail bob"])
      yield* Fiber.interrupt(fiber)
      expect(completions(yield* here(eventsOf(runId)))).toEqual([
        { callId: "t1.0", ending: "executed", result: { sent: "bob" } }
      ])
      expect(yield* process({ name: "B", model, extra: Slow.layer })(resume)).toMatchObject({ output: "done" })
      expect(ran).toEqual(["mail bob"])
    })
  )

  it.effect("RI-088 a Run is announced only when it is stored, so leaving at its first event loses nothing", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const model = yield* ScriptedModel.make(({ results }) =>
        results.length > 0 ? text("done") : call("mail", { to: "bob" })
      )
      const announced = Run.stream(clerk, { runId, task: "go" }).pipe(
        Stream.tap((update) =>
          Effect.gen(function* () {
            const { seq } = yield* Run.get(runId)
            expect(update._tag === "Committed" && update.seq <= seq).toBe(true)
          })
        ),
        Stream.takeUntil((update) => update._tag === "Committed" && update.event._tag === "RunStarted"),
        Stream.runDrain
      )
      yield* process({ model })(announced)
      const asked = (yield* model.requests).length
      expect(yield* process({ name: "B", model })(resume)).toMatchObject({ _tag: "Completed", output: "done" })
      expect((yield* model.requests).length - asked).toBeLessThanOrEqual(2)
      expect(ran).toEqual(["mail bob"])
      yield* here(expectValid(runId))
    })
  )
})

describe("pause", () => {
  it.effect("rests at the next boundary: what runs is finished, nothing new is started", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const script = [
        after(
          "2 seconds",
          calls([
            ["mail", { to: "bob" }],
            ["mail", { to: "eve" }]
          ])
        ),
        text("done")
      ]
      const model = yield* ScriptedModel.make(script)
      const clerkHere = process({ model })
      const fiber = yield* begin(clerkHere(start))
      yield* here(Run.pause({ runId, by: "ann" }))
      expect(yield* here(statusOf)).toBe("running")
      yield* pass(2000)
      expect(yield* Fiber.join(fiber)).toMatchObject({
        _tag: "Suspended",
        waiting: [{ id: "paused", kind: "paused", reason: "paused by ann" }]
      })
      expect(ran).toEqual([])
      expect(yield* clerkHere(start)).toMatchObject({ _tag: "Suspended" })
      expect(yield* clerkHere(resume)).toMatchObject({ _tag: "Completed" })
      expect(ran).toEqual(["mail bob", "mail eve"])
      yield* here(expectValid(runId))
    })
  )

  it.effect("lets a running tool finish and keeps its result", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const mail: Handlers["mail"] = ({ to }) =>
        Effect.sync(() => {
          ran.push(`mail ${to}`)
          return { sent: to }
        }).pipe(Effect.delay("2 seconds"))
      const model = yield* ScriptedModel.make([
        calls([
          ["mail", { to: "bob" }],
          ["mail", { to: "eve" }]
        ]),
        text("done")
      ])
      const slow = process({ model, handlers: { mail } })
      const fiber = yield* begin(slow(start))
      yield* here(Run.pause({ runId }))
      yield* pass(2500)
      expect(yield* Fiber.join(fiber)).toMatchObject({ _tag: "Suspended", waiting: [{ kind: "paused" }] })
      expect(ran).toEqual(["mail bob"])
      const rest = yield* begin(slow(resume))
      yield* pass(2500)
      expect(yield* Fiber.join(rest)).toMatchObject({ _tag: "Completed" })
      expect(ran).toEqual(["mail bob", "mail eve"])
    })
  )

  it.effect("holds an answered call back until the resume", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const model = yield* ScriptedModel.make([call("pay", { amount: 1 }), text("done")])
      const clerkHere = process({ model })
      yield* clerkHere(start)
      yield* here(Run.pause({ runId }))
      yield* here(approve(runId, "t1.0"))
      expect(yield* clerkHere(Run.recover([clerk]))).toEqual([])
      expect(yield* clerkHere(start)).toMatchObject({ _tag: "Suspended", waiting: [{ kind: "paused" }] })
      expect(ran).toEqual([])
      expect(yield* clerkHere(resume)).toMatchObject({ _tag: "Completed" })
      expect(ran).toEqual(["pay 1"])
    })
  )

  const overloaded = fail(new AiError.RateLimitError({ retryAfter: Duration.minutes(2) }))
  const resting = Effect.gen(function* () {
    const one = yield* world
    const model = yield* ScriptedModel.make([overloaded, text("done")])
    const clerkHere = one.process({ model })
    expect(yield* Effect.flip(clerkHere(start))).toMatchObject({
      _tag: "Retryable",
      reason: { _tag: "ModelUnavailable" },
      wakeAt: 120_000
    })
    yield* one.here(Run.pause({ runId }))
    return { ...one, clerkHere }
  })

  it.effect("keeps the retry that the Run waits for, and so does the resume", () =>
    Effect.gen(function* () {
      const { clerkHere, here } = yield* resting
      const kinds = Effect.map(Run.get(runId), ({ waiting }) => waiting.map(({ id, wakeAt }) => [id, wakeAt]))
      expect(yield* here(kinds)).toEqual([
        ["paused", undefined],
        ["retry", 120_000]
      ])
      expect(yield* Effect.flip(clerkHere(resume))).toMatchObject({ _tag: "Retryable", wakeAt: 120_000 })
      expect(yield* here(kinds)).toEqual([["retry", 120_000]])
      yield* TestClock.adjust("2 minutes")
      expect(yield* clerkHere(Run.recover([clerk]))).toMatchObject([{ outcome: { _tag: "Completed" } }])
    })
  )

  it.effect("is not lifted by a sweep when the retry is due", () =>
    Effect.gen(function* () {
      const { clerkHere, here } = yield* resting
      yield* TestClock.adjust("3 minutes")
      expect(yield* clerkHere(Run.recover([clerk]))).toMatchObject([
        { outcome: { _tag: "Suspended", waiting: [{ kind: "paused" }] } }
      ])
      expect(yield* clerkHere(Run.recover([clerk]))).toEqual([])
      expect(yield* here(tagsOf(runId))).not.toContain("PauseLifted")
      expect(yield* clerkHere(resume)).toMatchObject({ _tag: "Completed" })
    })
  )

  it.effect("is not lifted by a sweep that takes the Run of a dead owner", () =>
    Effect.gen(function* () {
      const { here, mortal, process, ran } = yield* world
      const model = yield* ScriptedModel.make([call("book", { seat: 1 }), text("done")])
      const dying = yield* mortal({ name: "A", model, deadly: "book" })
      yield* dying.untilDead(start)
      yield* here(Run.pause({ runId }))
      const next = process({ name: "B", model })
      expect(yield* next(Run.recover([clerk]))).toMatchObject([
        { outcome: { _tag: "Suspended", waiting: [{ kind: "paused" }] } }
      ])
      expect(ran).toEqual(["book died"])
      expect(yield* next(Run.recover([clerk]))).toEqual([])
      expect(yield* next(resume)).toMatchObject({ _tag: "Completed" })
      expect(ran).toEqual(["book died", "book 1"])
    })
  )
})

describe("a cancel while it is thought about what to ask", () => {
  it.effect("nothing is asked any more, however long the digest of the arguments takes", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      let hasReplied = false
      const reply = () => {
        hasReplied = true
        return call("pay", { amount: 1 })
      }
      const model = yield* ScriptedModel.make([reply])
      let go = () => {}
      const may = new Promise<void>((resolve) => (go = resolve))
      let isAsked = false
      const digest: typeof crypto.subtle.digest = async (name, data) => {
        // What is recorded of the tools before has digests, too.
        isAsked = hasReplied
        if (isAsked) await may
        return crypto.subtle.digest(name, data)
      }
      const slow: typeof crypto = Object.create(crypto, { subtle: { value: { digest } } })
      yield* here(Run.accept(clerk, { runId, task: "go" }))
      const driving = yield* Effect.forkChild(process({ model, extra: WebCrypto.layer(slow) })(resume))
      while (!isAsked) yield* settle
      yield* here(Run.cancel({ runId }))
      yield* TestClock.adjust("1 second")
      yield* settle
      go()
      expect(yield* Fiber.join(driving)).toMatchObject({ _tag: "Cancelled" })
      const tags = yield* here(tagsOf(runId))
      expect(tags).toContain("CancelRequested")
      expect(tags).not.toContain("ApprovalRequested")
    })
  )
})
