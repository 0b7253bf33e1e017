import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Agent from "../src/Agent.ts"
import * as Run from "../src/Run.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import * as ToolOptions from "../src/ToolOptions.ts"
import { answerAt, boss, cast, pending, runId, worker, yes } from "./support/family.ts"
import { eventsOf, expectValid, world } from "./support/scenario.ts"
import { only } from "./support/tools.ts"

const { call, calls, text } = ScriptedModel

const ann = worker("ann")
const eve = worker("eve")
const asked = Agent.asTool(ann, { name: "ask", description: "Asks." })
const leadOf = (tool: typeof asked, limits: Agent.Agent["limits"] | object = {}) =>
  Agent.make("lead", { instructions: "You are lead.", tools: [tool], limits })
const lead = leadOf(asked)

/** The Run rests at a question of its sub-agent; then the application is deployed anew. */
const deployed = (after: Agent.Agent) =>
  Effect.gen(function* () {
    const { here, process, ran } = yield* world
    const model = yield* cast({
      lead: [call("ask", { task: "pay" }), text("done")],
      ann: [call("pay", { amount: 1 }), text("paid")],
      eve: [text("I am eve")]
    })
    yield* process({ model })(Run.start(lead, { runId, task: "go" }))
    expect(yield* here(pending(runId))).toEqual(["approval t1.0/t1.0"])
    const outcome = yield* process({ model })(Run.resume(after as typeof lead, { runId, reopen: false }))
    return { here, process, ran, model, outcome }
  })

/** Somebody has told the root to go on, so that the call is looked at again. */
const woken = (after: Agent.Agent) =>
  Effect.gen(function* () {
    const { here, process, ran } = yield* world
    const model = yield* cast({
      lead: [call("ask", { task: "pay" }), text("done")],
      ann: [call("pay", { amount: 1 }), text("paid")],
      eve: [text("I am eve")]
    })
    yield* process({ model })(Run.start(lead, { runId, task: "go" }))
    yield* here(answerAt(lead, "t1.0/t1.0", yes))
    const outcome = yield* process({ model })(Run.resume(after as typeof lead, { runId }))
    const child = yield* here(Run.get("r.t1.0"))
    const [completed] = only(yield* here(eventsOf(runId)), "ToolCallCompleted")
    yield* here(expectValid(runId, "r.t1.0"))
    return { ran, outcome, child, completed, root: yield* here(Run.get(runId)) }
  })

describe("a sub-agent whose caller has changed", () => {
  it.effect.each([
    [
      "takes other arguments",
      leadOf(
        Agent.asTool(ann, {
          name: "ask",
          description: "Asks.",
          parameters: Schema.Struct({ what: Schema.Number })
        }) as never
      ),
      "ToolDrift"
    ],
    ["is another agent", leadOf(Agent.asTool(eve, { name: "ask", description: "Asks." }) as never), "ToolDrift"],
    ["may not be called from so deep", leadOf(asked, { maxDepth: 0 }), "DepthExceeded"]
  ] as const)(
    "CH3 is ended, and counted, before its call gets a result that says why: its tool %s",
    ([, after, error]) =>
      Effect.gen(function* () {
        const { child, completed, outcome, ran, root } = yield* woken(after)
        expect(outcome).toMatchObject({ _tag: "Completed", output: "done" })
        expect(child.status).toBe("cancelled")
        expect(completed).toMatchObject({
          isFailure: true,
          ending: "invalid",
          error,
          child: { runId: "r.t1.0", turns: 1 }
        })
        expect(root.usage.input).toBe(30)
        expect(ran).toEqual([])
      })
  )

  it.effect("RI-123 goes on where nothing has changed for it", () =>
    Effect.gen(function* () {
      const { outcome, ran } = yield* deployed(lead)
      expect({ outcome: outcome._tag, ran }).toEqual({ outcome: "Suspended", ran: [] })
      expect((yield* woken(lead)).ran).toEqual(["pay 1"])
    })
  )
})

