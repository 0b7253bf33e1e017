import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Agent from "../src/Agent.ts"
import * as Run from "../src/Run.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import { answerAt, boss, cast, no, pending, runId, worker, yes } from "./support/family.ts"
import { begin, eventsOf, expectValid, pass, resultsOf, settle, tagsOf, told, world } from "./support/scenario.ts"
import { only } from "./support/tools.ts"

const { call, calls, text } = ScriptedModel

const ann = worker("ann")
const bob = worker("bob")
const lead = boss("lead", [ann, bob], { concurrency: 2 })
const start = Run.start(lead, { runId, task: "go", session: "s", principal: { id: "eve", roles: ["dev"] } })
const resume = Run.resume(lead, { runId })
const asks = (agent: string, task = "do it") => call(`ask_${agent}`, { task })
const both = calls([
  ["ask_ann", { task: "one" }],
  ["ask_bob", { task: "two" }]
])
/** Two agents that have one call each that a person must approve. */
const two = cast({
  lead: [both, text("both done")],
  ann: [call("pay", { amount: 1 }), text("ann done")],
  bob: [call("pay", { amount: 2 }), text("bob done")]
})

describe("an agent as a tool", () => {
  it.effect("CH1 gives its output as the result, from a Run of its own with its caller's session and principal", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const model = yield* cast({
        lead: [asks("ann"), text("done")],
        ann: [call("mail", { to: "bob" }), text("mailed")]
      })
      expect(yield* process({ model })(start)).toMatchObject({ _tag: "Completed", output: "done", turns: 2 })
      expect(ran).toEqual(["mail bob"])
      const root = yield* here(eventsOf(runId))
      const [started] = only(root, "ToolCallStarted")
      expect(started).toMatchObject({ name: "ask_ann", effect: "idempotent", child: { runId: "r.t1.0" } })
      const [completed] = only(root, "ToolCallCompleted")
      expect(completed).toMatchObject({ isFailure: false, result: "mailed", ending: "executed" })
      expect(completed?.child).toEqual({
        runId: "r.t1.0",
        usage: { input: 20, cacheRead: 0, cacheWrite: 0, output: 10, reasoning: 0 },
        costUnknown: true,
        turns: 2,
        calls: 1
      })
      const [accepted] = only(yield* here(eventsOf("r.t1.0")), "RunAccepted")
      expect(accepted).toMatchObject({
        agent: "ann",
        task: "do it",
        session: "s",
        principal: { id: "eve", roles: ["dev"] },
        parent: { runId: "r", callId: "t1.0", rootId: "r", depth: 1, agents: ["lead", "ann"] }
      })
      expect((yield* here(Run.get(runId))).usage).toMatchObject({ input: 40, output: 20 })
      yield* here(expectValid(runId, "r.t1.0"))
    })
  )

  it.effect("CH4 a structured output is the typed success of its tool", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const judge = Agent.make("judge", {
        instructions: "You are judge.",
        output: Schema.Struct({ score: Schema.Number })
      })
      const rate = Agent.asTool(judge, {
        name: "rate",
        description: "Rates a text.",
        parameters: Schema.Struct({ words: Schema.Array(Schema.String) }),
        task: ({ words }) => words.join(" ")
      })
      const lead = Agent.make("lead", { instructions: "You are lead.", tools: [rate] })
      const model = yield* cast({
        lead: [call("rate", { words: ["so", "so"] }), text("done")],
        judge: [text('{"score":5}')]
      })
      expect(yield* process({ model })(Run.start(lead, { runId, task: "go" }))).toMatchObject({ output: "done" })
      expect(resultsOf((yield* model.requests)[2])).toEqual([{ name: "rate", isFailure: false, result: { score: 5 } }])
      expect(only(yield* here(eventsOf("r.t1.0")), "RunAccepted")[0]?.task).toBe("so so")
    })
  )

  it.effect("RI-076 one that ends without a word is an error result", () =>
    Effect.gen(function* () {
      const { process } = yield* world
      const model = yield* cast({ lead: [asks("ann"), text("done")], ann: () => text("") })
      expect(yield* process({ model })(start)).toMatchObject({ output: "done" })
      expect(resultsOf((yield* model.requests).at(-1))).toEqual([
        { name: "ask_ann", isFailure: true, result: { error: "child produced no output" } }
      ])
    })
  )

  it.effect("RI-076 so is one whose output is a text by its schema, and blank", () =>
    Effect.gen(function* () {
      const { process } = yield* world
      const teller = Agent.make("teller", { instructions: "You are teller.", output: Schema.String })
      const lead = Agent.make("lead", {
        instructions: "You are lead.",
        tools: [Agent.asTool(teller, { name: "tell", description: "Tells." })]
      })
      const model = yield* cast({ lead: [call("tell", { task: "x" }), text("done")], teller: [text('" "')] })
      expect(yield* process({ model })(Run.start(lead, { runId, task: "go" }))).toMatchObject({ output: "done" })
      expect(resultsOf((yield* model.requests).at(-1))).toEqual([
        { name: "tell", isFailure: true, result: { error: "child produced no output" } }
      ])
    })
  )

  it.effect("RI-026 one that is stopped is an error result that says why, never an empty success", () =>
    Effect.gen(function* () {
      const { process } = yield* world
      const short = boss("lead", [worker("ann", { limits: { maxTurns: 1 } })])
      const model = yield* cast({ lead: [asks("ann"), text("done")], ann: () => call("look", { at: 1 }) })
      expect(yield* process({ model })(Run.start(short, { runId, task: "go" }))).toMatchObject({ output: "done" })
      const [result] = resultsOf((yield* model.requests).at(-1)) ?? []
      expect(result).toMatchObject({
        isFailure: true,
        result: { error: expect.stringContaining("r.t1.0 was stopped") }
      })
    })
  )

  it.effect("RI-104 what its task function throws at is an error of that call", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const bad = Agent.asTool(ann, {
        name: "bad",
        description: "Fails.",
        task: () => {
          throw new Error("no task")
        }
      })
      const lead = Agent.make("lead", { instructions: "You are lead.", tools: [bad] })
      const model = yield* cast({ lead: [call("bad", { task: "x" }), text("done")] })
      expect(yield* process({ model })(Run.start(lead, { runId, task: "go" }))).toMatchObject({ output: "done" })
      expect(yield* here(told(Run.get("r.t1.0")))).toBe("Fatal RunNotFound")
    })
  )

  it.effect("several run at once, as many as `concurrency` says, and their results come in call order", () =>
    Effect.gen(function* () {
      const { process } = yield* world
      const model = yield* cast({
        lead: [both, text("done")],
        ann: [ScriptedModel.after("2 seconds", text("ann"))],
        bob: [ScriptedModel.after("1 second", text("bob"))]
      })
      const fiber = yield* begin(process({ model })(start))
      yield* pass(2000)
      expect(yield* Fiber.join(fiber)).toMatchObject({ _tag: "Completed" })
      expect(resultsOf((yield* model.requests).at(-1))?.map(({ result }) => result)).toEqual(["ann", "bob"])
    })
  )

  it.effect("shows its progress in the stream of its root, with its path", () =>
    Effect.gen(function* () {
      const { process } = yield* world
      const top = boss("top", [boss("lead", [ann])])
      const model = yield* cast({
        top: [asks("lead"), text("done")],
        lead: [asks("ann"), text("lead done")],
        ann: [call("look", { at: 1 }), text("ann done")]
      })
      const updates = yield* process({ model })(Stream.runCollect(Run.stream(top, { runId, task: "go" })))
      const progress = updates.flatMap((update) => (update._tag === "ChildProgress" ? [update] : []))
      const shown = progress.map(({ path, update }) => `${path.join("/")} ${update._tag}`)
      expect(shown).toContain("t1.0 TextDelta")
      expect(shown).toContain("t1.0/t1.0 CallStarted")
      expect(shown).toContain("t1.0/t1.0 Committed")
      const seqs = updates.flatMap((update) => (update._tag === "Committed" ? [update.seq] : []))
      expect(seqs).toEqual(seqs.map((_, i) => i + 1))
      expect(updates.at(-1)).toMatchObject({ _tag: "Ended", outcome: { output: "done" } })
    })
  )
})

