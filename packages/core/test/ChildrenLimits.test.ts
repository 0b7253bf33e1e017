import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as AiError from "effect/ai/AiError"
import { TestClock } from "effect/testing"
import * as Agent from "../src/Agent.ts"
import * as Guard from "../src/Guard.ts"
import * as Run from "../src/Run.ts"
import { runIdOf } from "../src/SubAgent.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import { answerAt, boss, cast, pending, runId, worker, yes } from "./support/family.ts"
import { asksUntil, begin, eventsOf, expectValid, pass, resultsOf, tagsOf, told, world } from "./support/scenario.ts"
import { only, plugged } from "./support/tools.ts"

const { call, calls, fail, text } = ScriptedModel

const asks = (agent: string) => call(`ask_${agent}`, { task: "go on" })
const input = { runId, task: "go" }
const overloaded = fail(new AiError.InternalProviderError({ description: "overloaded" }))

/** Agents of these names, each the tool of the one before. */
const chain = (...names: ReadonlyArray<string>): ReturnType<typeof worker> => {
  const [name = "", ...below] = names
  return below.length === 0 ? worker(name) : (boss(name, [chain(...below)]) as ReturnType<typeof worker>)
}

describe("how deep and how far a tree of agents goes", () => {
  it.effect("RI-126 an agent that stands above cannot be called again, and its Run is not created", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* cast({
        a: (turn) => (turn === 0 ? asks("b") : text("a done")),
        b: (turn) => (turn === 0 ? asks("a") : text("b done"))
      })
      expect(yield* process({ model })(Run.start(chain("a", "b", "a"), input))).toMatchObject({ output: "a done" })
      const [refused] = only(yield* here(eventsOf("r.t1.0")), "ToolCallCompleted")
      expect(refused).toMatchObject({ isFailure: true, ending: "invalid", error: "AgentCycle" })
      expect(JSON.stringify(refused?.result)).toContain("a > b > a")
      expect(yield* here(told(Run.get("r.t1.0.t1.0")))).toBe("Fatal RunNotFound")
      expect([model.asked("a"), model.asked("b")]).toEqual([2, 2])
    })
  )

  it.effect("RI-126 TR1 no more than four agents stand below the first, and fewer where one of them says so", () =>
    Effect.gen(function* () {
      const names = ["a", "b", "c", "d", "e", "f"]
      const script = Object.fromEntries(
        names.map((name, i) => [
          name,
          (turn: number) => (turn === 0 && i < 5 ? asks(names[i + 1] ?? "") : text(`${name} done`))
        ])
      )
      const { here, process } = yield* world
      const model = yield* cast(script)
      expect(yield* process({ model })(Run.start(chain(...names), input))).toMatchObject({ output: "a done" })
      const [refused] = only(yield* here(eventsOf("r.t1.0.t1.0.t1.0.t1.0")), "ToolCallCompleted")
      expect(refused).toMatchObject({ isFailure: true, ending: "invalid", error: "DepthExceeded" })
      expect(model.asked("f")).toBe(0)

      const other = yield* world
      const again = yield* cast(script)
      const flat = boss("a", [chain("b", "c", "d")], { limits: { maxDepth: 1 } })
      yield* other.process({ model: again })(Run.start(flat, input))
      expect(only(yield* other.here(eventsOf("r.t1.0")), "ToolCallCompleted")).toMatchObject([
        { error: "DepthExceeded" }
      ])
      expect(again.asked("c")).toBe(0)
    })
  )

  it.effect("RI-126 TR2 the model calls of a whole tree are limited", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const busy = worker("ann", { limits: { maxConsecutiveFailures: 100 } })
      const lead = boss("lead", [busy], { limits: { maxTreeTurns: 12, maxConsecutiveFailures: 100 } })
      const model = yield* cast({ lead: () => asks("ann"), ann: () => call("look", { at: 1 }) })
      const outcome = yield* process({ model })(Run.start(lead, input))
      // It says that the limit was the tree's: its own count is far from its own limit.
      expect(outcome._tag === "Stopped" && outcome.reason).toEqual({ _tag: "MaxTurns", tree: true })
      expect(model.asked("lead") + model.asked("ann")).toBe(12)
      expect(yield* here(Run.get("r.t1.0"))).toMatchObject({ status: "stopped" })
      // Another process counts the same.
      yield* process({ name: "B", model })(Run.resume(lead, { runId, limits: { maxTreeTurns: 15 } }))
      expect(model.asked("lead") + model.asked("ann")).toBe(15)
    })
  )

  it.effect("a Run that has made as many model calls as it may itself does not blame the tree", () =>
    Effect.gen(function* () {
      const { process } = yield* world
      const model = yield* cast({ ann: () => call("look", { at: 1 }) })
      const outcome = yield* process({ model })(Run.start(worker("ann", { limits: { maxTurns: 2 } }), input))
      expect(outcome._tag === "Stopped" && outcome.reason).toEqual({ _tag: "MaxTurns" })
    })
  )

  it.effect("RI-126 TR2 those that work beside each other share what is left", () =>
    Effect.gen(function* () {
      const { process } = yield* world
      const lead = boss("lead", [worker("ann"), worker("bob")], { concurrency: 2, limits: { maxTreeTurns: 9 } })
      const both = calls([
        ["ask_ann", { task: "1" }],
        ["ask_bob", { task: "2" }]
      ])
      const look = () => call("look", { at: 1 })
      const model = yield* cast({ lead: () => both, ann: look, bob: look })
      yield* process({ model })(Run.start(lead, input))
      expect(model.asked("lead") + model.asked("ann") + model.asked("bob")).toBeLessThanOrEqual(10)
    })
  )

  it.effect("CH2 an id that would be too long is a digest, and never longer than an id may be", () =>
    Effect.gen(function* () {
      let id = "x".repeat(120)
      for (let depth = 0; depth < 20; depth++) {
        const next = yield* runIdOf(id, "t12.15")
        expect(next).toMatch(/^[A-Za-z0-9._:-]{1,128}$/)
        expect(next).toBe(yield* runIdOf(id, "t12.15"))
        expect(next).not.toBe(id)
        id = next
      }
    })
  )

  it.effect("CH2 an id that another Run has is an error of that call, and that Run is left alone", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const ann = worker("ann")
      const model = yield* cast({ lead: [asks("ann"), text("done")], ann: [text("mine")] })
      yield* process({ model })(Run.start(ann, { runId: "r.t1.0", task: "mine" }))
      const before = yield* here(eventsOf("r.t1.0"))
      expect(yield* process({ model })(Run.start(boss("lead", [ann]), input))).toMatchObject({ output: "done" })
      expect(resultsOf((yield* model.requests).at(-1))).toMatchObject([{ isFailure: true }])
      expect(yield* here(eventsOf("r.t1.0"))).toEqual(before)
    })
  )
})

