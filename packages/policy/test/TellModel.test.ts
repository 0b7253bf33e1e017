import { describe, expect, it } from "@effect/vitest"
import { Run } from "@waystone/core"
import { DyingStore, Mortal, PairingChecker, ScriptedModel } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import * as Approvals from "../src/Approvals.ts"
import { approve, deny, office, only, resultsOf, resume, runId, start, told } from "./support/clerk.ts"

const { call, calls, text } = ScriptedModel
const pay = (amount: number) => call("pay", { amount })
const policy = Approvals.Approvals.layer({ mode: "tell-model", modes: { hold: "wait" }, expiresAfter: "1 hour" })
const mail = call("mail", { to: "bob" })
const waits = { isFailure: true, result: { error: Approvals.waiting } }

/** It wants to pay, is told that this is to be confirmed, and waits for something else; then it says these. */
const asking = (...then: ReadonlyArray<ScriptedModel.Entry>) =>
  Effect.gen(function* () {
    const first = calls([
      ["pay", { amount: 1 }],
      ["hold", {}]
    ])
    // By what the model has said, so that a process that died derails nothing.
    const one = yield* office(({ messages }) => {
      const said = messages.filter(({ role }) => role === "assistant").length
      return [first, ...then][said] ?? text("done")
    })
    const here = one.process(policy)
    expect(yield* here(start)).toMatchObject({ _tag: "Suspended", waiting: [{ id: "t1.1" }] })
    return { ...one, here }
  })
const goOn = Effect.andThen(approve("t1.1"), resume)

