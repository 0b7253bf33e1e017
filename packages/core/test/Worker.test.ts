import { describe, expect, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { StoreUnavailable } from "../src/RunError.ts"
import { type Plugin, PluginId } from "../src/Plugin.ts"
import * as Run from "../src/Run.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import {
  approve,
  begin,
  clerk,
  eventsOf,
  expectValid,
  type Handlers,
  pass,
  tagsOf,
  told,
  world
} from "./support/scenario.ts"

const { after, call, hang, text } = ScriptedModel

/** What a worker said of the Runs that it drove. */
const listener = () => {
  const heard: Array<string> = []
  const onDriven = (one: Run.Recovered) =>
    Effect.sync(() => {
      const what =
        one._tag === "Driven" ? one.outcome._tag : one._tag === "Failed" ? one.error.reason._tag : String(one.defect)
      heard.push(`${one.runId} ${what}`)
    })
  return { heard, onDriven }
}

/** A handler that tells when it is in the middle of its work, and ends when it is let. */
const gate = Effect.gen(function* () {
  const inside = yield* Deferred.make<void>()
  const open = yield* Deferred.make<void>()
  const book: Handlers["book"] = ({ seat }) =>
    Effect.andThen(Deferred.succeed(inside, undefined), Effect.as(Deferred.await(open), { booked: seat }))
  return { book, inside: Deferred.await(inside), open: Deferred.succeed(open, undefined) }
})

const stateOf = (runId: string) => Effect.map(Run.get(runId), ({ owner = "no owner", status }) => `${status}, ${owner}`)

class Rule extends Context.Service<Rule, Plugin>()("test/Rule") {
  static readonly layer = Layer.succeed(Rule, { [PluginId]: { name: "rule", guards: [] } })
}

const booksOnce: ScriptedModel.Script = ({ results }) => (results.length > 0 ? text("done") : call("book", { seat: 1 }))

/** What a caller without types may pass. */
const fromUser = (text: string): Duration.Input => JSON.parse(JSON.stringify(text))

