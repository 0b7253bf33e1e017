import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { TestClock } from "effect/testing"
import * as Agent from "../src/Agent.ts"
import type { CheckpointStore } from "../src/CheckpointStore.ts"
import * as Guard from "../src/Guard.ts"
import * as Run from "../src/Run.ts"
import { StoreUnavailable } from "../src/RunError.ts"
import type { RunEvent } from "../src/RunEvent.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import * as YieldingStore from "../src/testing/YieldingStore.ts"
import {
  answer,
  approve,
  asksUntil,
  begin,
  clerk,
  deny,
  digestOf,
  eventsOf,
  expectValid,
  pass,
  type Process,
  resultsOf,
  tagsOf,
  told,
  waitOf,
  world
} from "./support/scenario.ts"
import { plugged } from "./support/tools.ts"

const { call, calls, text } = ScriptedModel

const runId = "r"
const start = Run.start(clerk, { runId, task: "go" })
const resume = Run.resume(clerk, { runId })
const approved = (digest: string) => ({ _tag: "Approve", digest }) as const

/** A reply that pays these amounts, one call each, and then the answer. */
const payments = (...amounts: ReadonlyArray<number>) => [
  calls(amounts.map((amount) => ["pay", { amount }] as const)),
  text("done")
]

const isKind =
  <Tag extends RunEvent["_tag"]>(tag: Tag) =>
  (event: RunEvent): event is Extract<RunEvent, { readonly _tag: Tag }> =>
    event._tag === tag

