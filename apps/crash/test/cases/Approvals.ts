import { describe, expect } from "@effect/vitest"
import { Run } from "@waystone/core"
import * as Effect from "effect/Effect"
import type { Backend } from "../durable/backends.ts"
import { task } from "../durable/Desk.ts"
import type { Office } from "../durable/Office.ts"
import { answer, approve, approved, deny, digestOf, expectValid, on, only, tagsOf, told } from "../durable/looks.ts"

const runId = "r"
const resume = { _tag: "Resume", runId } as const
const value = (value: boolean | number | string) => ({ _tag: "Value", value }) as const

/** Another process starts it, and it comes to rest. */
const started = ({ there }: Office, replies: string) =>
  Effect.map(there("A", { _tag: "Start", runId, task: replies }), ({ said }) =>
    expect(said).toMatchObject({ _tag: "Suspended" })
  )

export const approvals = (backend: Backend) =>
  describe("approvals across processes", () => {
    const it = on(backend)

    it("RI-007 a sibling that finished before the wait is not run again by another process", (office) =>
      Effect.gen(function* () {
        const { here, ran, there } = office
        const both = [
          ["mail", { to: "bob" }],
          ["pay", { amount: 1 }]
        ] as const
        yield* started(office, task(both, "done"))
        const [stored] = yield* here(only("ToolCallCompleted"))
        yield* here(approve("t1.1"))
        const { requests, said } = yield* there("B", resume)
        expect(said).toMatchObject({ _tag: "Completed", output: "done" })
        expect(ran()).toEqual(["mail:bob", "pay:1"])
        expect(JSON.stringify(requests[0]?.results[0]?.result)).toBe(JSON.stringify(stored?.result))
        expect(requests[0]?.results.map(({ name }) => name)).toEqual(["mail", "pay"])
        yield* here(expectValid(runId))
      }))

    it("RI-009 a message takes the place of an answer, and the call gets a result first", (office) =>
      Effect.gen(function* () {
        const { here, ran, there } = office
        yield* started(office, task([["pay", { amount: 4 }]], "five then"))
        const digest = yield* here(digestOf())
        yield* here(Run.send({ runId, message: "make it 5 instead" }))
        const { requests, said } = yield* there("B", resume)
        expect(said).toMatchObject({ _tag: "Completed", output: "five then" })
        expect(requests[0]?.roles).toEqual(["system", "user", "assistant", "tool", "user"])
        expect(requests[0]?.text).toMatch(/Superseded by a new message.*make it 5 instead/)
        expect(ran()).toEqual([])
        const late = yield* there("A", { _tag: "Answer", runId, callId: "t1.0", answer: approved(digest) })
        expect(late.said).toMatchObject({ reason: { _tag: "AlreadyDecided", decision: { _tag: "Superseded" } } })
        yield* here(expectValid(runId))
      }))

    it("RI-022 a forged or tampered decision is refused and runs nothing", (office) =>
      Effect.gen(function* () {
        const { here, ran, there } = office
        yield* started(office, task([["pay", { amount: 1 }]], "done"))
        yield* there("B", { _tag: "Start", runId: "other", task: task([["pay", { amount: 2 }]], "done") })
        const digest = yield* here(digestOf())
        const foreign = yield* here(digestOf("t1.0", "other"))
        const before = yield* here(tagsOf())
        expect(yield* here(told(answer(approved("0".repeat(64)))))).toBe("Fatal DigestMismatch")
        expect(yield* here(told(answer(approved(foreign))))).toBe("Fatal DigestMismatch")
        expect(yield* here(told(answer(approved(digest), "t1.1")))).toBe("Fatal NotPending")
        expect(yield* here(told(answer(value(1))))).toBe("Fatal NotPending")
        expect(yield* here(tagsOf())).toEqual(before)
        expect((yield* there("B", resume)).said).toMatchObject({ _tag: "Suspended" })
        yield* here(Run.cancel({ runId }))
        expect(yield* here(told(answer(approved(digest))))).toBe("Fatal RunTerminal")
        expect(ran()).toEqual([])
      }))

    it("RI-043 a decision delivered a hundred times to two processes counts once", (office) =>
      Effect.gen(function* () {
        const { here, ran, there } = office
        yield* started(office, task([["pay", { amount: 1 }]], "done"))
        const digest = yield* here(digestOf())
        const answering = { _tag: "Answer", runId, callId: "t1.0", answer: approved(digest), times: 25 } as const
        const deliver = (process: "A" | "B") => Effect.all([there(process, answering), there(process, resume)])
        const all = yield* Effect.forEach(["A", "B", "A", "B"] as const, deliver, { concurrency: "unbounded" })
        expect(all.map(([{ said }]) => said ?? "void")).toEqual(Array(4).fill("void"))
        const driven = all.map(([, { said }]) => tagOf(said))
        expect(driven.filter((one) => one !== "RunBusy" && one !== "Completed")).toEqual([])
        expect(driven).toContain("Completed")
        const tags = yield* here(tagsOf())
        expect(tags.filter((tag) => tag === "CallAnswered")).toHaveLength(1)
        expect(tags.filter((tag) => tag === "AttemptStarted")).toHaveLength(2)
        expect(ran()).toEqual(["pay:1"])
        const other = yield* there("B", {
          _tag: "Answer",
          runId,
          callId: "t1.0",
          answer: { _tag: "Deny", digest, reason: "no" }
        })
        expect(other.said).toMatchObject({
          _tag: "Fatal",
          reason: { _tag: "AlreadyDecided", decision: { _tag: "Approve", digest } }
        })
      }))

    it("RI-043 of an approval and a denial at the same moment exactly one counts, whoever says it", (office) =>
      Effect.gen(function* () {
        const { here, ran, there } = office
        yield* started(office, task([["pay", { amount: 1 }]], "done"))
        const digest = yield* here(digestOf())
        const say = (process: "A" | "B", answer: Parameters<typeof there>[1]) =>
          Effect.map(there(process, answer), ({ said }) => tagOf(said))
        const results = yield* Effect.all(
          [
            say("A", { _tag: "Answer", runId, callId: "t1.0", answer: approved(digest) }),
            say("B", { _tag: "Answer", runId, callId: "t1.0", answer: { _tag: "Deny", digest, reason: "no" } })
          ],
          { concurrency: "unbounded" }
        )
        expect(results.toSorted()).toEqual(["AlreadyDecided", "void"])
        yield* there("B", resume)
        expect(ran()).toEqual(results[0] === "void" ? ["pay:1"] : [])
      }))

    it("RI-079 every pending call of the turn is reported to every process, with its name and arguments", (office) =>
      Effect.gen(function* () {
        const { here, ran, there } = office
        const amounts = [1, 2, 3]
        const waiting = amounts.map((amount, i) => ({
          id: `t1.${i}`,
          kind: "approval",
          name: "pay",
          arguments: { amount }
        }))
        yield* started(office, task(amounts.map((amount) => ["pay", { amount }] as const)))
        expect((yield* there("B", resume)).said).toMatchObject({ _tag: "Suspended", waiting, turns: 1 })
        expect(yield* here(Run.get(runId))).toMatchObject({ status: "waiting", waiting })
        expect(yield* here(Run.list({ status: "waiting", waiting: "approval" }))).toMatchObject([{ runId }])
        expect(ran()).toEqual([])
      }))

    it("RI-089 RI-165 answers reach their own calls, in whatever order they come; the others wait on", (office) =>
      Effect.gen(function* () {
        const { here, ran, there } = office
        yield* started(
          office,
          task(
            [1, 2, 3].map((amount) => ["pay", { amount }] as const),
            "done"
          )
        )
        yield* here(approve("t1.2"))
        yield* here(deny("no", "t1.0"))
        const first = yield* there("B", resume)
        expect(first).toMatchObject({ said: { _tag: "Suspended", waiting: [{ id: "t1.1" }] }, requests: [] })
        expect(ran()).toEqual(["pay:3"])
        yield* here(approve("t1.1"))
        // A worker that sweeps finds it.
        const { requests, said } = yield* there("A", { _tag: "Recover" })
        expect(said).toMatchObject([{ _tag: "Driven", runId, outcome: { _tag: "Completed" } }])
        expect(ran()).toEqual(["pay:3", "pay:2"])
        expect(requests[0]?.results).toEqual([
          { name: "pay", isFailure: true, result: { error: "Denied by ann: no" } },
          { name: "pay", isFailure: false, result: { paid: 2 } },
          { name: "pay", isFailure: false, result: { paid: 3 } }
        ])
        yield* here(expectValid(runId))
      }))

    it('RI-105 false, 0 and "" are answers like any other', ({ here, there }) =>
      Effect.forEach([false, 0, ""], (said, i) =>
        Effect.gen(function* () {
          const runId = `asks-${i}`
          yield* there("A", { _tag: "Start", runId, task: task([["ask", { question: "?" }]], "done") })
          yield* here(answer(value(said), "t1.0", runId))
          const { requests, ...resumed } = yield* there("B", { _tag: "Resume", runId })
          expect(resumed.said).toMatchObject({ _tag: "Completed" })
          expect(requests[0]?.results).toEqual([{ name: "ask", isFailure: false, result: said }])
          expect(yield* here(told(answer(value(said), "t1.0", runId)))).toBe("void")
        })
      ))

    it("RI-121 two questions in sequence are two calls, and no handler is replayed", (office) =>
      Effect.gen(function* () {
        const { here, ran, there } = office
        const mailAndAsk = [
          ["mail", { to: "bob" }],
          ["ask", { question: "how many?" }]
        ] as const
        yield* started(office, task(mailAndAsk, [["ask", { question: "a number, please" }]], "done"))
        yield* here(answer(value("many"), "t1.1"))
        expect((yield* there("B", resume)).said).toMatchObject({ waiting: [{ id: "t2.0", kind: "external" }] })
        yield* here(answer(value(3), "t2.0"))
        const { requests, said } = yield* there("A", resume)
        expect(said).toMatchObject({ _tag: "Completed" })
        expect(requests[0]?.results).toEqual([{ name: "ask", isFailure: false, result: 3 }])
        expect(ran()).toEqual(["mail:bob"])
        yield* here(expectValid(runId))
      }))

    it("RI-037 an answer reaches the call that waits, once; the model is asked once before it and once after", (office) =>
      Effect.gen(function* () {
        const { here, there } = office
        const { requests } = yield* there("A", {
          _tag: "Start",
          runId,
          task: task([["ask", { question: "?" }]], "done")
        })
        expect(requests).toHaveLength(1)
        const asked: Array<number> = []
        for (let delivery = 0; delivery < 3; delivery++) {
          yield* here(answer(value("ok")))
          const { requests, said } = yield* there("B", resume)
          expect(said).toMatchObject({ _tag: "Completed", output: "done" })
          asked.push(requests.length)
          if (delivery === 0) expect(requests[0]?.results).toMatchObject([{ name: "ask", result: "ok" }])
        }
        expect(asked).toEqual([1, 0, 0])
      }))

    it("RI-075 the answer to one of three external calls starts none of the others again", (office) =>
      Effect.gen(function* () {
        const { here, there } = office
        const three = ["1?", "2?", "3?"].map((question) => ["ask", { question }] as const)
        yield* started(office, task(three, "done"))
        yield* here(answer(value("two"), "t1.1"))
        const middle = yield* there("B", resume)
        expect(middle).toMatchObject({ said: { waiting: [{ id: "t1.0" }, { id: "t1.2" }] }, requests: [] })
        expect(yield* here(only("ExternalRequested"))).toHaveLength(3)
        yield* here(answer(value("three"), "t1.2"))
        yield* here(answer(value("one"), "t1.0"))
        const last = yield* there("A", resume)
        expect(last.said).toMatchObject({ _tag: "Completed" })
        expect(last.requests[0]?.results.map(({ result }) => result)).toEqual(["one", "two", "three"])
        expect(yield* here(only("ExternalRequested"))).toHaveLength(3)
      }))

    it("RI-143 a cancel is durable: an approval that comes later changes nothing, in no process", (office) =>
      Effect.gen(function* () {
        const { here, ran, there } = office
        const replies = task([["pay", { amount: 1 }]], "done")
        yield* started(office, replies)
        const digest = yield* here(digestOf())
        yield* here(Run.cancel({ runId, by: "bea" }))
        const late = yield* there("B", { _tag: "Answer", runId, callId: "t1.0", answer: approved(digest) })
        expect(late.said).toMatchObject({ _tag: "Fatal", reason: { _tag: "RunTerminal" } })
        for (const verb of [{ _tag: "Start", runId, task: replies } as const, resume]) {
          expect(yield* there("B", verb)).toMatchObject({ said: { _tag: "Cancelled", by: "bea" }, requests: [] })
        }
        expect((yield* there("A", { _tag: "Recover" })).said).toEqual([])
        expect(ran()).toEqual([])
        yield* here(expectValid(runId))
      }))
  })

/** The reason of a failure, else the tag of what came out. */
const tagOf = (said: unknown): string => {
  if (typeof said !== "object" || said === null) return String(said ?? "void")
  const one =
    "reason" in said && "_tag" in said && (said._tag === "Fatal" || said._tag === "Retryable") ? said.reason : said
  return typeof one === "object" && one !== null && "_tag" in one ? String(one._tag) : "something else"
}