describe("a worker", () => {
  const wrong: ReadonlyArray<readonly [string, Run.WorkInput]> = [
    ["concurrency is 0: it must be a whole number from 1", { concurrency: 0 }],
    ["concurrency is -1: it must be a whole number from 1", { concurrency: -1 }],
    ["concurrency is 1.5: it must be a whole number from 1", { concurrency: 1.5 }],
    ["concurrency is NaN: it must be a whole number from 1", { concurrency: Number.NaN }],
    ['every is 0: it must be a duration longer than 0, like "1 second"', { every: 0 }],
    ['every is NaN: it must be a duration longer than 0, like "1 second"', { every: Number.NaN }],
    ['every is Infinity: it must be a duration longer than 0, like "1 second"', { every: "Infinity" }],
    ['every is abc: it must be a duration longer than 0, like "1 second"', { every: fromUser("abc") }],
    ['drain is abc: it must be a duration from 0, like "25 seconds"', { drain: fromUser("abc") }],
    ['drain is -1: it must be a duration from 0, like "25 seconds"', { drain: -1 }],
    ['drain is NaN: it must be a duration from 0, like "25 seconds"', { drain: Number.NaN }]
  ]
  it.effect.each(wrong)("says at once that its %s", ([message, input]) =>
    Effect.gen(function* () {
      const { process } = yield* world
      const exit = yield* Effect.exit(process()(Run.work([clerk], input)))
      expect(String(Exit.isFailure(exit) && Cause.squash(exit.cause))).toBe(`RangeError: Run.work: ${message}`)
    })
  )

  it.effect("a sweep says so too", () =>
    Effect.gen(function* () {
      const { process } = yield* world
      const exit = yield* Effect.exit(process()(Run.recover([clerk], { concurrency: 0 })))
      expect(String(Exit.isFailure(exit) && Cause.squash(exit.cause))).toBe(
        "RangeError: Run.recover: concurrency is 0: it must be a whole number from 1"
      )
    })
  )

  it.effect("takes what was accepted, what its owner let go or left behind, and what is due", () =>
    Effect.gen(function* () {
      const { here, mortal, process } = yield* world
      const { heard, onDriven } = listener()
      const model = yield* ScriptedModel.make(booksOnce)
      const hanging = yield* ScriptedModel.make([hang])
      const start = (runId: string) => Run.start(clerk, { runId, task: "go" })
      const letGo = yield* begin(process({ model: hanging })(start("let-go")))
      yield* Fiber.interrupt(letGo)
      yield* (yield* mortal({ name: "X", model, deadly: "book" })).untilDead(start("left-behind"))
      yield* here(Run.accept(clerk, { runId: "accepted", task: "go" }))
      const worker = yield* begin(process({ model })(Run.work([clerk], { onDriven })))
      yield* pass(2000)
      expect(heard.toSorted()).toEqual(["accepted Completed", "left-behind Completed", "let-go Completed"])
      yield* here(Run.accept(clerk, { runId: "later", task: "go" }))
      yield* pass(1000)
      expect(heard).toContain("later Completed")
      yield* Fiber.interrupt(worker)
      yield* here(expectValid("accepted", "left-behind", "let-go", "later"))
    })
  )

  it.effect("W1 drives no more at once than it was told, and goes on as soon as one ends", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const { heard, onDriven } = listener()
      const model = yield* ScriptedModel.make(() => after("10 seconds", text("done")))
      for (const i of [1, 2, 3, 4, 5]) yield* here(Run.accept(clerk, { runId: `r${i}`, task: "go" }))
      const worker = yield* begin(process({ model })(Run.work([clerk], { concurrency: 2, every: "1 hour", onDriven })))
      for (const requests of [2, 4, 5]) {
        yield* pass(5000)
        expect((yield* model.requests).length).toBe(requests)
        yield* pass(5000)
      }
      expect(heard.toSorted()).toEqual([1, 2, 3, 4, 5].map((i) => `r${i} Completed`))
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("W1 two workers share what there is, and neither drives a Run of the other", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const one = listener()
      const two = listener()
      const model = yield* ScriptedModel.make(() => after("3 seconds", text("done")))
      const runIds = Array.from({ length: 8 }, (_, i) => `r${i}`)
      for (const runId of runIds) yield* here(Run.accept(clerk, { runId, task: "go" }))
      const work = ({ onDriven }: typeof one, name: string) =>
        begin(process({ name, model })(Run.work([clerk], { concurrency: 3, onDriven })))
      const workers = [yield* work(one, "A"), yield* work(two, "B")]
      yield* pass(9000)
      const driven = yield* Effect.forEach(runIds, (runId) => here(tagsOf(runId)))
      for (const tags of driven) expect(tags.filter((tag) => tag === "TurnStarted")).toHaveLength(1)
      expect([one.heard.length > 0, two.heard.length > 0]).toEqual([true, true])
      expect(new Set([...one.heard, ...two.heard])).toEqual(new Set(runIds.map((runId) => `${runId} Completed`)))
      yield* Fiber.interruptAll(workers)
    })
  )

  it.effect("W1 asks for no lease of a Run that somebody drives", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const claimed: Array<string> = []
      const model = yield* ScriptedModel.make([hang, text("done")])
      const driver = yield* begin(process({ name: "A", model })(Run.start(clerk, { runId: "driven", task: "go" })))
      yield* here(Run.accept(clerk, { runId: "free", task: "go" }))
      const worker = process({
        name: "B",
        model,
        wrap: (store) => ({
          ...store,
          claim: (request) => Effect.suspend(() => (claimed.push(request.runId), store.claim(request)))
        })
      })
      const fiber = yield* begin(worker(Run.work([clerk])))
      yield* pass(5000)
      expect(claimed).toEqual(["free"])
      yield* Fiber.interruptAll([fiber, driver])
    })
  )

  it.effect("W2 leaves a Run that it cannot drive alone for a minute, to a worker that can", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const { heard, onDriven } = listener()
      const model = yield* ScriptedModel.make([hang, text("done")])
      const ruled = { name: "A", model, extra: Rule.layer }
      const first = yield* begin(process(ruled)(Run.start(clerk, { runId: "ruled", task: "go" })))
      yield* Fiber.interrupt(first)
      const stored = yield* here(eventsOf("ruled"))
      const without = yield* begin(process({ name: "B", model })(Run.work([clerk], { onDriven })))
      yield* pass(59_000)
      expect(heard).toEqual(["ruled PluginMissing"])
      yield* pass(3000)
      expect(heard).toEqual(["ruled PluginMissing", "ruled PluginMissing"])
      expect(yield* here(eventsOf("ruled"))).toEqual(stored)
      yield* Fiber.interrupt(without)
      const other = listener()
      const worker = yield* begin(process({ ...ruled, name: "C" })(Run.work([clerk], { onDriven: other.onDriven })))
      yield* pass(1000)
      expect(other.heard).toEqual(["ruled Completed"])
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("W4 asks a store that gives lists and takes no claims once in a while, however full its hands are", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      let claims = 0
      const worker = process({
        wrap: (store) => ({
          ...store,
          claim: () =>
            Effect.suspend(() => {
              claims++
              if (claims > 50) return Effect.never
              // Not at once, so that the worker sees its hand full.
              return Effect.andThen(Effect.sleep(10), Effect.fail(new StoreUnavailable({ detail: "read-only" })))
            })
        })
      })
      yield* here(Run.accept(clerk, { runId: "r", task: "go" }))
      const fiber = yield* begin(worker(Run.work([clerk], { concurrency: 1, onDriven: () => Effect.void })))
      yield* pass(5000)
      const asked = claims
      // Before anything is expected: a worker that has begun to drain needs time to pass.
      const ended = yield* begin(Fiber.interrupt(fiber))
      yield* pass(30_000)
      yield* Fiber.join(ended)
      expect(asked).toBeGreaterThan(1)
      expect(asked).toBeLessThanOrEqual(6)
    })
  )

  const answers = ["while the Run waits", "while the Attempt that waits lets go"] as const
  it.effect.each(answers)("W4 acts on an answer at the next look, given %s", (when) =>
    Effect.gen(function* () {
      const { here, process, store } = yield* world
      const { heard, onDriven } = listener()
      const model = yield* ScriptedModel.make(({ results }) =>
        after("200 millis", results.length > 0 ? text("done") : call("pay", { amount: 1 }))
      )
      let answered = false
      const approval = Effect.suspend(() => {
        if (answered) return Effect.void
        answered = true
        return Effect.orDie(here(approve("r", "t1.0")))
      })
      yield* here(Run.accept(clerk, { runId: "r", task: "go" }))
      const worker = process({
        model,
        wrap: (store) => ({
          ...store,
          release: (held) => Effect.andThen(store.release(held), when === answers[1] ? approval : Effect.void)
        })
      })
      const fiber = yield* begin(worker(Run.work([clerk], { onDriven })))
      yield* pass(500)
      expect(heard).toEqual(["r Suspended"])
      yield* approval
      expect(yield* store.head("r")).toMatchObject({ status: "running" })
      yield* pass(800) // the look at 1 s, and 0.2 s of the model
      expect(heard).toEqual(["r Suspended", "r Completed"])
      yield* Fiber.interrupt(fiber)
    })
  )

  it.effect("W4 outlives a store that is away", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const { heard, onDriven } = listener()
      let away = true
      const model = yield* ScriptedModel.make([text("done")])
      const worker = process({
        model,
        wrap: (store) => ({
          ...store,
          list: (filter, page) =>
            Effect.suspend(() =>
              away ? Effect.fail(new StoreUnavailable({ detail: "away" })) : store.list(filter, page)
            )
        })
      })
      yield* here(Run.accept(clerk, { runId: "r", task: "go" }))
      const fiber = yield* begin(worker(Run.work([clerk], { onDriven })))
      yield* pass(60_000)
      expect(heard).toEqual([])
      away = false
      yield* pass(30_000)
      expect(heard).toEqual(["r Completed"])
      yield* Fiber.interrupt(fiber)
    })
  )
})