describe("a Run that is stopped for what a sub-agent was stopped for", () => {
  /** Stops these agents before the model call of that turn, for that reason. */
  const stops = (reason: "Budget" | "Loop", turns: { readonly [agent: string]: number }) =>
    plugged({
      name: "counter",
      guards: [
        Guard.make({
          name: "counter",
          stage: "budget",
          initial: 0,
          fold: (memory) => memory,
          check: ({ proposal, state: { head } }) =>
            proposal._tag === "Step" && head.turn + 1 === turns[head.agent]
              ? { _tag: "Stop", message: "enough", stop: { _tag: reason } }
              : Guard.allow
        })
      ]
    })
  const three = chain("lead", "mid", "ann")
  const script = {
    lead: [asks("mid"), call("look", { at: 1 })],
    mid: [asks("ann"), text("mid done")],
    ann: [call("look", { at: 1 }), text("ann done")]
  }
  const reasonOf = (extra: ReturnType<typeof stops>) =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const outcome = yield* process({ model: yield* cast(script), extra })(Run.start(three, input))
      const [completed] = only(yield* here(eventsOf(runId)), "ToolCallCompleted")
      return {
        reason: outcome._tag === "Stopped" ? outcome.reason : undefined,
        told: JSON.stringify(completed?.result)
      }
    })

  it.effect.each(["Budget", "Loop"] as const)("RI-005 names the Run that it began in, however deep: %s", (_tag) =>
    Effect.gen(function* () {
      const one = yield* reasonOf(stops(_tag, { lead: 2, mid: 2 }))
      expect(one.reason).toEqual({ _tag, who: "r.t1.0" })
      const two = yield* reasonOf(stops(_tag, { lead: 2, mid: 2, ann: 2 }))
      expect(two.reason).toEqual({ _tag, who: "r.t1.0.t1.0" })
      expect(two.told).toContain("(by r.t1.0.t1.0)")
    })
  )

  it.effect("names nobody where it is the Run itself, or where its model has answered since", () =>
    Effect.gen(function* () {
      expect((yield* reasonOf(stops("Budget", { lead: 2 }))).reason).toEqual({ _tag: "Budget" })
      expect((yield* reasonOf(stops("Budget", { lead: 3, mid: 2 }))).reason).toEqual({ _tag: "Budget" })
    })
  )
})