describe("a call that is to be confirmed (tell-model)", () => {
  it.effect("waits by default, and by name where the modes say so", () =>
    Effect.gen(function* () {
      const byName = yield* office([pay(1), text("done")])
      yield* byName.process(Approvals.Approvals.layer({ modes: { pay: "tell-model" } }))(start)
      expect(yield* byName.process(policy)(only("ApprovalRequested"))).toMatchObject([{ mode: "tell-model" }])
      const other = yield* office([pay(1), text("done")])
      const waiting = other.process(Approvals.Approvals.layer({ modes: { mail: "tell-model" } }))(start)
      expect(yield* waiting).toMatchObject({ _tag: "Suspended" })
    })
  )

  it.effect("gets a result that says so, and the Run goes on", () =>
    Effect.gen(function* () {
      const { model, process, ran } = yield* office([pay(1), mail, text("done")])
      const here = process(policy)
      expect(yield* here(start)).toMatchObject({ _tag: "Completed" })
      expect(resultsOf((yield* model.requests)[1])).toEqual([waits])
      expect(ran).toEqual(["mail bob"])
      expect(yield* here(only("ToolCallCompleted"))).toMatchObject([{ ending: "deferred" }, { ending: "executed" }])
      expect(yield* here(PairingChecker.ofRun(runId))).toEqual([])
      // Its Run is over, so nothing can come of a yes.
      expect(yield* here(told(approve("t1.0")))).toBe("Fatal RunTerminal")
    })
  )

  it.effect("V2 a later yes is told to the model and lets one repeated call pass, and no second one", () =>
    Effect.gen(function* () {
      const { here, model, ran } = yield* asking(pay(1), pay(1), text("done"))
      expect(yield* here(Run.get(runId))).toMatchObject({ deferred: [{ id: "t1.0", name: "pay" }] })
      yield* here(approve("t1.0"))
      expect(yield* here(goOn)).toMatchObject({ _tag: "Completed" })
      expect(ran).toEqual(["pay 1"])
      const requests = yield* model.requests
      expect(JSON.stringify(requests[1]?.messages.at(-1))).toContain("ann confirmed pay (t1.0)")
      expect(JSON.stringify(requests[2]?.messages).match(/ann confirmed/g)).toHaveLength(1)
      expect(resultsOf(requests[3])).toEqual([waits])
      expect(yield* here(only("ApprovalRequested"))).toMatchObject([
        { callId: "t1.0" },
        { callId: "t1.1" },
        { callId: "t3.0" }
      ])
    })
  )

  it.effect("V2 other arguments are another question", () =>
    Effect.gen(function* () {
      const { here, ran } = yield* asking(pay(2), text("done"))
      yield* here(approve("t1.0"))
      yield* here(goOn)
      expect(ran).toEqual([])
      expect(yield* here(only("ApprovalRequested"))).toHaveLength(3)
    })
  )

  it.effect("a call that is repeated before the answer asks nothing new, so that two answers cannot be given", () =>
    Effect.gen(function* () {
      const { model, process } = yield* office([pay(1), pay(1), pay(1), text("done")])
      const here = process(policy)
      yield* here(start)
      expect(yield* here(only("ApprovalRequested"))).toHaveLength(1)
      const requests = yield* model.requests
      expect([1, 2, 3].map((i) => resultsOf(requests[i])?.[0])).toEqual([waits, waits, waits])
    })
  )

  it.effect("a no is told to the model with its reason, and lets nothing pass", () =>
    Effect.gen(function* () {
      const { here, model, ran } = yield* asking(pay(1), text("done"))
      yield* here(deny("t1.0", "too dear"))
      yield* here(goOn)
      expect(JSON.stringify((yield* model.requests)[1]?.messages.at(-1))).toContain("ann refused pay (t1.0): too dear")
      expect(ran).toEqual([])
    })
  )

  it.effect("a yes that comes too late does not count, and the model hears that nobody answered", () =>
    Effect.gen(function* () {
      const { here, model, ran } = yield* asking(pay(1), text("done"))
      yield* here(approve("t1.1"))
      yield* TestClock.adjust("1 hour")
      expect(yield* here(told(approve("t1.0")))).toBe("Fatal ApprovalExpired")
      yield* here(resume)
      expect(JSON.stringify((yield* model.requests)[1]?.messages.at(-1))).toContain(
        "Nobody confirmed pay (t1.0) in time"
      )
      expect(ran).toEqual([])
      expect(yield* here(only("ApprovalRequested"))).toHaveLength(3)
    })
  )

  it.effect("cannot be confirmed with other arguments: it has its result already", () =>
    Effect.gen(function* () {
      const { here } = yield* asking(text("done"))
      expect(yield* here(told(approve("t1.0", { edited: { amount: 2 } })))).toBe("Fatal AnswerInvalid")
    })
  )

  it.effect("V2 the process killed at any append, the yes still lets one call pass, never two", () =>
    Effect.gen(function* () {
      const outcomes: Array<string> = []
      for (const fate of ["die-before", "die-after"] as const) {
        for (let at = 1, dies = true; dies; at++) {
          const { here, process, ran, store } = yield* asking(pay(1), pay(1))
          yield* here(approve("t1.0"))
          yield* here(approve("t1.1"))
          const mortal = yield* Mortal.make
          let appends = 0
          const decide = () => Effect.sync(() => (++appends === at ? fate : "live"))
          const doomed = process(policy, DyingStore.make(store, mortal, decide))
          const fiber = yield* Effect.forkDetach(doomed(resume))
          yield* Effect.raceFirst(mortal.died, Effect.exit(Fiber.join(fiber)))
          dies = mortal.isDead()
          yield* TestClock.adjust("11 seconds") // its lease is over
          const after = yield* here(goOn)
          const doubt = after._tag === "Suspended" && after.waiting.some(({ kind }) => kind === "in-doubt")
          outcomes.push(`${doubt ? "in doubt" : after._tag}, paid ${ran.length}`)
        }
      }
      // In doubt: it died after the start was committed, so a person is asked, and nothing is paid twice.
      expect(new Set(outcomes)).toEqual(new Set(["Completed, paid 1", "in doubt, paid 0", "in doubt, paid 1"]))
      expect(outcomes.length).toBeGreaterThan(12)
    })
  )
})
