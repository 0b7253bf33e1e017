import { describe, expect } from "@effect/vitest"
import { CheckpointStore, Run, type RunEvent } from "@waystone/core"
import * as Effect from "effect/Effect"
import type { Backend } from "../durable/backends.ts"
import { lead, task } from "../durable/Desk.ts"
import type { Office } from "../durable/Office.ts"
import { approved, expectValid, on, only, told } from "../durable/looks.ts"

const runId = "r"
const release = { release: "lead" } as const
const resume = { _tag: "Resume", runId } as const

const paying = (amount: number) => task([["pay", { amount }]], `paid ${amount}`)
const both = task(
  [
    ["have", { task: paying(1) }],
    ["have", { task: paying(2) }]
  ],
  "both done"
)
const one = (script: string) => task([["have", { task: script }]], "done")

const start = ({ there }: Office, replies: string, process: "A" | "B" = "A") =>
  there(process, { _tag: "Start", runId, task: replies }, release)

/** Answers what waits under that call of the root. */
const answer = (parent: string, callId: string, answer: (digest: string) => RunEvent.Answer) =>
  Effect.gen(function* () {
    const { waiting } = yield* Run.get(runId)
    const wait = waiting.find(({ id, path }) => id === callId && path?.join() === parent)
    yield* Run.answer(lead, { runId, callId, path: [parent], answer: answer(wait?.digest ?? ""), by: "ann" })
  })

const models = (requests: ReadonlyArray<unknown>) => requests.length

export const children = (backend: Backend) =>
  describe("agents below agents across processes", () => {
    const it = on(backend)

    it("RI-030 two that ask are listed at the root, and each answer goes to its own", (office) =>
      Effect.gen(function* () {
        const { here, ran, there } = office
        expect((yield* start(office, both)).said).toMatchObject({
          _tag: "Suspended",
          waiting: [
            { id: "t1.0", path: ["t1.0"], name: "pay", arguments: { amount: 1 } },
            { id: "t1.0", path: ["t1.1"], name: "pay", arguments: { amount: 2 } }
          ]
        })
        yield* here(answer("t1.1", "t1.0", approved))
        expect((yield* there("B", resume, release)).said).toMatchObject({
          _tag: "Suspended",
          waiting: [{ path: ["t1.0"] }]
        })
        expect(ran()).toEqual(["pay:2"])
        yield* here(answer("t1.0", "t1.0", approved))
        expect((yield* there("A", resume, release)).said).toMatchObject({ _tag: "Completed", output: "both done" })
        expect(ran()).toEqual(["pay:2", "pay:1"])
        yield* here(expectValid(runId, "r.t1.0", "r.t1.1"))
      }))

    it("RI-117 another process goes on with the same Run below and asks no model again", (office) =>
      Effect.gen(function* () {
        const { here, there } = office
        expect(models((yield* start(office, one(paying(1)))).requests)).toBe(2)
        yield* here(answer("t1.0", "t1.0", approved))
        const { requests, said } = yield* there("B", resume, release)
        expect(said).toMatchObject({ output: "done" })
        expect(models(requests)).toBe(2)
        expect((yield* here(Run.list({ parent: runId }))).map(({ runId }) => runId)).toEqual(["r.t1.0"])
      }))

    it("RI-151 one that asks twice is answered twice, a new process each time", (office) =>
      Effect.gen(function* () {
        const { here, there } = office
        yield* start(office, one(task([["ask", { question: "a?" }]], [["ask", { question: "b?" }]], "asked")))
        const yes = () => ({ _tag: "Value", value: true }) as const
        yield* here(answer("t1.0", "t1.0", yes))
        expect((yield* there("B", resume, release)).said).toMatchObject({
          _tag: "Suspended",
          waiting: [{ id: "t2.0" }]
        })
        yield* here(answer("t1.0", "t2.0", yes))
        expect((yield* there("A", resume, release)).said).toMatchObject({ _tag: "Completed", output: "done" })
      }))

    it("RI-143 a cancel of the root ends those that wait below, and no answer counts any more", (office) =>
      Effect.gen(function* () {
        const { here, ran, there } = office
        yield* start(office, both)
        yield* here(Run.cancel({ runId }))
        expect(yield* here(told(answer("t1.0", "t1.0", approved)))).toBe("Fatal RunTerminal")
        expect((yield* there("B", resume, release)).said).toMatchObject({ _tag: "Cancelled" })
        for (const id of [runId, "r.t1.0", "r.t1.1"]) {
          expect((yield* here(Run.get(id))).status).toBe("cancelled")
          const head = yield* here(CheckpointStore.CheckpointStore.use((store) => store.head(id)))
          expect(head?.owner).toBeUndefined()
        }
        expect(ran()).toEqual([])
      }))

    it("RI-161 an agent below that kills its process again and again parks the root", (office) =>
      Effect.gen(function* () {
        const { here, ran, there } = office
        const deadly = { ...release, dies: "book" }
        const begin = { _tag: "Start", runId, task: one(task([["book", { seat: 1 }]], "booked")) } as const
        for (let death = 1; death <= 4; death++) {
          const verb = death === 1 ? begin : ({ _tag: "Recover" } as const)
          expect((yield* there("B", verb, deadly)).said).toBe("killed")
        }
        const { said } = yield* there("B", { _tag: "Recover" }, deadly)
        expect(said).toMatchObject([{ _tag: "Failed", error: { reason: { _tag: "Poisoned" } } }])
        expect(ran()).toEqual(Array(4).fill("book:1"))
        expect((yield* here(Run.get("r.t1.0"))).status).toBe("cancelled")
      }))

    it("RI-147 a process that is killed in the middle of both is taken over, and no effect happens twice", (office) =>
      Effect.gen(function* () {
        const { here, ran, there } = office
        const working = (to: string) => task([["mail", { to }]], [["book", { seat: 1 }]], "worked")
        const two = task(
          [
            ["have", { task: working("ann") }],
            ["have", { task: working("bob") }]
          ],
          "both done"
        )
        const begin = { _tag: "Start", runId, task: two } as const
        expect((yield* there("B", begin, { ...release, dies: "book" })).said).toBe("killed")
        yield* there("A", { _tag: "Recover" }, release)
        const { waiting } = yield* here(Run.get(runId))
        for (const { id, path = [] } of waiting) {
          yield* here(answer(path[0] ?? "", id, () => ({ _tag: "TakeResult", value: { sent: "it" } })))
        }
        yield* there("B", resume, release)
        expect((yield* here(Run.get(runId))).status).toBe("completed")
        expect(
          ran()
            .filter((item) => item.startsWith("mail"))
            .toSorted()
        ).toEqual(["mail:ann", "mail:bob"])
        expect((yield* here(only("ToolCallCompleted"))).map(({ isFailure }) => isFailure)).toEqual([false, false])
        yield* here(expectValid(runId, "r.t1.0", "r.t1.1"))
      }))

    it("D1 a removal leaves nothing of the tree behind", (office) =>
      Effect.gen(function* () {
        const { here } = office
        yield* start(office, both)
        yield* here(Run.remove(runId, { force: true }))
        expect(yield* here(Run.list())).toEqual([])
        expect(yield* here(told(Run.get("r.t1.0")))).toBe("Fatal RunNotFound")
      }))
  })