describe("an agent below that fails or rests", () => {
  it.effect("RI-161 deaths inside of it park the root as Poisoned at the fourth", () =>
    Effect.gen(function* () {
      const { here, mortal, process, ran } = yield* world
      const lead = boss("lead", [worker("ann")])
      const model = yield* cast({ lead: [asks("ann"), text("done")], ann: [call("book", { seat: 1 }), text("booked")] })
      for (let death = 1; death <= 4; death++) {
        const dying = yield* mortal({ name: `M${death}`, model, deadly: "book" })
        const first = Effect.asVoid(Run.start(lead, input))
        yield* dying.untilDead(death === 1 ? first : Effect.asVoid(Run.recover([lead])))
      }
      expect(ran).toEqual(Array(4).fill("book died"))
      const swept = yield* process({ name: "B", model })(Run.recover([lead]))
      expect(swept).toMatchObject([{ _tag: "Failed", error: { reason: { _tag: "Poisoned" } } }])
      expect(ran.length).toBe(4)
      expect(yield* here(Run.get(runId))).toMatchObject({ status: "failed" })
      expect(yield* here(Run.get("r.t1.0"))).toMatchObject({ status: "cancelled" })
      yield* here(expectValid(runId, "r.t1.0"))
    })
  )

  it.effect("CH4 the root rests as long as its model stays away, and goes on by itself", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const lead = boss("lead", [worker("ann")])
      let away = true
      const model = yield* cast({ lead: [asks("ann"), text("done")], ann: () => (away ? overloaded : text("back")) })
      const fiber = yield* begin(Effect.flip(process({ model })(Run.start(lead, input))))
      yield* pass(40_000)
      const error = yield* Fiber.join(fiber)
      const wakeAt = yield* here(Effect.map(Run.get("r.t1.0"), ({ wakeAt }) => wakeAt))
      expect(error).toMatchObject({ _tag: "Retryable", wakeAt, reason: { _tag: "ModelUnavailable" } })
      expect(yield* here(Run.get(runId))).toMatchObject({ status: "waiting", wakeAt, waiting: [{ kind: "retry" }] })
      expect(yield* process({ name: "B", model })(Run.recover([lead]))).toEqual([])
      away = false
      yield* TestClock.adjust("1 minute")
      expect(yield* process({ name: "C", model })(Run.recover([lead]))).toMatchObject([{ outcome: { output: "done" } }])
      yield* here(expectValid(runId, "r.t1.0"))
    })
  )

  it.effect("CH4 one that rests does not hold up an answer to another one, nor the other way round", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const lead = boss("lead", [worker("ann"), worker("bob")], { concurrency: 2 })
      let away = true
      const both = calls([
        ["ask_ann", { task: "1" }],
        ["ask_bob", { task: "2" }]
      ])
      const model = yield* cast({
        lead: [both, text("done")],
        ann: () => (away ? overloaded : text("back")),
        bob: [call("pay", { amount: 1 }), text("paid")]
      })
      const fiber = yield* begin(process({ model })(Run.start(lead, input)))
      yield* pass(40_000)
      expect(yield* Fiber.join(fiber)).toMatchObject({ _tag: "Suspended" })
      expect(yield* here(pending(runId))).toEqual(["approval t1.1/t1.0", "retry retry"])
      yield* here(answerAt(lead, "t1.1/t1.0", yes))
      const going = yield* begin(process({ name: "B", model })(Run.recover([lead])))
      yield* pass(1000)
      yield* Fiber.join(going)
      expect(ran).toEqual(["pay 1"])
      expect(yield* here(pending(runId))).toEqual(["retry retry"])
      away = false
      yield* TestClock.adjust("1 minute")
      expect(yield* process({ name: "C", model })(Run.recover([lead]))).toMatchObject([{ outcome: { output: "done" } }])
    })
  )

  it.effect("CH4 a question that nobody answered in time expires in its own Run, by a sweep of the root", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const lead = boss("lead", [worker("ann")])
      const extra = asksUntil(5000)
      const model = yield* cast({ lead: [asks("ann"), text("done")], ann: [call("mail", { to: "x" }), text("no")] })
      yield* process({ model, extra })(Run.start(lead, input))
      yield* TestClock.adjust("6 seconds")
      expect(yield* here(told(answerAt(lead, "t1.0/t1.0", yes)))).toBe("Fatal ApprovalExpired")
      const swept = yield* process({ name: "B", model, extra })(Run.recover([lead]))
      expect(swept).toMatchObject([{ outcome: { output: "done" } }])
      expect(yield* here(tagsOf("r.t1.0"))).toContain("WaitExpired")
      expect(ran).toEqual([])
    })
  )

  it.effect("a time limit of the root ends what is below", () =>
    Effect.gen(function* () {
      const { here, process, store } = yield* world
      const lead = boss("lead", [worker("ann")], { limits: { activeTime: "3 seconds" } })
      const model = yield* cast({ lead: [asks("ann")], ann: [ScriptedModel.hang] })
      const fiber = yield* begin(process({ model })(Run.start(lead, input)))
      yield* pass(6000)
      expect(yield* Fiber.join(fiber)).toMatchObject({ _tag: "Stopped", reason: { _tag: "Deadline" } })
      expect(yield* here(Run.get("r.t1.0"))).toMatchObject({ status: "cancelled" })
      expect((yield* store.head("r.t1.0"))?.owner).toBeUndefined()
      yield* here(expectValid(runId, "r.t1.0"))
    })
  )

  it.effect("OwnershipLost of the root stops what it drives below, and the new owner goes on with it", () =>
    Effect.gen(function* () {
      const { dead, here, process, ran } = yield* world
      const lead = boss("lead", [worker("ann")])
      const model = yield* cast({
        lead: [asks("ann"), text("done")],
        ann: [ScriptedModel.after("1 minute", call("mail", { to: "x" })), call("mail", { to: "x" }), text("mailed")]
      })
      const old = yield* begin(told(process({ name: "A", model })(Run.start(lead, input))))
      yield* pass(1000)
      dead.add("A") // wrongly: it only looks dead
      const fiber = yield* begin(process({ name: "B", model })(Run.resume(lead, { runId })))
      yield* pass(70_000)
      expect(yield* Fiber.join(old)).toBe("Fatal OwnershipLost")
      expect(yield* Fiber.join(fiber)).toMatchObject({ output: "done" })
      expect(ran).toEqual(["mail x", "mail x"])
      yield* here(expectValid(runId, "r.t1.0"))
    })
  )
})