describe("approvals", () => {
  it.effect("RI-007 a sibling that finished before the wait is not run again by another process", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const script = [
        calls([
          ["mail", { to: "bob" }],
          ["pay", { amount: 1 }]
        ]),
        text("done")
      ]
      const model = yield* ScriptedModel.make(script)
      const first = process({ model })
      expect(yield* first(start)).toMatchObject({ _tag: "Suspended", waiting: [{ id: "t1.1", kind: "approval" }] })
      const stored = (yield* here(eventsOf(runId))).find(isKind("ToolCallCompleted"))
      yield* here(approve(runId, "t1.1"))
      expect(yield* process({ name: "B", model })(resume)).toMatchObject({ _tag: "Completed", output: "done" })
      expect(ran).toEqual(["mail bob", "pay 1"])
      const results = resultsOf((yield* model.requests)[1])
      expect(JSON.stringify(results?.[0]?.result)).toBe(JSON.stringify(stored?.result))
      expect(results?.map(({ name }) => name)).toEqual(["mail", "pay"])
      yield* here(expectValid(runId))
    })
  )

  it.effect("RI-009 a message takes the place of an answer, and the call gets a result first", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const model = yield* ScriptedModel.make([call("pay", { amount: 4 }), text("five then")])
      yield* process({ model })(start)
      const digest = yield* here(digestOf(runId, "t1.0"))
      yield* here(Run.send({ runId, message: "make it 5 instead" }))
      expect(yield* here(Effect.map(Run.get(runId), ({ status, waiting }) => [status, waiting]))).toEqual([
        "running",
        []
      ])
      expect(yield* process({ model })(resume)).toMatchObject({ _tag: "Completed", output: "five then" })
      const messages = (yield* model.requests)[1]?.messages ?? []
      expect(messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "tool", "user"])
      expect(JSON.stringify(messages[3])).toContain("Superseded by a new message")
      expect(JSON.stringify(messages[4])).toContain("make it 5 instead")
      expect(ran).toEqual([])
      expect(yield* here(Effect.flip(answer(runId, "t1.0", approved(digest))))).toMatchObject({
        reason: { _tag: "AlreadyDecided", decision: { _tag: "Superseded" } }
      })
      yield* here(expectValid(runId))
    })
  )

  it.effect("RI-009 a message that lands before the ask is staged supersedes it just the same", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const script = [
        calls([
          ["mail", { to: "bob" }],
          ["pay", { amount: 4 }],
          ["ask", { question: "sure?" }]
        ]),
        text("five then")
      ]
      const model = yield* ScriptedModel.make(script)
      // The user speaks while the model is still answering with the calls.
      const spoken = process({
        model,
        wrap: (store) => ({
          ...store,
          append: (request) =>
            request.events.some((line) => line.includes('"TurnCompleted"') && line.includes('"turn":1'))
              ? Effect.andThen(spoken(Effect.ignore(sendOnce)), store.append(request))
              : store.append(request)
        })
      })
      let sent = false
      const sendOnce = Effect.suspend(() => {
        if (sent) return Effect.void
        sent = true
        return Run.send({ runId, message: "make it 5 instead" })
      })
      expect(yield* spoken(start)).toMatchObject({ _tag: "Completed", output: "five then" })
      expect(ran).toEqual(["mail bob"])
      const tags = yield* here(tagsOf(runId))
      expect(tags).not.toContain("ApprovalRequested")
      expect(tags).not.toContain("ExternalRequested")
      const endings = (yield* here(eventsOf(runId))).filter(isKind("ToolCallCompleted")).map(({ ending }) => ending)
      expect(endings.toSorted()).toEqual(["executed", "superseded", "superseded"])
      const roles = (yield* model.requests)[1]?.messages.map(({ role }) => role)
      expect(roles).toEqual(["system", "user", "assistant", "tool", "user"])
      yield* here(expectValid(runId))
    })
  )

  it.effect("RI-022 a forged or tampered decision is refused and runs nothing", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const model = yield* ScriptedModel.make(({ results }) =>
        results.length > 0 ? text("done") : call("pay", { amount: 1 })
      )
      const other = yield* ScriptedModel.make([call("pay", { amount: 2 })])
      yield* process({ model })(start)
      yield* process({ model: other })(Run.start(clerk, { runId: "other", task: "go" }))
      const digest = yield* here(digestOf(runId, "t1.0"))
      const foreign = yield* here(digestOf("other", "t1.0"))
      expect(foreign).not.toBe(digest)
      const before = yield* here(tagsOf(runId))
      expect(yield* here(told(answer(runId, "t1.0", approved("0".repeat(64)))))).toBe("Fatal DigestMismatch")
      expect(yield* here(told(answer(runId, "t1.0", approved(foreign))))).toBe("Fatal DigestMismatch")
      expect(yield* here(told(answer(runId, "t1.1", approved(digest))))).toBe("Fatal NotPending")
      expect(yield* here(told(answer(runId, "t2.0", approved(digest))))).toBe("Fatal NotPending")
      expect(yield* here(told(answer(runId, "t1.0", { _tag: "Value", value: 1 })))).toBe("Fatal NotPending")
      expect(yield* here(tagsOf(runId))).toEqual(before)
      expect(yield* process({ model })(resume)).toMatchObject({ _tag: "Suspended" })
      expect(ran).toEqual([])
      yield* here(Run.cancel({ runId }))
      expect(yield* here(told(answer(runId, "t1.0", approved(digest))))).toBe("Fatal RunTerminal")
      expect(ran).toEqual([])
    })
  )

  it.effect("RI-043 a decision delivered a hundred times over two runtimes counts once", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const model = yield* ScriptedModel.make([call("pay", { amount: 1 }), text("done")])
      yield* process({ model })(start)
      const digest = yield* here(digestOf(runId, "t1.0"))
      const slow = (name: string) => process({ name, model, wrap: (store) => YieldingStore.make(store, 2) })
      const runtimes = [slow("A"), slow("B")]
      const deliver = (i: number) => {
        const runtime = runtimes[i % 2] ?? here
        return Effect.all([runtime(told(answer(runId, "t1.0", approved(digest)))), runtime(told(resume))])
      }
      const all = yield* Effect.forEach(
        Array.from({ length: 100 }, (_, i) => i),
        deliver,
        { concurrency: "unbounded" }
      )
      expect(all.filter(([answered]) => answered !== "void")).toEqual([])
      const driven = all.map(([, resumed]) => resumed)
      expect(driven.filter((one) => one !== "Retryable RunBusy" && one !== "Completed")).toEqual([])
      expect(driven).toContain("Completed")
      const tags = yield* here(tagsOf(runId))
      expect(tags.filter((tag) => tag === "CallAnswered")).toHaveLength(1)
      expect(tags.filter((tag) => tag === "AttemptStarted")).toHaveLength(2)
      expect(ran).toEqual(["pay 1"])
      yield* model.assertConsumed
      const refused = yield* here(Effect.flip(answer(runId, "t1.0", { _tag: "Deny", digest, reason: "no" })))
      expect(refused).toMatchObject({
        _tag: "Fatal",
        reason: { _tag: "AlreadyDecided", decision: { _tag: "Approve", digest } }
      })
    })
  )

  it.effect("RI-043 of an approval and a denial at the same moment exactly one counts", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* ScriptedModel.make([call("pay", { amount: 1 })])
      yield* process({ model })(start)
      const digest = yield* here(digestOf(runId, "t1.0"))
      const slow = process({ wrap: (store) => YieldingStore.make(store, 3) })
      const results = yield* Effect.all(
        [
          slow(told(answer(runId, "t1.0", approved(digest)))),
          slow(told(answer(runId, "t1.0", { _tag: "Deny", digest, reason: "no" })))
        ],
        { concurrency: "unbounded" }
      )
      expect(results.toSorted()).toEqual(["Fatal AlreadyDecided", "void"])
    })
  )

  it.effect("RI-079 every pending call of the turn is reported, with its name and arguments", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const script = [
        calls([
          ["pay", { amount: 1 }],
          ["pay", { amount: 2 }],
          ["pay", { amount: 3 }]
        ])
      ]
      const model = yield* ScriptedModel.make(script)
      const outcome = yield* process({ model })(start)
      const waits = [1, 2, 3].map((amount) => ({
        id: `t1.${amount - 1}`,
        kind: "approval",
        name: "pay",
        arguments: { amount },
        guard: "core",
        reason: "pay needs approval"
      }))
      expect(outcome).toMatchObject({ _tag: "Suspended", waiting: waits, turns: 1 })
      expect(yield* here(Run.list({ status: "waiting", waiting: "approval" }))).toMatchObject([{ runId }])
      expect(ran).toEqual([])
    })
  )

  it.effect("RI-089 answers reach their own calls, in whatever order they come", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const script = payments(1, 2)
      const model = yield* ScriptedModel.make(script)
      yield* process({ model })(start)
      yield* here(approve(runId, "t1.1"))
      yield* here(deny(runId, "t1.0", "no"))
      expect(yield* process({ name: "B", model })(resume)).toMatchObject({ _tag: "Completed" })
      expect(ran).toEqual(["pay 2"])
      expect(resultsOf((yield* model.requests)[1])).toEqual([
        { name: "pay", isFailure: true, result: { error: "Denied by ann: no" } },
        { name: "pay", isFailure: false, result: { paid: 2 } }
      ])
      yield* here(expectValid(runId))
    })
  )

  it.effect("RI-165 of two waiting calls of one tool the second still waits when the first is answered", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const script = payments(1, 2)
      const model = yield* ScriptedModel.make(script)
      yield* process({ model })(start)
      yield* here(approve(runId, "t1.1"))
      expect(yield* process({ model })(resume)).toMatchObject({ _tag: "Suspended", waiting: [{ id: "t1.0" }] })
      expect(ran).toEqual(["pay 2"])
      expect(yield* model.requests).toHaveLength(1)
      yield* here(approve(runId, "t1.0"))
      expect(yield* process({ model })(resume)).toMatchObject({ _tag: "Completed" })
      expect(ran).toEqual(["pay 2", "pay 1"])
      const requests = yield* model.requests
      expect(requests).toHaveLength(2)
      expect(resultsOf(requests[1])?.map(({ result }) => result)).toEqual([{ paid: 1 }, { paid: 2 }])
    })
  )

  it.effect("two of three answered calls go on, and the sweep takes the Run although one still waits", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const script = payments(1, 2, 3)
      const model = yield* ScriptedModel.make(script)
      yield* process({ model })(start)
      yield* here(approve(runId, "t1.0"))
      yield* here(deny(runId, "t1.2", "too much"))
      const swept = yield* process({ model })(Run.recover([clerk]))
      expect(swept).toMatchObject([
        { _tag: "Driven", runId, outcome: { _tag: "Suspended", waiting: [{ id: "t1.1" }] } }
      ])
      expect(ran).toEqual(["pay 1"])
      expect(yield* process({ model })(Run.recover([clerk]))).toEqual([])
      yield* here(approve(runId, "t1.1"))
      expect(yield* process({ model })(Run.recover([clerk]))).toMatchObject([{ outcome: { _tag: "Completed" } }])
      expect(ran).toEqual(["pay 1", "pay 2"])
      yield* here(expectValid(runId))
    })
  )

  it.effect("a person may edit the arguments, and the edited ones must fit", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const model = yield* ScriptedModel.make([call("pay", { amount: 100 }), text("done")])
      yield* process({ model })(start)
      const digest = yield* here(digestOf(runId, "t1.0"))
      const edit = (edited: { readonly [key: string]: string | number }) =>
        here(told(answer(runId, "t1.0", { _tag: "Approve", digest, edited })))
      expect(yield* edit({ amount: "7" })).toBe("Fatal AnswerInvalid")
      expect(yield* edit({ amount: 7 })).toBe("void")
      yield* process({ model })(resume)
      expect(ran).toEqual(["pay 7"])
      const started = (yield* here(eventsOf(runId))).find(isKind("ToolCallStarted"))
      expect(started?.arguments).toEqual({ amount: 7 })
    })
  )
})

