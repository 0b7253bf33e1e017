import { describe, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as AiError from "effect/ai/AiError"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { TestClock } from "effect/testing"
import * as Agent from "../src/Agent.ts"
import * as Guard from "../src/Guard.ts"
import type { Outcome } from "../src/Outcome.ts"
import { type Plugin, PluginId } from "../src/Plugin.ts"
import * as Run from "../src/Run.ts"
import * as RunState from "../src/RunState.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import {
  answer,
  approve,
  clerk,
  digestOf,
  eventsOf,
  expectValid,
  Look,
  resultsOf,
  type Services,
  tagsOf,
  told,
  world
} from "./support/scenario.ts"

const { call, calls, fail, text } = ScriptedModel

const runId = "r"
const start = Run.start(clerk, { runId, task: "go" })
const resume = Run.resume(clerk, { runId })

describe("a tool that is another one at the resume", () => {
  const Before = Tool.make("wire", {
    parameters: Schema.Struct({ a: Schema.Number }),
    success: Schema.String,
    needsApproval: true
  })
  const Later = Tool.make("wire", {
    parameters: Schema.Struct({ a: Schema.Number, b: Schema.Number }),
    success: Schema.String,
    needsApproval: true
  })
  const banker = Agent.make("banker", { instructions: "Work.", tools: [Before], version: "1" })
  type Resumed = Effect.Effect<Outcome<string>, Run.ResumeError, Services | Tool.Handler<"wire">>
  const same: Resumed = Run.resume(Agent.make("banker", { instructions: "W", tools: [Before], version: "2" }), {
    runId
  })
  const other: Resumed = Run.resume(Agent.make("banker", { instructions: "W", tools: [Later], version: "2" }), {
    runId
  })
  const gone: Resumed = Run.resume(Agent.make("banker", { instructions: "W", version: "2" }), { runId })

  const approved = Effect.gen(function* () {
    const one = yield* world
    let sent = 0
    const handlers = Toolkit.make(Before).toLayer({ wire: () => Effect.sync(() => `sent ${++sent}`) })
    const model = yield* ScriptedModel.make([call("wire", { a: 1 }), text("done")])
    const here = one.process({ model })
    yield* here(Effect.provide(Run.start(banker, { runId, task: "go" }), handlers))
    const digest = yield* here(digestOf(runId, "t1.0"))
    yield* here(Run.answer(banker, { runId, callId: "t1.0", answer: { _tag: "Approve", digest }, by: "ann" }))
    return { here, handlers, model, sent: () => sent }
  })

  it.effect.each([
    ["whose arguments do not fit any more", other, "takes other arguments now"],
    ["that is gone", gone, "does not exist any more"]
  ] as const)("RI-123 a tool %s is never run: the call gets ToolDrift and the Run goes on", ([, resumed, words]) =>
    Effect.gen(function* () {
      const { handlers, here, model, sent } = yield* approved
      expect(yield* here(Effect.provide(resumed, handlers))).toMatchObject({ _tag: "Completed", output: "done" })
      expect(sent()).toBe(0)
      const result = JSON.stringify(resultsOf((yield* model.requests)[1]))
      expect(result).toContain("ToolDrift")
      expect(result).toContain(words)
      const events = yield* here(eventsOf(runId))
      expect(events.find(({ _tag }) => _tag === "ToolCallCompleted")).toMatchObject({
        ending: "invalid",
        error: "ToolDrift"
      })
      expect(events.map(({ _tag }) => _tag)).toContain("ToolsChanged")
      expect((yield* here(Run.get(runId))).version).toBe("2")
      yield* here(expectValid(runId))
    })
  )

  it.effect("RI-123 another version of the agent whose tool is the same runs it", () =>
    Effect.gen(function* () {
      const { handlers, here, sent } = yield* approved
      yield* here(Effect.provide(same, handlers))
      expect(sent()).toBe(1)
      expect(yield* here(tagsOf(runId))).not.toContain("ToolsChanged")
    })
  )
})

describe("a process that died before the next release came", () => {
  it.effect("does not use up the Run's active time: what passes until the next one takes it is not counted", () =>
    Effect.gen(function* () {
      const { here, mortal, process } = yield* world
      const script = [call("look", { at: 1 }), text("done")]
      const model = yield* ScriptedModel.make(script)
      const doomed = yield* mortal({ name: "A", model, deadly: "look" })
      yield* doomed.untilDead(start)
      yield* TestClock.adjust("1 day")
      const next = Agent.make("clerk", { instructions: "Work.", tools: [Look], version: "1" })
      expect(yield* process({ name: "B", model })(Run.resume(next, { runId }))).toMatchObject({ _tag: "Completed" })
      expect(yield* here(tagsOf(runId))).toContain("ToolsChanged")
    })
  )
})