describe("what a tree of agents waits for", () => {
  it.effect("RI-030 is listed at the root with its path, and each answer goes to its own Run", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const model = yield* two
      const first = yield* process({ model })(start)
      // They are listed in the order in which they came to rest, which is anyone's.
      const listed = [1, 2].map((amount) =>
        expect.objectContaining({ id: "t1.0", path: [`t1.${amount - 1}`], kind: "approval", arguments: { amount } })
      )
      expect(first).toMatchObject({ _tag: "Suspended", waiting: expect.arrayContaining(listed) })
      expect(yield* here(Run.list({ status: "waiting", parent: null }))).toMatchObject([{ runId, waiting: [{}, {}] }])
      yield* here(answerAt(lead, "t1.1/t1.0", yes))
      expect(yield* process({ name: "B", model })(resume)).toMatchObject({
        _tag: "Suspended",
        waiting: [{ id: "t1.0", path: ["t1.0"] }]
      })
      expect(ran).toEqual(["pay 2"])
      yield* here(answerAt(lead, "t1.0/t1.0", yes))
      expect(yield* process({ name: "C", model })(resume)).toMatchObject({ _tag: "Completed", output: "both done" })
      expect(ran).toEqual(["pay 2", "pay 1"])
      expect([model.asked("lead"), model.asked("ann"), model.asked("bob")]).toEqual([2, 2, 2])
      yield* here(expectValid(runId, "r.t1.0", "r.t1.1"))
    })
  )

  it.effect("RI-117 an answer in a new process goes on with the same Run and asks no model again", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* cast({ lead: [asks("ann"), text("done")], ann: [call("pay", { amount: 1 }), text("paid")] })
      yield* process({ model })(start)
      yield* here(answerAt(lead, "t1.0/t1.0", yes))
      expect(model.asked("ann")).toBe(1)
      expect(yield* process({ name: "B", model })(resume)).toMatchObject({ output: "done" })
      expect(model.asked("ann")).toBe(2)
      expect((yield* here(Run.list({ parent: runId }))).map(({ runId }) => runId)).toEqual(["r.t1.0"])
    })
  )

  it.effect("RI-151 may come again and again, a new process for each answer", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* cast({
        lead: [asks("ann"), text("done")],
        ann: [call("ask", { question: "a?" }), call("ask", { question: "b?" }), text("asked")]
      })
      yield* process({ model })(start)
      for (const [index, callId] of ["t1.0", "t2.0"].entries()) {
        expect(yield* here(pending(runId))).toEqual([`external t1.0/${callId}`])
        // A resume that has nothing to do says so.
        expect(yield* process({ name: `N${index}`, model })(resume)).toMatchObject({ _tag: "Suspended" })
        yield* here(answerAt(lead, `t1.0/${callId}`, () => ({ _tag: "Value", value: "yes" })))
        yield* process({ name: `P${index}`, model })(resume)
      }
      expect(yield* here(Run.get(runId))).toMatchObject({ status: "completed" })
      expect(model.asked("ann")).toBe(3)
    })
  )

  it.effect("a no reaches the model of the Run that asked", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const model = yield* two
      yield* process({ model })(start)
      yield* here(answerAt(lead, "t1.0/t1.0", no))
      yield* here(answerAt(lead, "t1.1/t1.0", yes))
      expect(yield* process({ name: "B", model })(resume)).toMatchObject({ output: "both done" })
      expect(ran).toEqual(["pay 2"])
      const [denied] = only(yield* here(eventsOf("r.t1.0")), "ToolCallCompleted")
      expect(denied).toMatchObject({ ending: "refused", result: { error: "Denied by ann: too dear" } })
    })
  )

  it.effect("is answered as at a root: bound to the digest, once, and by its path", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* two
      yield* process({ model })(start)
      const say = (where: string, answer: Parameters<typeof answerAt>[2]) => here(told(answerAt(lead, where, answer)))
      expect(yield* say("t1.0/t1.0", () => yes("other"))).toBe("Fatal DigestMismatch")
      expect(yield* say("t1.0/t1.0", () => ({ _tag: "Value", value: 1 }))).toBe("Fatal NotPending")
      expect(yield* say("t1.0", yes)).toBe("Fatal NotPending")
      expect(yield* say("t1.7/t1.0", yes)).toBe("Fatal NotPending")
      const lost = yield* here(Effect.flip(answerAt(lead, "t1.7/t1.0", yes)))
      expect(lost).toMatchObject({ reason: { message: "Run r: t1.7/t1.0 waits for no such answer." } })
      const wrong = (digest: string) => ({ _tag: "Approve", digest, edited: { amount: "much" } }) as const
      expect(yield* say("t1.0/t1.0", wrong)).toBe("Fatal AnswerInvalid")
      const digest = (yield* here(Run.get(runId))).waiting[0]?.digest ?? ""
      expect(yield* say("t1.0/t1.0", yes)).toBe("void")
      const before = yield* here(eventsOf(runId))
      expect(yield* say("t1.0/t1.0", () => yes(digest))).toBe("void")
      expect(yield* say("t1.0/t1.0", () => no(digest))).toBe("Fatal AlreadyDecided")
      expect(yield* here(eventsOf(runId))).toEqual(before)
    })
  )

  it.effect("a person decides what became of a call in doubt of an agent below", () =>
    Effect.gen(function* () {
      const { dead: _, here, mortal, process, ran } = yield* world
      const model = yield* cast({
        lead: [asks("ann"), text("done")],
        ann: [call("mail", { to: "bob" }), text("mailed")]
      })
      const dying = yield* mortal({ name: "M", model, deadly: "mail" })
      yield* dying.untilDead(start)
      expect(yield* process({ name: "B", model })(resume)).toMatchObject({
        _tag: "Suspended",
        waiting: [{ id: "t1.0", path: ["t1.0"], kind: "in-doubt", name: "mail" }]
      })
      yield* here(answerAt(lead, "t1.0/t1.0", () => ({ _tag: "TakeResult", value: { sent: "bob" } })))
      expect(yield* process({ name: "C", model })(resume)).toMatchObject({ output: "done" })
      expect(ran).toEqual(["mail died"])
      expect(model.asked("ann")).toBe(2)
    })
  )

  it.effect("RI-074 is listed at the root, or denied with a reason that the model and the journal have", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const alone = boss("lead", [ann], { approvals: "deny" })
      const model = yield* cast({
        lead: [asks("ann"), text("done")],
        ann: [
          calls([
            ["pay", { amount: 1 }],
            ["ask", { question: "sure?" }]
          ]),
          text("nobody there")
        ]
      })
      expect(yield* process({ model })(Run.start(alone, { runId, task: "go" }))).toMatchObject({ output: "done" })
      expect(ran).toEqual([])
      const results = resultsOf((yield* model.requests)[2])
      expect(results?.map(({ isFailure, name }) => [name, isFailure])).toEqual([
        ["pay", true],
        ["ask", true]
      ])
      expect(JSON.stringify(results?.[0]?.result)).toContain("no approver")
      expect(JSON.stringify(results?.[1]?.result)).toContain("no approver")
      const given = only(yield* here(eventsOf("r.t1.0")), "VerdictGiven")
      expect(given).toMatchObject([
        { guard: "core", on: "t1.0", verdict: "Deny", message: "no approver: pay needs approval" },
        { guard: "core", on: "t1.1", verdict: "Deny", message: expect.stringContaining("no approver") }
      ])
    })
  )

  it.effect("an answer that only its own Run heard, since its process died, is found by the next sweep", () =>
    Effect.gen(function* () {
      const { here, mortal, process, ran } = yield* world
      const model = yield* cast({ lead: [asks("ann"), text("done")], ann: [call("pay", { amount: 1 }), text("paid")] })
      yield* process({ model })(start)
      const dying = yield* mortal({ name: "M" }, (append) =>
        Effect.succeed(append.events.some((line) => line.includes('"ChildWoken"')) ? "die-before" : "live")
      )
      yield* dying.untilDead(answerAt(lead, "t1.0/t1.0", yes))
      expect(yield* here(tagsOf(runId))).not.toContain("ChildWoken")
      const swept = yield* process({ name: "B", model })(Run.recover([lead]))
      expect(swept).toMatchObject([{ _tag: "Driven", runId, outcome: { output: "done" } }])
      expect(ran).toEqual(["pay 1"])
    })
  )

  it.effect("RI-058 an answer that comes before its root has stored that it waits is not lost", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* cast({ lead: [asks("ann"), text("done")], ann: [call("pay", { amount: 1 }), text("paid")] })
      let said = false
      const say = Effect.gen(function* () {
        said = true
        const digest = (yield* Run.get("r.t1.0")).waiting[0]?.digest ?? ""
        yield* Run.answer(lead, { runId, callId: "t1.0", path: ["t1.0"], answer: yes(digest), by: "ann" })
      })
      const outcome = yield* process({
        model,
        wrap: (store) => ({
          ...store,
          append: (request) =>
            !said && request.events.some((line) => line.includes('"ChildSuspended"'))
              ? Effect.andThen(Effect.orDie(here(say)), store.append(request))
              : store.append(request)
        })
      })(start)
      expect(outcome).toMatchObject({ _tag: "Completed", output: "done" })
    })
  )

  it.effect("the same answer again tells the root what the first one could not", () =>
    Effect.gen(function* () {
      const { here, mortal, process } = yield* world
      const model = yield* cast({ lead: [asks("ann"), text("done")], ann: [call("pay", { amount: 1 }), text("paid")] })
      yield* process({ model })(start)
      const digest = (yield* here(Run.get(runId))).waiting[0]?.digest ?? ""
      const dying = yield* mortal({ name: "M" }, (append) =>
        Effect.succeed(append.events.some((line) => line.includes('"ChildWoken"')) ? "die-before" : "live")
      )
      const say = answerAt(lead, "t1.0/t1.0", () => yes(digest))
      yield* dying.untilDead(say)
      yield* here(say)
      expect(yield* process({ name: "B", model })(resume)).toMatchObject({ output: "done" })
    })
  )
})

