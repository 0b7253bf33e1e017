import { describe, expect } from "@effect/vitest"
import { Reconcile, Run } from "@waystone/core"
import * as Effect from "effect/Effect"
import type { Backend } from "../durable/backends.ts"
import { Book, clerk, task } from "../durable/Desk.ts"
import { answer, approve, bodiesOf, eventsOf, expectValid, on, only, tagsOf } from "../durable/looks.ts"
import type { Office } from "../durable/Office.ts"

const runId = "r"
const start = (...replies: Parameters<typeof task>) => ({ _tag: "Start", runId, task: task(...replies) }) as const
const resume = { _tag: "Resume", runId } as const
const forked = { _tag: "Resume", runId: "fork" } as const

/** A Run that paid after it was approved, and where it can be forked before and at the question. */
const paid = ({ here, there }: Office) =>
  Effect.gen(function* () {
    yield* there("A", start([["pay", { amount: 1 }]], "done"))
    yield* here(approve())
    expect((yield* there("A", resume)).said).toMatchObject({ _tag: "Completed" })
    const tags = yield* here(tagsOf())
    const checkpoints = yield* here(Run.checkpoints(runId))
    return {
      before: checkpoints.findLast((seq) => seq <= tags.indexOf("ApprovalRequested")) ?? 0,
      waiting: checkpoints.find((seq) => seq > tags.indexOf("RunSuspended")) ?? 0
    }
  })