/** Forbids amounts above 50 and asks about all others; tells what it was asked. */
const ceiling = (stage: Guard.Stage, asked: Array<unknown>) =>
  plugged({
    name: "ceiling",
    guards: [
      Guard.make({
        name: "ceiling",
        stage,
        initial: undefined,
        fold: () => undefined,
        check: ({ proposal }) => {
          if (proposal._tag !== "Call") return Guard.allow
          asked.push(proposal.arguments)
          return JSON.stringify(proposal.arguments).length > '{"amount":50}'.length
            ? Guard.deny("too much")
            : Guard.ask("money")
        }
      })
    ]
  })

describe("a guard and edited arguments", () => {
  const edited = (stage: Guard.Stage, amount: number, last = "done") =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const model = yield* ScriptedModel.make([call("pay", { amount: 10 }), text(last)])
      const asked: Array<unknown> = []
      const extra = ceiling(stage, asked)
      yield* process({ model, extra })(start)
      const digest = yield* here(digestOf(runId, "t1.0"))
      yield* here(answer(runId, "t1.0", { _tag: "Approve", digest, edited: { amount } }))
      yield* process({ model, extra, name: "B" })(resume)
      yield* here(expectValid(runId))
      const events = yield* here(eventsOf(runId))
      return { asked, ran, verdicts: events.filter(isKind("VerdictGiven")), request: (yield* model.requests)[1] }
    })

  it.effect("what it denies does not run, whoever approved it, and the model is told", () =>
    Effect.gen(function* () {
      const { asked, ran, request, verdicts } = yield* edited("permissions", 500)
      expect(ran).toEqual([])
      expect(asked).toEqual([{ amount: 10 }, { amount: 500 }])
      expect(verdicts).toMatchObject([{ guard: "ceiling", on: "t1.0", verdict: "Deny", message: "too much" }])
      expect(JSON.stringify(resultsOf(request))).toContain("Refused by ceiling: too much")
    })
  )

  it.effect("what it only asks about runs: the person has answered that", () =>
    Effect.gen(function* () {
      const { asked, ran, verdicts } = yield* edited("permissions", 20)
      expect(ran).toEqual(["pay 20"])
      expect(asked).toEqual([{ amount: 10 }, { amount: 20 }])
      expect(verdicts).toEqual([])
    })
  )

  it.effect.each(["limits", "budget"] as const)("what a guard of stage %s denies does not run either", (stage) =>
    Effect.gen(function* () {
      const { asked, ran } = yield* edited(stage, 500)
      expect(ran).toEqual([])
      expect(asked).toEqual([{ amount: 10 }, { amount: 500 }])
    })
  )
})

