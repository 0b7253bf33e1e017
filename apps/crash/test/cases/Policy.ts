import { describe, expect } from "@effect/vitest"
import { Run } from "@waystone/core"
import { Approvals } from "@waystone/policy"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Backend } from "../durable/backends.ts"
import { task } from "../durable/Desk.ts"
import type { Office } from "../durable/Office.ts"
import { answer, approve, approved, digestOf, expectValid, on, only, told } from "../durable/looks.ts"

const runId = "r"
const resume = { _tag: "Resume", runId } as const
const pay = (amount: number) => [["pay", { amount }]] as const
const guarded = { approvals: {} }

/** Another process, with the policy, starts it, and it comes to rest. */
const started = ({ there }: Office, replies: string, options: Parameters<typeof there>[2] = guarded) =>
  Effect.map(there("B", { _tag: "Start", runId, task: replies }, options), ({ said }) =>
    expect(said).toMatchObject({ _tag: "Suspended" })
  )

/** With the policy, in this process. */
const policyOf = (options: Approvals.Options = {}) => Layer.orDie(Approvals.Approvals.layer(options))

export const policy = (backend: Backend) =>
  describe("the policy of approvals across processes", () => {
    const it = on(backend)

    it("RI-022 who may not answer, and a process without the policy, change nothing; its pending calls stay", (office) =>
      Effect.gen(function* () {
        const { here, ran, there } = office
        yield* started(office, task(pay(1), "done"))
        const digest = yield* here(digestOf())
        const saying = { _tag: "Answer", runId, callId: "t1.0", answer: approved(digest) } as const
        expect((yield* there("B", saying)).said).toMatchObject({
          reason: { _tag: "PluginMissing", missing: ["approvals"] }
        })
        expect((yield* there("B", { ...saying, by: "clerk" }, guarded)).said).toMatchObject({
          reason: { _tag: "MayNotAnswer", by: "clerk" }
        })
        expect(yield* here(told(answer(approved(digest))))).toBe("Fatal PluginMissing")
        const strict = policyOf({ mayAnswer: (by) => by === "bea" })
        expect(yield* here(told(Effect.provide(answer(approved(digest)), strict)))).toBe("Fatal MayNotAnswer")
        expect(yield* here(only("CallAnswered"))).toEqual([])
        expect((yield* there("A", resume, guarded)).said).toMatchObject({
          _tag: "Suspended",
          waiting: [{ id: "t1.0" }]
        })
        expect(ran()).toEqual([])
      }))

    it("RI-043 a decision delivered a hundred times counts once, and grants once", (office) =>
      Effect.gen(function* () {
        const { here, ran, there } = office
        yield* started(office, task(pay(1), pay(1), "done"))
        const digest = yield* here(digestOf())
        const saying = { _tag: "Answer", runId, callId: "t1.0", answer: approved(digest), times: 50 } as const
        const all = yield* Effect.forEach(["A", "B"] as const, (process) => there(process, saying, guarded), {
          concurrency: "unbounded"
        })
        expect(all.map(({ said }) => said ?? "void")).toEqual(["void", "void"])
        expect((yield* there("A", resume, guarded)).said).toMatchObject({
          _tag: "Suspended",
          waiting: [{ id: "t2.0" }]
        })
        expect(yield* here(only("CallAnswered"))).toHaveLength(1)
        expect(ran()).toEqual(["pay:1"])
      }))

    it("RI-079 RI-089 RI-165 of three calls that wait, each gets its own answer, in whatever process and order", (office) =>
      Effect.gen(function* () {
        const { here, ran, there } = office
        const three = [1, 2, 3].map((amount) => ["pay", { amount }] as const)
        yield* started(office, task(three, "done"))
        expect(yield* here(Run.get(runId))).toMatchObject({
          waiting: [1, 2, 3].map((amount, i) => ({
            id: `t1.${i}`,
            arguments: { amount },
            expiresAt: expect.any(Number)
          }))
        })
        const say = (callId: string, amount?: number) =>
          Effect.flatMap(here(digestOf(callId)), (digest) => {
            const edited = amount === undefined ? undefined : { edited: { amount } }
            return there(
              "B",
              { _tag: "Answer", runId, callId, answer: { _tag: "Approve", digest, ...edited } },
              guarded
            )
          })
        yield* say("t1.2")
        expect((yield* there("A", resume, guarded)).said).toMatchObject({ waiting: [{ id: "t1.0" }, { id: "t1.1" }] })
        yield* say("t1.1", 20)
        yield* say("t1.0")
        const { requests, said } = yield* there("B", resume, guarded)
        expect(said).toMatchObject({ _tag: "Completed" })
        expect(ran()).toEqual(["pay:3", "pay:1", "pay:20"])
        expect(requests[0]?.results.map(({ result }) => result)).toEqual([{ paid: 1 }, { paid: 20 }, { paid: 3 }])
        yield* here(expectValid(runId))
      }))

    it("RI-108 a yes for the rest of the Run holds in every process; the same question is not put again", (office) =>
      Effect.gen(function* () {
        const { here, ran, there } = office
        yield* started(office, task(pay(1), pay(1), pay(2), pay(1), "done"))
        const digest = yield* here(digestOf())
        const answer = { _tag: "Approve", digest, scope: "run" } as const
        yield* there("A", { _tag: "Answer", runId, callId: "t1.0", answer }, guarded)
        expect((yield* there("A", resume, guarded)).said).toMatchObject({ waiting: [{ id: "t3.0" }] })
        yield* here(Effect.provide(approve("t3.0"), policyOf()))
        expect((yield* there("B", resume, guarded)).said).toMatchObject({ _tag: "Completed" })
        expect(ran()).toEqual(["pay:1", "pay:1", "pay:2", "pay:1"])
        expect(yield* here(only("ApprovalRequested"))).toHaveLength(2)
      }))

    it("the time to answer ends by the store's clock: a process whose clock is days behind answers too late", (office) =>
      Effect.gen(function* () {
        const { here, ran, there } = office
        const brief = { approvals: { expiresAfter: "100 millis" } } as const
        yield* started(office, task(pay(1), "done"), brief)
        yield* Effect.sleep("150 millis")
        const clock = yield* Clock.Clock
        const days = 3 * 24 * 60 * 60 * 1000
        const behind: Clock.Clock = {
          ...clock,
          currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() - days,
          currentTimeMillis: Effect.map(clock.currentTimeMillis, (now) => now - days),
          sleep: (duration) => clock.sleep(duration)
        }
        const late = Effect.provide(told(approve()), policyOf())
        expect(yield* here(late).pipe(Effect.provideService(Clock.Clock, behind))).toBe("Fatal ApprovalExpired")
        // The sweep of a worker finds it.
        expect((yield* there("B", { _tag: "Recover" }, guarded)).said).toMatchObject([
          { outcome: { _tag: "Completed" } }
        ])
        expect(yield* here(only("WaitExpired"))).toHaveLength(1)
        expect(ran()).toEqual([])
      }))

    it("a call that is to be confirmed (tell-model) is confirmed from another process, for one call", (office) =>
      Effect.gen(function* () {
        const { here, ran, there } = office
        const telling = { approvals: { mode: "tell-model" } } as const
        const both = [
          ["pay", { amount: 1 }],
          ["ask", { question: "go on?" }]
        ] as const
        yield* started(office, task(both, pay(1), pay(1), "done"), telling)
        const [deferred] = (yield* here(Run.get(runId))).deferred
        const digest = deferred?.digest ?? ""
        yield* there("A", { _tag: "Answer", runId, callId: "t1.0", answer: approved(digest) }, telling)
        yield* there("A", { _tag: "Answer", runId, callId: "t1.1", answer: { _tag: "Value", value: true } }, telling)
        const { requests, said } = yield* there("B", resume, telling)
        expect(said).toMatchObject({ _tag: "Completed" })
        expect(ran()).toEqual(["pay:1"])
        expect(requests[0]?.text).toContain("ann confirmed pay (t1.0)")
        yield* here(expectValid(runId))
      }))
  })