describe("the verbs on a tree", () => {
  it.effect("RT2 all that drive, speak or remove name the root where they are given a Run below it", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* two
      yield* process({ model })(start)
      const child = "r.t1.0"
      const before = yield* here(eventsOf(child))
      const errors = yield* here(
        Effect.all([
          Effect.flip(Run.start(ann, { runId: child, task: "one" })),
          Effect.flip(Run.resume(ann, { runId: child })),
          Effect.flip(Run.accept(ann, { runId: child, task: "one" })),
          Effect.flip(Run.pause({ runId: child })),
          Effect.flip(Run.send({ runId: child, message: "hi" })),
          Effect.flip(Run.cancel({ runId: child })),
          Effect.flip(Run.remove(child, { force: true })),
          Effect.flip(
            Run.answer(ann, { runId: child, callId: "t1.0", answer: { _tag: "Approve", digest: "" }, by: "ann" })
          )
        ])
      )
      for (const { reason } of errors) expect(reason).toMatchObject({ _tag: "RunIsChild", runId: child, rootId: "r" })
      expect(yield* here(eventsOf(child))).toEqual(before)
    })
  )

  it.effect("RI-143 a cancel of a tree that waits is final: no answer counts, nothing runs", () =>
    Effect.gen(function* () {
      const { here, process, ran } = yield* world
      const model = yield* two
      yield* process({ model })(start)
      yield* here(Run.cancel({ runId, by: "eve" }))
      expect(yield* here(told(answerAt(lead, "t1.0/t1.0", yes)))).toBe("Fatal RunTerminal")
      for (const id of [runId, "r.t1.0", "r.t1.1"]) {
        expect(yield* here(Run.get(id))).toMatchObject({ status: "cancelled", waiting: [], open: [] })
        expect((yield* here(eventsOf(id))).at(-1)).toMatchObject({ _tag: "RunFinished", outcome: { by: "eve" } })
      }
      expect(yield* process({ name: "B", model })(resume)).toMatchObject({ _tag: "Cancelled" })
      expect(ran).toEqual([])
      yield* here(expectValid(runId, "r.t1.0", "r.t1.1"))
    })
  )

  it.effect("RI-143 a cancel while both work reaches them, and leaves nobody at work and no lease", () =>
    Effect.gen(function* () {
      const { here, process, store } = yield* world
      let interrupted = 0
      const mail = () =>
        Effect.onInterrupt(Effect.never, () =>
          Effect.sync(() => {
            interrupted += 1
          })
        )
      const model = yield* cast({ lead: [both], ann: [call("mail", { to: "x" })], bob: [call("mail", { to: "y" })] })
      const fiber = yield* begin(process({ model, handlers: { mail } })(start))
      yield* here(Run.cancel({ runId }))
      yield* pass(3000)
      expect(yield* Fiber.join(fiber)).toMatchObject({ _tag: "Cancelled" })
      expect(interrupted).toBe(2)
      for (const id of [runId, "r.t1.0", "r.t1.1"]) {
        const head = yield* store.head(id)
        expect([id, head?.status, head?.owner]).toEqual([id, "cancelled", undefined])
      }
      const child = only(yield* here(eventsOf("r.t1.0")), "ToolCallCompleted")
      expect(child).toMatchObject([{ ending: "unknown" }])
      expect(only(yield* here(eventsOf(runId)), "ToolCallCompleted").map(({ child }) => child?.turns)).toEqual([1, 1])
      yield* here(expectValid(runId, "r.t1.0", "r.t1.1"))
    })
  )

  it.effect("D2 a cancel whose process dies anywhere is ended by the next sweep", () =>
    Effect.gen(function* () {
      for (let at = 0; at < 8; at++) {
        const { here, mortal, process, ran } = yield* world
        const model = yield* two
        yield* process({ model })(start)
        let appends = 0
        const dying = yield* mortal({ name: "M" }, () => Effect.sync(() => (appends++ === at ? "die-after" : "live")))
        const done = yield* Effect.forkDetach(dying.alive(Run.cancel({ runId })))
        yield* settle
        if (at >= appends) yield* Fiber.join(done)
        yield* process({ name: "B", model })(Run.recover([lead]))
        for (const id of [runId, "r.t1.0", "r.t1.1"]) {
          expect([at, id, (yield* here(Run.get(id))).status]).toEqual([at, id, "cancelled"])
        }
        expect(ran).toEqual([])
      }
    })
  )

  it.effect("D2 a start ends what a dead process had only begun to cancel, even where it was paused", () =>
    Effect.gen(function* () {
      const { here, mortal, process } = yield* world
      const model = yield* two
      yield* process({ model })(start)
      yield* here(Run.pause({ runId }))
      expect(yield* process({ name: "A", model })(start)).toMatchObject({ _tag: "Suspended" })
      const dying = yield* mortal({ name: "M" }, () => Effect.succeed("die-after"))
      yield* Effect.forkDetach(dying.alive(Run.cancel({ runId })))
      yield* settle
      expect(only(yield* here(eventsOf(runId)), "CancelRequested")).toHaveLength(1)
      expect(yield* process({ name: "B", model })(start)).toMatchObject({ _tag: "Cancelled" })
      expect((yield* here(Run.get("r.t1.1"))).status).toBe("cancelled")
    })
  )

  it.effect("a pause stops what is below at its next boundary, and a resume goes on with it", () =>
    Effect.gen(function* () {
      const { here, process, ran, store } = yield* world
      const model = yield* cast({
        lead: [asks("ann"), text("done")],
        ann: [ScriptedModel.after("2 seconds", call("mail", { to: "bob" })), text("mailed")]
      })
      const fiber = yield* begin(process({ model })(start))
      yield* here(Run.pause({ runId }))
      yield* pass(3000)
      expect(yield* Fiber.join(fiber)).toMatchObject({ _tag: "Suspended", waiting: [{ kind: "paused" }] })
      expect(ran).toEqual([])
      expect((yield* store.head("r.t1.0"))?.owner).toBeUndefined()
      expect(yield* process({ name: "W", model })(Run.recover([lead]))).toEqual([])
      expect(yield* process({ name: "B", model })(resume)).toMatchObject({ _tag: "Completed", output: "done" })
      expect(ran).toEqual(["mail bob"])
      expect(model.asked("ann")).toBe(2)
    })
  )

  it.effect("a tree that is paused and then cancelled ends, though a call below had begun when its process died", () =>
    Effect.gen(function* () {
      const { here, mortal, process, ran } = yield* world
      const model = yield* cast({
        lead: [asks("ann"), text("done")],
        ann: [call("mail", { to: "bob" }), text("mailed")]
      })
      const dying = yield* mortal({ name: "M", model, deadly: "mail" })
      yield* dying.untilDead(start)
      yield* here(Run.pause({ runId }))
      yield* here(Run.cancel({ runId }))
      expect(yield* process({ name: "B", model })(Run.recover([lead]))).toMatchObject([
        { outcome: { _tag: "Cancelled" } }
      ])
      expect(yield* here(Run.get("r.t1.0"))).toMatchObject({ status: "cancelled" })
      expect(only(yield* here(eventsOf("r.t1.0")), "ToolCallCompleted")).toMatchObject([{ ending: "unknown" }])
      expect(ran).toEqual(["mail died"])
    })
  )

  it.effect("a sweep takes roots only, and a Run below through its root", () =>
    Effect.gen(function* () {
      const { here, mortal, process } = yield* world
      const model = yield* cast({ lead: [asks("ann"), text("done")], ann: [call("book", { seat: 1 }), text("booked")] })
      const dying = yield* mortal({ name: "M", model, deadly: "book" })
      yield* dying.untilDead(start)
      const swept = yield* process({ name: "B", model })(Run.recover([lead, ann]))
      expect(swept).toMatchObject([{ _tag: "Driven", runId, outcome: { output: "done" } }])
      expect(only(yield* here(eventsOf("r.t1.0")), "AttemptStarted").map(({ recovered }) => recovered)).toEqual([
        false,
        true
      ])
    })
  )

  it.effect("a removal takes all below along, and one by force ends them first", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* two
      yield* process({ model })(start)
      expect(yield* here(told(Run.remove(runId)))).toBe("Fatal RunNotTerminal")
      expect((yield* here(Run.list())).length).toBe(3)
      yield* here(Run.remove(runId, { force: true }))
      expect(yield* here(Run.list())).toEqual([])
    })
  )

  it.effect("RI-158 a prune takes roots with all below them", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* cast({ lead: [asks("ann"), text("done")], ann: [text("ann done")] })
      yield* process({ model })(start)
      yield* pass(1000)
      expect(yield* here(Run.prune({ olderThan: 0 }))).toBe(1)
      expect(yield* here(Run.list())).toEqual([])
    })
  )

  it.effect(
    "RI-064 a fork copies no Run below: its call is in doubt, and run again it is a Run of the fork's own",
    () =>
      Effect.gen(function* () {
        const { here, process } = yield* world
        const model = yield* cast({
          lead: [asks("ann"), text("done")],
          ann: [call("pay", { amount: 1 }), text("paid")]
        })
        yield* process({ model })(start)
        yield* here(Run.fork({ runId, id: "f" }))
        expect(yield* here(pending("f"))).toEqual(["in-doubt t1.0"])
        expect((yield* here(Run.list({ parent: "f" }))).length).toBe(0)
        yield* here(Run.answer(lead, { runId: "f", callId: "t1.0", answer: { _tag: "RunAgain" }, by: "ann" }))
        expect(yield* process({ name: "B", model })(Run.resume(lead, { runId: "f" }))).toMatchObject({
          waiting: [{ id: "t1.0", path: ["t1.0"] }]
        })
        expect((yield* here(Run.list({ parent: "f" }))).map(({ runId }) => runId)).toEqual(["f.t1.0"])
        yield* here(Run.cancel({ runId: "f" }))
        expect(yield* here(Run.get("r.t1.0"))).toMatchObject({ status: "waiting" })
      })
  )

  it.effect("a fork that is cancelled while the call is in doubt leaves the original's Run alone", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* cast({ lead: [asks("ann"), text("done")], ann: [call("pay", { amount: 1 }), text("paid")] })
      yield* process({ model })(start)
      yield* here(Run.fork({ runId, id: "f" }))
      yield* here(Run.cancel({ runId: "f" }))
      expect(yield* here(Run.get("f"))).toMatchObject({ status: "cancelled" })
      expect(yield* here(Run.get("r.t1.0"))).toMatchObject({ status: "waiting" })
    })
  )

  it.effect("a cancel ends no Run of another root that stands under the id of its call", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* cast({ lead: [asks("ann")], ann: [call("pay", { amount: 1 }), text("paid")] })
      yield* process({ model })(start)
      yield* here(Run.fork({ runId, id: "f" }))
      yield* here(Run.pause({ runId: "f" }))
      yield* here(Run.answer(lead, { runId: "f", callId: "t1.0", answer: { _tag: "RunAgain" }, by: "ann" }))
      yield* process({ model })(Run.start(ann, { runId: "f.t1.0", task: "mine" }))
      yield* here(Run.cancel({ runId: "f" }))
      expect(yield* here(Run.get("f"))).toMatchObject({ status: "cancelled" })
      expect(yield* here(Run.get("f.t1.0"))).toMatchObject({ status: "waiting" })
    })
  )

  it.effect("a removal by force of a Run that somebody holds waits for them without a busy loop", () =>
    Effect.gen(function* () {
      const { here, process, store } = yield* world
      yield* process({ model: yield* two })(start)
      const claimed = yield* store.claim({ runId, owner: "holder", ttlMillis: 60_000 })
      const epoch = claimed._tag === "Claimed" ? claimed.epoch : 0
      let asked = 0
      const counted = process({
        wrap: (store) => ({
          ...store,
          head: (id) => (++asked > 500 ? Effect.die(new Error("a busy loop")) : store.head(id))
        })
      })
      const removal = yield* begin(counted(Run.remove(runId, { force: true })))
      yield* pass(3000)
      expect((yield* here(Run.list())).length).toBe(3)
      expect(asked).toBeGreaterThan(20)
      yield* store.release({ runId, owner: "holder", epoch })
      yield* pass(1000)
      yield* Fiber.join(removal)
      expect(yield* here(Run.list())).toEqual([])
    })
  )

  it.effect("Exit of an interrupted tree: every lease is released, and the next one goes on", () =>
    Effect.gen(function* () {
      const { process, store } = yield* world
      const model = yield* cast({
        lead: [asks("ann"), text("done")],
        ann: [ScriptedModel.after("2 seconds", text("late"))]
      })
      const fiber = yield* begin(process({ model })(start))
      yield* Fiber.interrupt(fiber)
      const exit = yield* Fiber.await(fiber)
      expect(Exit.isFailure(exit) && Exit.hasInterrupts(exit)).toBe(true)
      for (const id of [runId, "r.t1.0"]) {
        const head = yield* store.head(id)
        expect([head?.status, head?.owner]).toEqual(["running", undefined])
      }
      const again = yield* begin(process({ name: "B", model })(resume))
      yield* pass(2000)
      expect(yield* Fiber.join(again)).toMatchObject({ output: "done" })
    })
  )
})