describe("needsApproval", () => {
  /** A tool whose rule counts how often it is asked. */
  const counting = (needed: boolean) => {
    let asked = 0
    let sent = 0
    const Wire = Tool.make("wire", {
      parameters: Schema.Struct({ amount: Schema.Number }),
      success: Schema.String,
      needsApproval: () => ++asked > 0 && needed
    })
    const banker = Agent.make("banker", { instructions: "Work.", tools: [Wire] })
    const handlers = Toolkit.make(Wire).toLayer({ wire: () => Effect.sync(() => `sent ${++sent}`) })
    return {
      go: Effect.provide(Run.start(banker, { runId, task: "go" }), handlers),
      on: Effect.provide(Run.resume(banker, { runId }), handlers),
      approve: Effect.flatMap(digestOf(runId, "t1.0"), (digest) =>
        Run.answer(banker, { runId, callId: "t1.0", answer: approved(digest), by: "ann" })
      ),
      counts: () => ({ asked, sent })
    }
  }
  const startsTool = ({ events }: Parameters<CheckpointStore["Service"]["append"]>[0]) =>
    events.some((line) => line.includes('"ToolCallStarted"'))

  it.effect("RI-108 the rule of a tool is asked once per call, whatever dies before the tool", () =>
    Effect.gen(function* () {
      const { mortal, process } = yield* world
      const { approve, counts, go, on } = counting(true)
      const model = yield* ScriptedModel.make([call("wire", { amount: 1 }), text("done")])
      const here = process({ model })
      yield* here(go)
      yield* here(approve)
      const dying = yield* mortal({ name: "B", model }, (append) =>
        Effect.succeed(startsTool(append) ? "die-before" : "live")
      )
      yield* dying.untilDead(on)
      expect(counts()).toEqual({ asked: 1, sent: 0 })
      expect(yield* process({ name: "C", model })(on)).toMatchObject({ _tag: "Completed" })
      expect(counts()).toEqual({ asked: 1, sent: 1 })
    })
  )

  it.effect("RI-108 the rule of a tool is not asked again when a message comes in front of the call", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const { counts, go } = counting(false)
      const model = yield* ScriptedModel.make([call("wire", { amount: 1 }), text("done")])
      const send = here(Effect.orDie(Run.send({ runId, message: "and another thing", id: "m1" })))
      const interrupted = process({
        model,
        wrap: (store) => ({
          ...store,
          append: (append) => (startsTool(append) ? Effect.andThen(send, store.append(append)) : store.append(append))
        })
      })
      expect(yield* interrupted(go)).toMatchObject({ _tag: "Completed" })
      expect(yield* here(tagsOf(runId))).toContain("MessageReceived")
      expect(counts()).toEqual({ asked: 1, sent: 1 })
    })
  )
})