export const forks = (backend: Backend) =>
  describe("forks across processes", () => {
    const it = on(backend)

    it("RI-064 before the question it is asked again, and no tool runs before a new decision", (office) =>
      Effect.gen(function* () {
        const { here, ran, there } = office
        const { before } = yield* paid(office)
        const original = yield* here(bodiesOf())
        expect((yield* there("A", { _tag: "Fork", runId, id: "fork", at: before })).said).toBe("fork")
        const { said } = yield* there("B", forked)
        expect(said).toMatchObject({ _tag: "Suspended", waiting: [{ kind: "approval", name: "pay" }] })
        expect(ran()).toEqual(["pay:1"])
        expect(yield* here(bodiesOf())).toEqual(original)
        yield* here(expectValid(runId, "fork"))
      }))

    it("RI-064 at the question the fork waits for an answer of its own", (office) =>
      Effect.gen(function* () {
        const { here, keys, ran, there } = office
        const { waiting } = yield* paid(office)
        yield* there("A", { _tag: "Fork", runId, id: "fork", at: waiting })
        const asked = yield* there("B", forked)
        expect(asked).toMatchObject({ said: { waiting: [{ id: "t1.0", kind: "approval" }] }, requests: [] })
        expect(ran()).toEqual(["pay:1"])
        yield* here(approve("t1.0", "fork"))
        expect((yield* there("B", forked)).said).toMatchObject({ _tag: "Completed" })
        expect(ran()).toEqual(["pay:1", "pay:1"])
        expect(keys()).toEqual(["r/t1.0", "fork/t1.0"])
        yield* here(expectValid(runId, "fork"))
      }))

    it("RI-087 both have a head of their own, are listed and go on where they are", (office) =>
      Effect.gen(function* () {
        const { here, there } = office
        yield* there("A", start([["look", { at: 1 }]], "done"))
        const [first] = yield* here(Run.checkpoints(runId))
        const head = yield* here(Run.get(runId))
        yield* there("B", { _tag: "Fork", runId, id: "fork", ...(first === undefined ? {} : { at: first }) })
        yield* here(Run.send({ runId: "fork", message: "louder" }))
        const { requests, said } = yield* there("B", forked)
        expect(said).toMatchObject({ _tag: "Completed", output: "done" })
        expect(requests[0]?.text).toContain("louder")
        expect(yield* here(Run.get(runId))).toEqual(head)
        const listed = yield* here(Run.list({ status: "completed" }))
        expect(listed.map(({ runId }) => runId).toSorted()).toEqual(["fork", runId])
        for (const verb of [resume, forked]) {
          expect(yield* there("A", verb)).toMatchObject({ said: { output: "done" }, requests: [] })
        }
        yield* here(expectValid(runId, "fork"))
      }))

    it("RI-118 they share what came before, and neither sees what the other one writes", (office) =>
      Effect.gen(function* () {
        const { here, there } = office
        const say = (runId: string, message: string) => here(Run.send({ runId, message, id: message, by: runId }))
        yield* there("A", start([["pay", { amount: 1 }]], "done"))
        const at = (yield* here(Run.get(runId))).seq
        yield* there("B", { _tag: "Fork", runId, id: "fork", at })
        for (const n of ["4", "5", "6"]) {
          yield* say(runId, n)
          yield* say("fork", `${n}'`)
        }
        const said = (runId: string) =>
          Effect.map(here(only("MessageReceived", runId)), (events) => events.map(({ id }) => id))
        expect(yield* said(runId)).toEqual(["4", "5", "6"])
        expect(yield* said("fork")).toEqual(["4'", "5'", "6'"])
        const [bodies, copied] = [yield* here(bodiesOf()), yield* here(bodiesOf("fork"))]
        expect(copied.slice(0, at)).toEqual(bodies.slice(0, at))
        expect((yield* here(eventsOf("fork")))[at]).toMatchObject({ _tag: "RunForked", from: { runId, seq: at } })
        for (const [verb, own, foreign] of [
          [resume, '"5"', "5'"],
          [forked, "5'", '"5"']
        ] as const) {
          const { requests, said } = yield* there("B", verb)
          expect(said).toMatchObject({ _tag: "Completed" })
          // All three are user messages after the result, the last two are in the text.
          expect(requests[0]?.roles.slice(-3)).toEqual(["user", "user", "user"])
          expect(requests[0]?.text).toContain(own)
          expect(requests[0]?.text).not.toContain(foreign)
        }
      }))

    it("a call that the original had started is in doubt in the fork, an idempotent one too", (office) =>
      Effect.gen(function* () {
        const { here, life, mortal, ran, there } = office
        const dying = yield* mortal({ name: "dying", deadly: "book" })
        yield* dying.untilDead(Run.start(clerk, start([["book", { seat: 1 }]], "done")))
        for (const id of ["fork", "reconciled"]) yield* there("A", { _tag: "Fork", runId, id })
        expect((yield* there("B", forked)).said).toMatchObject({
          _tag: "Suspended",
          waiting: [{ id: "t1.0", kind: "in-doubt" }]
        })
        const asked: Array<string> = []
        const reconcile = Reconcile.layer(Book, ({ key }) => {
          asked.push(key)
          return Effect.succeed({ _tag: "Done", result: { booked: 1 } } as const)
        })
        const knowing = life({ extra: reconcile })
        expect(yield* knowing(Run.resume(clerk, { runId: "reconciled" }))).toMatchObject({ _tag: "Completed" })
        expect(asked).toEqual(["r/t1.0"])
        expect(ran()).toEqual(["book:1"])
        yield* here(expectValid("fork", "reconciled"))
      }))

    it("RI-013 has every call before its result, at every checkpoint and in every fork", (office) =>
      Effect.gen(function* () {
        const { here, there } = office
        const three = [
          ["pay", { amount: 1 }],
          ["ask", { question: "sure?" }],
          ["mail", { to: "bob" }]
        ] as const
        yield* there("A", start(three, [["pay", { amount: 2 }]], "done"))
        yield* here(approve())
        yield* there("B", resume)
        yield* here(answer({ _tag: "Value", value: "yes" }, "t1.1"))
        yield* there("A", resume)
        yield* here(Run.send({ runId, message: "never mind" }))
        expect((yield* there("B", resume)).said).toMatchObject({ _tag: "Completed" })
        const checkpoints = yield* here(Run.checkpoints(runId))
        expect(checkpoints.length).toBeGreaterThan(8)
        const forks = checkpoints.map((at) => Run.fork({ runId, id: `fork-${at}`, at }))
        yield* here(Effect.flatMap(Effect.all(forks), (ids) => expectValid(runId, ...ids)))
        const second = yield* there("A", { _tag: "Start", runId: "second", task: task("again") })
        expect(second.said).toMatchObject({ _tag: "Completed" })
      }))
  })