describe("questions of a sub-agent that nobody is there to be asked any more", () => {
  const asks = (agent: string) => call(`ask_${agent}`, { task: "go" })
  const asking = cast({
    lead: [asks("mid"), text("done")],
    mid: [asks("ann"), text("mid done")],
    ann: [
      calls([
        ["pay", { amount: 1 }],
        ["ask", { question: "sure?" }]
      ]),
      text("nobody there")
    ]
  })
  const three = (top: "bubble" | "deny", low: "bubble" | "deny") =>
    boss("lead", [boss("mid", [worker("ann")], { approvals: low })], { approvals: top })
  const input = { runId, task: "go" }
  const before = three("bubble", "bubble")
  const rested = Effect.gen(function* () {
    const { here, process, ran } = yield* world
    const model = yield* asking
    yield* process({ model })(Run.start(before, input))
    expect(yield* here(pending(runId))).toEqual(["approval t1.0/t1.0/t1.0", "external t1.0/t1.0/t1.1"])
    return { here, model, ran, process: process({ name: "B", model }) }
  })

  it.effect.each([
    ["deny", "bubble", "resumed"],
    ["bubble", "deny", "resumed"],
    ["deny", "bubble", "started"]
  ] as const)("RI-074 are answered with the denial (%s above %s) when the root is %s", ([top, low, verb]) =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* rested
      const after = three(top, low)
      const outcome = yield* verb === "resumed"
        ? process(Run.resume(after, { runId }))
        : process(Run.start(after, input))
      expect(outcome).toMatchObject({ _tag: "Completed", output: "done" })
      const ann = yield* here(eventsOf("r.t1.0.t1.0"))
      expect(only(ann, "VerdictGiven")).toMatchObject([
        { guard: "core", on: "t1.0", verdict: "Deny", message: "no approver: pay needs approval" },
        { guard: "core", on: "t1.1", verdict: "Deny", message: expect.stringContaining("no approver") }
      ])
      expect(only(ann, "ToolCallCompleted").map(({ ending }) => ending)).toEqual(["refused", "refused"])
      expect(ran).toEqual([])
      yield* here(expectValid(runId, "r.t1.0", "r.t1.0.t1.0"))
    })
  )

  it.effect("stay where only another sub-agent is denied them, and where the root is paused", () =>
    Effect.gen(function* () {
      const { here, process } = yield* rested
      const other = boss("mid", [boss("eve", [worker("bob")], { approvals: "deny" }), worker("ann")])
      const { seq } = yield* here(Run.get(runId))
      expect(yield* process(Run.resume(boss("lead", [other]), { runId }))).toMatchObject({ _tag: "Suspended" })
      expect((yield* here(Run.get(runId))).seq).toBe(seq)
      yield* here(Run.pause({ runId }))
      expect(yield* process(Run.start(three("deny", "deny"), input))).toMatchObject({ _tag: "Suspended" })
      expect((yield* here(Run.get(runId))).seq).toBe(seq + 1)
    })
  )

  it.effect("a call in doubt stays a question: nobody but a person can know", () =>
    Effect.gen(function* () {
      const { here, mortal, process } = yield* world
      const model = yield* cast({ lead: [asks("ann"), text("done")], ann: [call("mail", { to: "x" }), text("mailed")] })
      const dying = yield* mortal({ name: "M", model, deadly: "mail" })
      yield* dying.untilDead(Run.start(boss("lead", [worker("ann")]), input))
      const alone = boss("lead", [worker("ann")], { approvals: "deny" })
      for (const name of ["B", "C"]) {
        expect(yield* process({ name, model })(Run.resume(alone, { runId }))).toMatchObject({ _tag: "Suspended" })
        expect(yield* here(pending(runId))).toEqual(["in-doubt t1.0/t1.0"])
      }
    })
  )
})

describe("an answer below a root", () => {
  const Age = ToolOptions.external(Tool.make("age", { success: Schema.Number }))
  const Name = ToolOptions.external(Tool.make("age", { success: Schema.String }))
  const one = Agent.make("twin", { instructions: "You are ann.", tools: [Age] })
  const two = Agent.make("twin", { instructions: "You are bob.", tools: [Name] })
  const chief = Agent.make("lead", {
    instructions: "You are lead.",
    tools: [
      Agent.asTool(one, { name: "ask_one", description: "Asks." }),
      Agent.asTool(two, { name: "ask_two", description: "Asks." })
    ]
  })

  it.effect("is checked by the agent that the call leads to, also where two bear one name", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* cast({
        lead: [call("ask_two", { task: "go" }), text("done")],
        bob: [call("age", {}), text("heard")]
      })
      yield* process({ model })(Run.start(chief, { runId, task: "go" }))
      const answer = (value: Schema.Json) =>
        here(Run.answer(chief, { runId, callId: "t1.0", path: ["t1.0"], answer: { _tag: "Value", value }, by: "ann" }))
      expect(yield* Effect.result(answer(5))).toMatchObject({
        _tag: "Failure",
        failure: { reason: { _tag: "AnswerInvalid" } }
      })
      expect(Result.isSuccess(yield* Effect.result(answer("five")))).toBe(true)
    })
  )
})