describe("a worker that is told to end", () => {
  it.effect("W3 lets a tool end and keeps its result, begins nothing, and leaves the Run to the next worker", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const { book, inside, open } = yield* gate
      const model = yield* ScriptedModel.make([call("book", { seat: 1 }), text("done")])
      for (const runId of ["r", "untouched"]) yield* here(Run.accept(clerk, { runId, task: "go" }))
      const worker = yield* begin(
        process({ name: "A", model, handlers: { book } })(Run.work([clerk], { concurrency: 1 }))
      )
      yield* inside
      const ended = yield* begin(Fiber.interrupt(worker))
      yield* pass(10_000)
      expect(ended.pollUnsafe()).toBeUndefined()
      yield* open
      yield* Fiber.join(ended)
      expect((yield* model.requests).length).toBe(1)
      expect(yield* here(stateOf("r"))).toBe("running, no owner")
      expect(yield* here(Run.get("untouched"))).toMatchObject({ status: "accepted" })
      expect(yield* process({ name: "B", model })(Run.recover([clerk]))).toMatchObject([
        { runId: "r", outcome: { _tag: "Completed", output: "done" } }
      ])
      expect(ran).toEqual([]) // the tool ran in the first worker alone
      const completed = (yield* here(eventsOf("r"))).filter(({ _tag }) => _tag === "ToolCallCompleted")
      expect(completed).toMatchObject([{ callId: "t1.0", result: { booked: 1 }, ending: "executed" }])
    })
  )

  it.effect("W3 writes down how a Run ended whose last reply came while it drained", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* ScriptedModel.make([after("5 seconds", text("done"))])
      yield* here(Run.accept(clerk, { runId: "r", task: "go" }))
      const worker = yield* begin(process({ name: "A", model })(Run.work([clerk])))
      yield* pass(1000)
      const ended = yield* begin(Fiber.interrupt(worker))
      yield* pass(5000)
      yield* Fiber.join(ended)
      expect(yield* here(stateOf("r"))).toBe("completed, no owner")
    })
  )

  it.effect("W3 interrupts what has not ended when its time is over", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const { book, inside } = yield* gate
      const model = yield* ScriptedModel.make([call("book", { seat: 1 }), text("done")])
      yield* here(Run.accept(clerk, { runId: "r", task: "go" }))
      const worker = yield* begin(
        process({ name: "A", model, handlers: { book } })(Run.work([clerk], { drain: "20 seconds" }))
      )
      yield* inside
      const ended = yield* begin(Fiber.interrupt(worker))
      yield* pass(19_000)
      expect(ended.pollUnsafe()).toBeUndefined()
      yield* pass(2000)
      yield* Fiber.join(ended)
      expect(yield* here(stateOf("r"))).toBe("running, no owner")
      expect(yield* process({ name: "B", model })(told(Run.resume(clerk, { runId: "r" })))).toBe("Completed")
    })
  )

  it.effect("W3 keeps a reply that was paid for, and starts none of its calls", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const model = yield* ScriptedModel.make([after("5 seconds", call("mail", { to: "ann" })), text("done")])
      yield* here(Run.accept(clerk, { runId: "r", task: "go" }))
      const worker = yield* begin(process({ name: "A", model })(Run.work([clerk])))
      yield* pass(1000)
      const ended = yield* begin(Fiber.interrupt(worker))
      yield* pass(5000)
      yield* Fiber.join(ended)
      expect(ran).toEqual([])
      expect(yield* here(tagsOf("r"))).toContain("TurnCompleted")
      const events = Run.events("r", { follow: false })
      expect(yield* here(Stream.runCollect(events))).not.toHaveLength(0)
      expect(yield* process({ name: "B", model })(told(Run.resume(clerk, { runId: "r" })))).toBe("Completed")
      expect(ran).toEqual(["mail ann"])
      expect((yield* model.requests).length).toBe(2)
    })
  )
})
