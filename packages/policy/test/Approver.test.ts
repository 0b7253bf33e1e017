import { describe, expect, it } from "@effect/vitest"
import { Agent, Run } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { Approvals } from "../src/Approvals.ts"
import * as Approver from "../src/Approver.ts"
import { approve, clerk, office, only, runId } from "./support/clerk.ts"

const { call, calls, text } = ScriptedModel
const pay = (amount: number) => call("pay", { amount })
const input = { runId, task: "go" }

/** Somebody who is there. */
const person = (decide: (question: Approver.Question) => Effect.Effect<Option.Option<Approver.Decision>>, by = "ann") =>
  Layer.merge(Approvals.layer(), Layer.succeed(Approver.Approver, { by, decide }))
const yes: Approver.Decision = { _tag: "Approve" }
const says = (decision: Approver.Decision) => () => Effect.succeedSome(decision)

describe("Approver", () => {
  it.effect("answers at once: the Run goes on without leaving its verb, and each answer is recorded", () =>
    Effect.gen(function* () {
      const { process, ran } = yield* office([pay(1), pay(2), text("done")])
      const asked: Array<unknown> = []
      const here = process(
        person(({ waiting: { arguments: given, guard, id, reason } }) => {
          asked.push({ given, guard, id, reason })
          return Effect.succeedSome(id === "t1.0" ? yes : { _tag: "Deny", reason: "too much" })
        })
      )
      expect(yield* here(Approver.start(clerk, input))).toMatchObject({ _tag: "Completed" })
      expect(asked).toEqual([
        { id: "t1.0", given: { amount: 1 }, guard: "core", reason: "pay needs approval" },
        { id: "t2.0", given: { amount: 2 }, guard: "core", reason: "pay needs approval" }
      ])
      expect(ran).toEqual(["pay 1"])
      expect((yield* here(only("CallAnswered"))).map(({ by }) => by)).toEqual(["ann", "ann"])
    })
  )

  it.effect("RI-079 is asked about every call of the turn; what it leaves alone waits on, and is not asked again", () =>
    Effect.gen(function* () {
      const three = [1, 2, 3].map((amount) => ["pay", { amount }] as const)
      const { process, ran } = yield* office([calls(three), text("done")])
      const asked: Array<string> = []
      const here = process(
        person(({ waiting: { id } }) => {
          asked.push(id)
          return Effect.succeed(id === "t1.1" ? Option.some(yes) : Option.none())
        })
      )
      const outcome = yield* here(Approver.start(clerk, input))
      expect(outcome).toMatchObject({ _tag: "Suspended", waiting: [{ id: "t1.0" }, { id: "t1.2" }] })
      expect(asked).toEqual(["t1.0", "t1.1", "t1.2"])
      expect(ran).toEqual(["pay 2"])
    })
  )

  it.effect("may give arguments of its own, and a yes for the rest of the Run", () =>
    Effect.gen(function* () {
      const { process, ran } = yield* office([pay(9), pay(1), pay(1), text("done")])
      const answers: Array<Approver.Decision> = [
        { _tag: "Approve", edited: { amount: 3 } },
        { _tag: "Approve", scope: "run" }
      ]
      const here = process(person(() => Effect.succeed(Option.fromUndefinedOr(answers.shift()))))
      expect(yield* here(Approver.start(clerk, input))).toMatchObject({ _tag: "Completed" })
      expect(ran).toEqual(["pay 3", "pay 1", "pay 1"])
    })
  )

  it.effect("is told why an answer does not count, and may give another one", () =>
    Effect.gen(function* () {
      const { process, ran } = yield* office([pay(1), text("done")])
      const problems: Array<string | undefined> = []
      const here = process(
        person(({ problem }) => {
          problems.push(problem)
          return Effect.succeedSome(problem === undefined ? { ...yes, edited: { amount: "one" } } : yes)
        })
      )
      yield* here(Approver.start(clerk, input))
      expect(problems).toEqual([undefined, expect.stringContaining("amount")])
      expect(ran).toEqual(["pay 1"])
    })
  )

  it.effect("has no more rights than others: who may not answer is told so, and nothing runs", () =>
    Effect.gen(function* () {
      const { process, ran } = yield* office([pay(1)])
      const agent = person(
        ({ problem }) => Effect.succeed(problem === undefined ? Option.some(yes) : Option.none()),
        "clerk"
      )
      expect(yield* process(agent)(Approver.start(clerk, input))).toMatchObject({ _tag: "Suspended" })
      expect(ran).toEqual([])
    })
  )

  it.effect("whatever answers by itself, and may not, is heard ten times, and then the question waits on", () =>
    Effect.gen(function* () {
      const { process, ran } = yield* office([pay(1)])
      let asked = 0
      const machine = person(() => Effect.sync(() => (asked++, Option.some(yes))), "clerk")
      expect(yield* process(machine)(Approver.start(clerk, input))).toMatchObject({ _tag: "Suspended" })
      expect({ asked, ran }).toEqual({ asked: 10, ran: [] })
    })
  )

  it.effect("is asked what a sub-agent asks, too, and the right Run gets the answer", () =>
    Effect.gen(function* () {
      const chief = Agent.make("chief", {
        instructions: "Delegate.",
        tools: [Agent.asTool(clerk, { name: "help", description: "Pays." })]
      })
      const { process, ran } = yield* office([call("help", { task: "Pay." }), pay(1), text("paid"), text("done")])
      const paths: Array<unknown> = []
      const here = process(person(({ waiting }) => Effect.sync(() => (paths.push(waiting.path), Option.some(yes)))))
      expect(yield* here(Approver.start(chief, input))).toMatchObject({ _tag: "Completed", output: "done" })
      expect({ paths, ran }).toEqual({ paths: [["t1.0"]], ran: ["pay 1"] })
    })
  )

  it.effect("an answer from elsewhere takes its question away within a second, and the Run goes on", () =>
    Effect.gen(function* () {
      const { process, ran } = yield* office([pay(1), text("done")])
      let taken = false
      const here = process(person(() => Effect.onInterrupt(Effect.never, () => Effect.sync(() => void (taken = true)))))
      const fiber = yield* Effect.forkChild(here(Approver.start(clerk, input)))
      const elsewhere = process(Approvals.layer())
      yield* settle
      yield* elsewhere(approve("t1.0"))
      for (let quarter = 0; quarter < 4; quarter++) yield* Effect.andThen(TestClock.adjust("250 millis"), settle)
      expect(taken).toBe(true)
      expect(yield* Fiber.join(fiber)).toMatchObject({ _tag: "Completed" })
      expect(ran).toEqual(["pay 1"])
    })
  )

  it.effect("a question whose time is over is taken away, and the call is settled as such", () =>
    Effect.gen(function* () {
      const { process, ran } = yield* office([pay(1), text("done")])
      const here = process(
        Layer.merge(
          Approvals.layer({ expiresAfter: "1 minute" }),
          Layer.succeed(Approver.Approver, { by: "ann", decide: () => Effect.never })
        )
      )
      const fiber = yield* Effect.forkChild(here(Approver.start(clerk, input)))
      for (let second = 0; second < 63; second++) yield* Effect.andThen(TestClock.adjust("1 second"), settle)
      expect(yield* Fiber.join(fiber)).toMatchObject({ _tag: "Completed" })
      expect(yield* here(only("WaitExpired"))).toHaveLength(1)
      expect(ran).toEqual([])
    })
  )

  it.effect("a question without an end waits as long as the person takes", () =>
    Effect.gen(function* () {
      const { process, ran } = yield* office([pay(1), text("done")])
      let asked = 0
      const slow = () =>
        Effect.sync(() => void asked++).pipe(Effect.andThen(Effect.sleep("1 minute")), Effect.as(Option.some(yes)))
      const here = process(
        Layer.merge(
          Approvals.layer({ expiresAfter: "Infinity" }),
          Layer.succeed(Approver.Approver, { by: "ann", decide: slow })
        )
      )
      const fiber = yield* Effect.forkChild(here(Approver.start(clerk, input)))
      for (let looks = 0; looks < 4; looks++) yield* Effect.andThen(TestClock.adjust("250 millis"), settle)
      expect(asked).toBe(1)
      yield* TestClock.adjust("1 minute")
      expect(yield* Fiber.join(fiber)).toMatchObject({ _tag: "Completed" })
      expect([asked, ran]).toEqual([1, ["pay 1"]])
    })
  )

  it.effect("streams one Run with one end, whatever was asked in between", () =>
    Effect.gen(function* () {
      const { process } = yield* office([pay(1), pay(2), text("done")])
      const here = process(person(says(yes)))
      const updates = yield* here(Stream.runCollect(Approver.stream(clerk, input)))
      expect(updates.filter(({ _tag }) => _tag === "Ended" || _tag === "Failed")).toMatchObject([
        { _tag: "Ended", outcome: { _tag: "Completed" } }
      ])
      expect(
        updates.flatMap((one) => (one._tag === "Committed" && one.event._tag === "RunSuspended" ? [one.seq] : []))
      ).toHaveLength(2)
    })
  )

  it.effect("goes on with a Run that another process left at its question", () =>
    Effect.gen(function* () {
      const { process, ran } = yield* office([pay(1), text("done")])
      yield* process(Approvals.layer())(Run.start(clerk, input))
      const here = process(person(says(yes)))
      expect(yield* here(Approver.resume(clerk, { runId }))).toMatchObject({ _tag: "Completed" })
      expect(ran).toEqual(["pay 1"])
    })
  )
})

/** Digests are made by the thread pool, so a turn of the event loop is not enough. */
const settle = Effect.repeat(
  Effect.promise(async () => {
    await crypto.subtle.digest("SHA-256", new Uint8Array(1))
    await new Promise<void>((resolve) => void setImmediate(resolve))
  }),
  { times: 15 }
)
