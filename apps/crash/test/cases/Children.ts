import { describe, expect } from "@effect/vitest"
import { CheckpointStore, Run, type RunEvent } from "@waystone/core"
import { Budget } from "@waystone/policy"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { type ChildProcess, spawn } from "node:child_process"
import { fold, initial, none } from "../../../../packages/policy/src/Spending.ts"
import type { Backend } from "../durable/backends.ts"
import { lead, task } from "../durable/Desk.ts"
import type { Office } from "../durable/Office.ts"
import { approved, eventsOf, expectValid, on, only, told } from "../durable/looks.ts"

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

/** What a handler holds: it must be gone when its Run is. */
const spawned = Effect.sync(() => spawn("sleep", ["600"], { stdio: "ignore" }))
const ended = (child: ChildProcess) =>
  Effect.callback<void>((resume) => {
    child.once("exit", () => resume(Effect.void))
    child.kill()
  })
const isAlive = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode === null && signalCode === null

const models = (requests: ReadonlyArray<unknown>) => requests.length

export const children = (backend: Backend) =>
  describe("agents below agents across processes", () => {
    const it = on(backend)

    it("RI-030 two that ask are listed at the root, and each answer goes to its own", (office) =>
      Effect.gen(function* () {
        const { here, ran, there } = office
        const { said } = yield* start(office, both)
        // They are listed in the order in which they came to rest, which is anyone's.
        const asks = [1, 2].map((amount) =>
          expect.objectContaining({ id: "t1.0", path: [`t1.${amount - 1}`], name: "pay", arguments: { amount } })
        )
        expect(said).toMatchObject({ _tag: "Suspended", waiting: expect.arrayContaining(asks) })
        expect((yield* here(Run.get(runId))).waiting).toHaveLength(2)
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

    it("RI-074 one that can ask nobody gets an error that says so, and another process reads the same", (office) =>
      Effect.gen(function* () {
        const { here, ran, there } = office
        const asking = task(
          [
            ["pay", { amount: 1 }],
            ["ask", { question: "sure?" }]
          ],
          "nobody there"
        )
        expect((yield* start(office, task([["have_alone", { task: asking }]], "done"), "B")).said).toMatchObject({
          _tag: "Completed",
          output: "done"
        })
        expect(ran()).toEqual([])
        const given = yield* here(only("VerdictGiven", "r.t1.0"))
        expect(given.map(({ message, on, verdict }) => [on, verdict, message?.startsWith("no approver")])).toEqual([
          ["t1.0", "Deny", true],
          ["t1.1", "Deny", true]
        ])
        const said = yield* here(only("ToolCallCompleted", "r.t1.0"))
        expect(said.map(({ ending, isFailure }) => [ending, isFailure])).toEqual(Array(2).fill(["refused", true]))
        expect((yield* there("A", resume, release)).said).toMatchObject({ _tag: "Completed" })
      }))

    it("RI-076 one that ends without a word is an error result, in the journal and for the model", (office) =>
      Effect.gen(function* () {
        const { requests, said } = yield* start(office, one(task("")), "B")
        expect(said).toMatchObject({ _tag: "Completed", output: "done" })
        const error = { isFailure: true, result: { error: "child produced no output" } }
        expect(yield* office.here(only("ToolCallCompleted"))).toMatchObject([error])
        expect(requests.at(-1)?.results).toEqual([{ name: "have", ...error }])
      }))

    it("RI-126 neither a circle nor more than may stand below each other gets a Run", (office) =>
      Effect.gen(function* () {
        const { here, ran, there } = office
        const inner = task([["have", { task: task([["mail", { to: "ann" }]], "mailed") }]], "led")
        for (const [runId, release, error] of [
          ["deep", "flat", "DepthExceeded"],
          ["circle", "cyclic", "AgentCycle"]
        ] as const) {
          const verb = { _tag: "Start", runId, task: task([["have_led", { task: inner }]], "done") } as const
          expect((yield* there("B", verb, { release })).said).toMatchObject({ _tag: "Completed", output: "done" })
          expect(yield* here(only("ToolCallCompleted", `${runId}.t1.0`))).toMatchObject([
            { isFailure: true, ending: "invalid", error }
          ])
          expect(yield* here(told(Run.get(`${runId}.t1.0.t1.0`)))).toBe("Fatal RunNotFound")
        }
        expect(ran()).toEqual([])
      }))

    it("RI-143 a cancel of the root while both work ends their processes, and leaves no lease and nothing set aside", (office) =>
      Effect.gen(function* () {
        const { here, life } = office
        const held: Array<ChildProcess> = []
        const both = yield* Deferred.make<void>()
        const working = life({
          extra: Layer.orDie(Budget.layer({ tokens: 1_000_000, calls: 100, turns: 100 })),
          handlers: {
            mail: () =>
              Effect.scoped(
                Effect.gen(function* () {
                  held.push(yield* Effect.acquireRelease(spawned, ended))
                  if (held.length === 2) yield* Deferred.succeed(both, undefined)
                  return yield* Effect.never
                })
              )
          }
        })
        const mailing = ["have", { task: task([["mail", { to: "ann" }]], "mailed") }] as const
        const fiber = yield* Effect.forkChild(
          working(Run.start(lead, { runId, task: task([mailing, mailing], "both done") }))
        )
        yield* Deferred.await(both)
        expect(held.map(isAlive)).toEqual([true, true])
        yield* here(Run.cancel({ runId }))
        expect(yield* Fiber.join(fiber)).toMatchObject({ _tag: "Cancelled" })
        expect(held.map(isAlive)).toEqual([false, false])
        for (const id of [runId, "r.t1.0", "r.t1.1"]) {
          const head = yield* here(CheckpointStore.CheckpointStore.use((store) => store.head(id)))
          expect([head?.status, head?.owner]).toEqual(["cancelled", undefined])
          const events = yield* here(eventsOf(id))
          expect(events.reduce(fold, initial).reserved).toEqual(none)
          yield* here(expectValid(id))
        }
        const shares = (yield* here(only("ToolCallStarted"))).map(({ reservations }) => reservations?.["budget"])
        expect(shares.map((share) => (share?.["tokens"] ?? 0) > 0)).toEqual([true, true])
        const came = yield* here(only("ToolCallCompleted"))
        expect(came.map(({ child, error }) => [error, child?.used?.["budget"]?.["turns"]])).toEqual(
          Array(2).fill(["Cancelled", 1])
        )
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