describe("what a plugin of the root decides about an agent below", () => {
  const strict = plugged({
    name: "strict",
    guards: [
      Guard.make({
        name: "strict",
        stage: "permissions",
        initial: 0,
        fold: (memory) => memory,
        check: ({ proposal }) =>
          proposal._tag === "Call" && proposal.call.name === "mail" ? Guard.deny("no mails") : Guard.allow
      })
    ]
  })

  it.effect("a call that the root may not make is denied below it, too", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const lead = boss("lead", [worker("ann")])
      const model = yield* cast({ lead: [asks("ann"), text("done")], ann: [call("mail", { to: "x" }), text("denied")] })
      expect(yield* process({ model, extra: strict })(Run.start(lead, input))).toMatchObject({ output: "done" })
      expect(ran).toEqual([])
      expect(only(yield* here(eventsOf("r.t1.0")), "RunStarted")[0]?.plugins).toEqual(["strict"])
    })
  )

  it.effect("a resume without it fails for the whole tree", () =>
    Effect.gen(function* () {
      const { process, here } = yield* world
      const lead = boss("lead", [worker("ann")])
      const model = yield* cast({ lead: [asks("ann"), text("done")], ann: [call("pay", { amount: 1 }), text("paid")] })
      yield* process({ model, extra: strict })(Run.start(lead, input))
      yield* here(answerAt(lead, "t1.0/t1.0", yes))
      const resume = Run.resume(lead, { runId })
      expect(yield* told(process({ name: "B", model })(resume))).toBe("Fatal PluginMissing")
      expect(yield* told(process({ name: "C", model, extra: strict })(resume))).toBe("Completed")
    })
  )

  it.effect("a person must agree to the call of an agent that needs it, and no Run exists before", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const careful = Agent.asTool(worker("ann"), { name: "ask_ann", description: "Asks.", needsApproval: true })
      const lead = Agent.make("lead", { instructions: "You are lead.", tools: [careful] })
      const model = yield* cast({ lead: [asks("ann"), text("done")], ann: [text("hi")] })
      yield* process({ model })(Run.start(lead, input))
      expect(yield* here(pending(runId))).toEqual(["approval t1.0"])
      expect(yield* here(Run.list({ parent: runId }))).toEqual([])
      yield* here(answerAt(lead, "t1.0", yes))
      expect(yield* process({ name: "B", model })(Run.resume(lead, { runId }))).toMatchObject({ output: "done" })
    })
  )
})