describe("an answer and the wait that it answers", () => {
  // The first call asks, the second one has an effect: its start commits the request, and the Run is still running.
  const script = [
    calls([
      ["pay", { amount: 1 }],
      ["mail", { to: "bob" }]
    ]),
    text("done")
  ]
  const suspends = ({ events }: Parameters<CheckpointStore["Service"]["append"]>[0]) =>
    events.some((line) => line.includes('"RunSuspended"'))

  /** Approves the call at that moment, then drives the Run as a worker would; nobody waits for anything. */
  const raced = (moment: "before" | "inside" | "after") =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const model = yield* ScriptedModel.make(script)
      const say = here(approve(runId, "t1.0"))
      let said = false
      const once = Effect.suspend(() => {
        if (said) return Effect.void
        said = true
        return Effect.orDie(say)
      })
      const first = process({
        model,
        handlers: { mail: ({ to }) => Effect.as(moment === "before" ? once : Effect.void, { sent: to }) },
        wrap: (store) => ({
          ...store,
          append: (request) =>
            moment === "inside" && suspends(request)
              ? Effect.andThen(once, store.append(request))
              : store.append(request)
        })
      })
      const outcome = yield* first(start)
      yield* once
      return { here, outcome, process, ran, model }
    })

  it.effect.each(["before", "inside"] as const)(
    "RI-058 an answer that lands %s the append of RunSuspended is not lost",
    (moment) =>
      Effect.gen(function* () {
        const { here, outcome, ran } = yield* raced(moment)
        expect(outcome).toMatchObject({ _tag: "Completed" })
        expect(yield* here(tagsOf(runId))).not.toContain("RunSuspended")
        expect(ran).toEqual(["pay 1"])
        yield* here(expectValid(runId))
      })
  )

  it.effect("RI-058 an answer that lands after RunSuspended makes the Run due at once", () =>
    Effect.gen(function* () {
      const { here, model, outcome, process, ran } = yield* raced("after")
      expect(outcome).toMatchObject({ _tag: "Suspended" })
      expect(yield* process({ model })(Run.recover([clerk]))).toMatchObject([{ outcome: { _tag: "Completed" } }])
      expect(ran).toEqual(["pay 1"])
      yield* here(expectValid(runId))
    })
  )

  it.effect(
    "RI-058 in 250 interleavings with a store that yields no Run stays behind",
    () =>
      Effect.gen(function* () {
        const ways = new Set<string>()
        for (let i = 0; i < 250; i++) {
          const { here, process, ran } = yield* world
          const model = yield* ScriptedModel.make(script)
          const slow = process({ model, wrap: (store) => YieldingStore.make(store, 1 + (i % 7)) })
          const answering = Effect.gen(function* () {
            for (let n = 0; n < i % 50; n++) yield* Effect.yieldNow
            while (Exit.isFailure(yield* Effect.exit(approve(runId, "t1.0")))) yield* Effect.yieldNow
          })
          const [outcome] = yield* Effect.all([slow(told(start)), here(answering)], { concurrency: "unbounded" })
          ways.add(outcome)
          if (outcome === "Suspended") yield* here(Effect.ignore(process({ model })(Run.recover([clerk]))))
          expect(yield* here(Effect.map(Run.get(runId), ({ status }) => status))).toBe("completed")
          expect(ran.toSorted()).toEqual(["mail bob", "pay 1"])
        }
        expect([...ways].toSorted()).toEqual(["Completed", "Suspended"])
      }),
    120_000
  )

  it.effect("RI-034 a Run is never reported as suspended while its wait is not stored", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* ScriptedModel.make([call("pay", { amount: 1 }), text("done")])
      const broken = process({
        model,
        wrap: (store) => ({
          ...store,
          append: (request) =>
            suspends(request) ? Effect.fail(new StoreUnavailable({ detail: "disk full" })) : store.append(request)
        })
      })
      const fiber = yield* begin(broken(told(start)))
      yield* pass(10_000)
      expect(yield* Fiber.join(fiber)).toBe("Retryable StoreUnavailable")
      const info = yield* here(Run.get(runId))
      expect(info).toMatchObject({ status: "running", waiting: [] })
      expect(info.owner).toBeUndefined()
    })
  )
})