describe("reopening", () => {
  const brief = Agent.make("brief", { instructions: "Work.", tools: [Look], limits: { maxTurns: 1 } })
  const closing = Agent.make("closing", {
    instructions: "Work.",
    tools: [Look],
    limits: { maxTurns: 1, finalAnswer: true }
  })

  it.effect("with limits is journaled, and the Run goes on from its history", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* ScriptedModel.make([call("look", { at: 1 }), call("look", { at: 2 }), text("done")])
      const one = process({ model })
      const stopped = { _tag: "Stopped", reason: { _tag: "MaxTurns" } }
      expect(yield* one(Run.start(brief, { runId, task: "go" }))).toMatchObject(stopped)
      expect(yield* one(Run.resume(brief, { runId }))).toMatchObject(stopped)
      expect(yield* one(Run.resume(brief, { runId, limits: { maxTurns: 3 }, by: "ann" }))).toMatchObject({
        _tag: "Completed",
        turns: 3
      })
      const reopened = (yield* here(eventsOf(runId))).filter(({ _tag }) => _tag === "RunReopened")
      expect(reopened).toMatchObject([{ by: "ann", limits: { maxTurns: 3 } }])
      const roles = (yield* model.requests)[2]?.messages.map(({ role }) => role)
      expect(roles).toEqual(["system", "user", "assistant", "tool", "assistant", "tool"])
      yield* here(expectValid(runId))
    })
  )

  it.effect("with the limits it has stops it at once again", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* ScriptedModel.make([call("look", { at: 1 })])
      const one = process({ model })
      yield* one(Run.start(brief, { runId, task: "go" }))
      expect(yield* one(Run.resume(brief, { runId, reopen: true }))).toMatchObject({ _tag: "Stopped", turns: 1 })
      const tags = yield* here(tagsOf(runId))
      expect(tags.filter((tag) => tag === "RunFinished")).toHaveLength(2)
      expect(tags).toContain("RunReopened")
    })
  )

  it.effect("gives the model a final answer again when the new limit is reached", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const script = [call("look", { at: 1 }), text("so far: 1"), call("look", { at: 2 }), text("so far: 1 and 2")]
      const model = yield* ScriptedModel.make(script)
      const one = process({ model })
      expect(yield* one(Run.start(closing, { runId, task: "go" }))).toMatchObject({
        _tag: "Stopped",
        reason: { _tag: "MaxTurns" },
        answer: "so far: 1"
      })
      const again = Run.resume(closing, { runId, limits: { maxTurns: 3 } })
      expect(yield* one(again)).toMatchObject({
        _tag: "Stopped",
        reason: { _tag: "MaxTurns" },
        answer: "so far: 1 and 2"
      })
      expect((yield* model.requests).map(({ tools }) => tools.length)).toEqual([1, 0, 1, 0])
      yield* here(expectValid(runId))
    })
  )

  it.effect("a Run with a final answer lets it complete after all", () =>
    Effect.gen(function* () {
      const { process } = yield* world
      const model = yield* ScriptedModel.make([call("look", { at: 1 }), text("so far"), text("all of it")])
      const one = process({ model })
      yield* one(Run.start(closing, { runId, task: "go" }))
      expect(yield* one(Run.resume(closing, { runId, limits: { maxTurns: 5 } }))).toMatchObject({
        _tag: "Completed",
        output: "all of it"
      })
    })
  )

  it.effect("a failed Run asks the model again; without it the Run fails as before", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const refuses = fail(new AiError.ContentPolicyError({ description: "no" }))
      const model = yield* ScriptedModel.make([refuses, text("done")])
      const one = process({ model })
      for (const again of [start, start, Run.start(clerk, { runId, task: "go" })]) {
        expect(yield* one(told(again))).toBe("Fatal ModelRefusal")
      }
      expect(yield* one(told(resume))).toBe("Fatal ModelRefusal")
      expect(yield* model.requests).toHaveLength(1)
      expect(yield* one(Run.resume(clerk, { runId, reopen: true }))).toMatchObject({
        _tag: "Completed",
        output: "done"
      })
      yield* here(expectValid(runId))
    })
  )
})

class Watcher extends Context.Service<Watcher, Plugin>()("test/Watcher") {}
/** A guard that allows everything. */
const watcher = Layer.succeed(Watcher, {
  [PluginId]: {
    name: "watcher",
    guards: [Guard.make({ name: "watcher", stage: "budget", initial: 0, fold: (n) => n, check: () => Guard.allow })]
  }
})

