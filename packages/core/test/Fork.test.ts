import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Reconcile from "../src/Reconcile.ts"
import * as Run from "../src/Run.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import { approve, Book, clerk, eventsOf, expectValid, tagsOf, world } from "./support/scenario.ts"

const { call, text } = ScriptedModel

const runId = "r"
const start = Run.start(clerk, { runId, task: "go" })
const resume = Run.resume(clerk, { runId })
const forked = Run.resume(clerk, { runId: "fork" })

/** Calls `pay` until it has a result. */
const payThenDone: ScriptedModel.Script = ({ results }) =>
  results.length > 0 ? text("done") : call("pay", { amount: 1 })

describe("fork", () => {
  const paid = Effect.gen(function* () {
    const one = yield* world
    const model = yield* ScriptedModel.make(payThenDone)
    yield* one.process({ model })(start)
    yield* one.here(approve(runId, "t1.0"))
    yield* one.process({ model })(resume)
    const tags = yield* one.here(tagsOf(runId))
    const checkpoints = yield* one.here(Run.checkpoints(runId))
    const before = checkpoints.findLast((seq) => seq < tags.indexOf("ApprovalRequested") + 1)
    const waiting = checkpoints.find((seq) => seq > tags.indexOf("RunSuspended"))
    return { ...one, model, before: before ?? 0, waiting: waiting ?? 0, fork: one.process({ name: "B", model }) }
  })

  it.effect("RI-064 before the question asks it again, and no tool runs before a new decision", () =>
    Effect.gen(function* () {
      const { before, fork, here, ran } = yield* paid
      const original = yield* here(eventsOf(runId))
      yield* here(Run.fork({ runId, id: "fork", at: before }))
      expect(yield* fork(forked)).toMatchObject({ _tag: "Suspended", waiting: [{ kind: "approval", name: "pay" }] })
      expect(ran).toEqual(["pay 1"])
      expect(yield* here(eventsOf(runId))).toEqual(original)
      yield* here(expectValid(runId, "fork"))
    })
  )

  it.effect("RI-064 at the question waits for an answer of its own", () =>
    Effect.gen(function* () {
      const { fork, here, model, ran, waiting } = yield* paid
      yield* here(Run.fork({ runId, id: "fork", at: waiting }))
      const asked = (yield* model.requests).length
      expect(yield* fork(forked)).toMatchObject({ _tag: "Suspended", waiting: [{ id: "t1.0", kind: "approval" }] })
      expect(yield* model.requests).toHaveLength(asked)
      expect(ran).toEqual(["pay 1"])
      yield* here(approve("fork", "t1.0"))
      expect(yield* fork(forked)).toMatchObject({ _tag: "Completed" })
      expect(ran).toEqual(["pay 1", "pay 1"])
      yield* here(expectValid(runId, "fork"))
    })
  )

  it.effect("RI-087 has a head of its own; both Runs are listed and go on where they are", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* ScriptedModel.make(({ messages, results }) =>
        results.length > 0
          ? text(JSON.stringify(messages).includes("louder") ? "DONE" : "done")
          : call("look", { at: 1 })
      )
      yield* process({ model })(start)
      const first = (yield* here(Run.checkpoints(runId)))[0]
      const head = yield* here(Run.get(runId))
      yield* here(Run.fork({ runId, id: "fork", at: first ?? 0 }))
      yield* here(Run.send({ runId: "fork", message: "louder" }))
      expect(yield* process({ model })(forked)).toMatchObject({ _tag: "Completed", output: "DONE" })
      expect(yield* here(Run.get(runId))).toEqual(head)
      expect((yield* here(Run.list())).map(({ runId, status }) => [runId, status])).toEqual([
        ["fork", "completed"],
        [runId, "completed"]
      ])
      expect(yield* process({ model })(resume)).toMatchObject({ output: "done" })
      expect(yield* process({ model })(forked)).toMatchObject({ output: "DONE" })
      yield* here(expectValid(runId, "fork"))
    })
  )

  it.effect("RI-087 belongs to the session that it is given, else to the original's", () =>
    Effect.gen(function* () {
      const { here } = yield* world
      yield* here(Run.accept(clerk, { runId, task: "1", session: "here" }))
      yield* here(Run.fork({ runId, id: "same" }))
      yield* here(Run.fork({ runId, id: "other", session: "there" }))
      yield* here(Run.fork({ runId: "other", id: "grandchild" }))
      const sessionOf = (id: string) => Effect.map(here(Run.get(id)), ({ session }) => session)
      expect(yield* Effect.forEach([runId, "same", "other", "grandchild"], sessionOf)).toEqual([
        "here",
        "here",
        "there",
        "there"
      ])
      expect((yield* here(Run.list({ session: "there" }))).map(({ runId }) => runId).toSorted()).toEqual([
        "grandchild",
        "other"
      ])
      yield* here(expectValid(runId, "same", "other", "grandchild"))
    })
  )

  it.effect("RI-118 shares what came before it, and neither branch sees what the other one writes", () =>
    Effect.gen(function* () {
      const { here, process, store } = yield* world
      const say = (runId: string, message: string) => here(Run.send({ runId, message, id: message, by: runId }))
      yield* here(Run.accept(clerk, { runId, task: "1" }))
      yield* say(runId, "2")
      yield* say(runId, "3")
      yield* here(Run.fork({ runId, id: "fork", at: 2 }))
      for (const n of ["4", "5", "6"]) {
        yield* say(runId, n)
        yield* say("fork", `${n}'`)
      }
      const said = (runId: string) =>
        Effect.map(here(eventsOf(runId)), (events) =>
          events.map((event) =>
            event._tag === "MessageReceived" ? event.id : event._tag === "RunAccepted" ? event.task : event._tag
          )
        )
      expect(yield* said(runId)).toEqual(["1", "2", "3", "4", "5", "6"])
      expect(yield* said("fork")).toEqual(["1", "2", "RunForked", "4'", "5'", "6'"])
      const bodies = (runId: string) =>
        Effect.map(store.read(runId, { after: 0, limit: 2 }), (events) => events.map(({ body }) => body))
      expect(yield* bodies("fork")).toEqual(yield* bodies(runId))
      const model = yield* ScriptedModel.make([text("done"), text("done")])
      yield* process({ model })(resume)
      yield* process({ model })(forked)
      const [one, two] = (yield* model.requests).map(({ messages }) => JSON.stringify(messages))
      expect(one).not.toContain("'")
      expect(two).not.toContain('"4"')
      expect(two).toContain("4'")
    })
  )

  it.effect("holds a call in doubt that its original had started, an idempotent one too", () =>
    Effect.gen(function* () {
      const { here, mortal, process, ran } = yield* world
      const model = yield* ScriptedModel.make(({ messages }) =>
        messages.some(({ role }) => role === "tool") ? text("done") : call("book", { seat: 1 })
      )
      const dying = yield* mortal({ name: "A", model, deadly: "book" })
      yield* dying.untilDead(start)
      yield* here(Run.fork({ runId, id: "fork" }))
      yield* here(Run.fork({ runId, id: "reconciled" }))
      const next = process({ name: "B", model })
      expect(yield* next(forked)).toMatchObject({ _tag: "Suspended", waiting: [{ id: "t1.0", kind: "in-doubt" }] })
      expect(ran).toEqual(["book died"])
      const keys: Array<string> = []
      const reconcile = Reconcile.layer(Book, ({ key }) => {
        keys.push(key)
        return Effect.succeed({ _tag: "Done", result: { booked: 1 } } as const)
      })
      const knowing = process({ name: "C", model, extra: reconcile })
      const outcome = yield* knowing(Run.resume(clerk, { runId: "reconciled" }))
      expect(outcome).toMatchObject({ _tag: "Completed" })
      expect(keys).toEqual(["r/t1.0"])
      expect(ran).toEqual(["book died"])
      yield* here(expectValid("fork", "reconciled"))
    })
  )
})