describe("the time to answer", () => {
  const until = 60_000
  const waiting = Effect.gen(function* () {
    const one = yield* world
    const model = yield* ScriptedModel.make([call("mail", { to: "bob" }), text("done")])
    const guarded: Process = one.process({ model, extra: asksUntil(until) })
    const outcome = yield* guarded(start)
    expect(outcome).toMatchObject({ _tag: "Suspended", waiting: [{ guard: "asker", expiresAt: until }] })
    return { ...one, guarded, model, digest: yield* one.here(digestOf(runId, "t1.0")) }
  })

  it.effect("an answer in time counts", () =>
    Effect.gen(function* () {
      const { digest, guarded, here, ran } = yield* waiting
      yield* TestClock.adjust(until - 1)
      expect(yield* here(told(answer(runId, "t1.0", approved(digest))))).toBe("void")
      expect(yield* guarded(resume)).toMatchObject({ _tag: "Completed" })
      expect(ran).toEqual(["mail bob"])
    })
  )

  it.effect("a late answer is ApprovalExpired, and a resume settles the call as expired", () =>
    Effect.gen(function* () {
      const { digest, guarded, here, model, ran } = yield* waiting
      yield* TestClock.adjust(until)
      expect(yield* here(told(answer(runId, "t1.0", approved(digest))))).toBe("Fatal ApprovalExpired")
      expect(yield* guarded(resume)).toMatchObject({ _tag: "Completed" })
      expect(yield* here(tagsOf(runId))).toContain("WaitExpired")
      expect(resultsOf((yield* model.requests)[1])).toEqual([
        { name: "mail", isFailure: true, result: { error: "Nobody answered in time; not executed." } }
      ])
      expect(ran).toEqual([])
      yield* here(expectValid(runId))
    })
  )

  it.effect("a sweep finds a Run whose time to answer is over, and not before", () =>
    Effect.gen(function* () {
      const { guarded } = yield* waiting
      yield* TestClock.adjust(until - 1)
      expect(yield* guarded(Run.recover([clerk]))).toEqual([])
      yield* TestClock.adjust(1)
      expect(yield* guarded(Run.recover([clerk]))).toMatchObject([{ outcome: { _tag: "Completed" } }])
    })
  )

  it.effect("a fork of a waiting Run keeps its time to answer", () =>
    Effect.gen(function* () {
      const { guarded, here } = yield* waiting
      yield* here(Run.fork({ runId, id: "fork" }))
      expect(yield* here(waitOf("fork", "t1.0"))).toMatchObject({ expiresAt: until })
      yield* TestClock.adjust(until)
      expect(yield* guarded(Run.resume(clerk, { runId: "fork" }))).toMatchObject({ _tag: "Completed" })
    })
  )
})