describe("plugins", () => {
  it.effect("a resume without one of them fails, writes nothing and leaves the Run free", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const model = yield* ScriptedModel.make([call("pay", { amount: 1 }), text("done")])
      const guarded = process({ model, extra: watcher })
      yield* guarded(start)
      yield* here(approve(runId, "t1.0"))
      const stored = yield* here(tagsOf(runId))
      expect(yield* Effect.flip(process({ model })(resume))).toMatchObject({
        _tag: "Fatal",
        reason: { _tag: "PluginMissing", missing: ["watcher"] }
      })
      expect(yield* here(tagsOf(runId))).toEqual(stored)
      expect(ran).toEqual([])
      expect(yield* guarded(resume)).toMatchObject({ _tag: "Completed" })
    })
  )

  it.effect("`without` goes on without one, which is journaled and need not be said again", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const script = [call("pay", { amount: 1 }), call("pay", { amount: 2 }), text("done")]
      const model = yield* ScriptedModel.make(script)
      yield* process({ model, extra: watcher })(start)
      yield* here(approve(runId, "t1.0"))
      const plain = process({ model })
      expect(yield* plain(Run.resume(clerk, { runId, without: ["watcher"] }))).toMatchObject({ _tag: "Suspended" })
      const attempts = (yield* here(eventsOf(runId))).filter(({ _tag }) => _tag === "AttemptStarted")
      expect(attempts[1]).toMatchObject({ without: ["watcher"], plugins: [] })
      yield* here(approve(runId, "t2.0"))
      expect(yield* plain(resume)).toMatchObject({ _tag: "Completed" })
      expect(ran).toEqual(["pay 1", "pay 2"])
    })
  )

  it.effect("`without` another one does not help", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* ScriptedModel.make([call("pay", { amount: 1 })])
      yield* process({ model, extra: watcher })(start)
      yield* here(approve(runId, "t1.0"))
      expect(yield* process({ model })(told(Run.resume(clerk, { runId, without: ["other"] })))).toBe(
        "Fatal PluginMissing"
      )
    })
  )
})

describe("accept and start", () => {
  it.effect("are both safe to repeat: one Run, driven once", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const model = yield* ScriptedModel.make([call("mail", { to: "bob" }), text("done")])
      const accept = Run.accept(clerk, { runId, task: "go", session: "s", principal: { id: "ann" } })
      const one = process({ model })
      yield* here(accept)
      yield* here(accept)
      expect(yield* here(tagsOf(runId))).toEqual(["RunAccepted"])
      expect(yield* one(start)).toMatchObject({ _tag: "Completed", output: "done" })
      const stored = yield* here(eventsOf(runId))
      yield* here(accept)
      expect(yield* one(start)).toMatchObject({ _tag: "Completed", output: "done" })
      expect(yield* one(resume)).toMatchObject({ _tag: "Completed", output: "done" })
      expect(yield* here(eventsOf(runId))).toEqual(stored)
      expect(ran).toEqual(["mail bob"])
      yield* model.assertConsumed
      expect(yield* here(Run.list({ session: "s" }))).toMatchObject([{ runId }])
      expect(RunState.fromEvents(stored).principal).toEqual({ id: "ann" })
    })
  )

  it.effect("another agent's Run is not theirs", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* ScriptedModel.make([text("done")])
      const one = process({ model })
      const other = Agent.make("other", { instructions: "Work." })
      yield* one(start)
      expect(yield* here(told(Run.accept(other, { runId, task: "go" })))).toBe("Fatal RunExists")
      expect(yield* one(told(Run.start(other, { runId, task: "go" })))).toBe("Fatal RunExists")
      expect(yield* one(told(Run.resume(other, { runId })))).toBe("Fatal RunExists")
    })
  )
})

describe("the history of a Run that waited", () => {
  it.effect("RI-013 has every call before its result, at every checkpoint and on every branch", () =>
    Effect.gen(function* () {
      const { here, process, store } = yield* world
      const script = [
        calls([
          ["pay", { amount: 1 }],
          ["ask", { question: "sure?" }],
          ["mail", { to: "bob" }]
        ]),
        text(""),
        call("pay", { amount: 2 }),
        text("done")
      ]
      const model = yield* ScriptedModel.make(script)
      const one = process({ model })
      yield* one(start)
      yield* here(approve(runId, "t1.0"))
      yield* one(resume)
      yield* here(answer(runId, "t1.1", { _tag: "Value", value: "yes" }))
      yield* one(resume)
      yield* here(Run.send({ runId, message: "never mind" }))
      expect(yield* one(resume)).toMatchObject({ _tag: "Completed" })
      yield* model.assertConsumed
      yield* here(expectValid(runId))
      for (const at of yield* here(Run.checkpoints(runId))) {
        const id = yield* here(Run.fork({ runId, id: `fork-${at}`, at }))
        yield* here(expectValid(id))
      }
      const events = yield* store.read(runId, { after: 0, limit: 100 })
      const seqOf = (tag: string) => events.filter(({ body }) => body.includes(`"_tag":"${tag}"`)).map(({ seq }) => seq)
      expect(Math.min(...seqOf("ToolCallCompleted"))).toBeGreaterThan(Math.min(...seqOf("TurnCompleted")))
    })
  )
})
