import { describe, expect, it } from "@effect/vitest"
import { Guard, Run } from "@waystone/core"
import { PairingChecker, ScriptedModel } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import * as Approvals from "../src/Approvals.ts"
import {
  approve,
  asked,
  clerk,
  deny,
  guarding,
  office,
  only,
  resultsOf,
  resume,
  runId,
  start,
  told
} from "./support/clerk.ts"

const { call, calls, text } = ScriptedModel
const pay = (amount: number) => call("pay", { amount })
const policy = Approvals.Approvals.layer
const both = <E>(one: Layer.Layer<Approvals.Approvals, E>, two: Layer.Layer<never>) => Layer.merge(one, two)
const day = 24 * 60 * 60 * 1000

const refusing = guarding(({ proposal }) =>
  proposal._tag === "Call" && JSON.stringify(proposal.arguments).includes("666")
    ? Guard.deny("an evil sum")
    : Guard.allow
)

describe("the time to answer", () => {
  it.effect("is 7 days by default, so that weekends fit in: a yes just before counts, one at its end does not", () =>
    Effect.gen(function* () {
      const { process, ran } = yield* office([pay(1), text("done")])
      const here = process(policy())
      expect(yield* here(start)).toMatchObject({ waiting: [{ guard: "core", expiresAt: 7 * day }] })
      yield* TestClock.adjust(7 * day)
      expect(yield* here(told(approve("t1.0")))).toBe("Fatal ApprovalExpired")
      yield* TestClock.adjust(-1)
      expect(yield* here(told(approve("t1.0")))).toBe("void")
      expect(yield* here(resume)).toMatchObject({ _tag: "Completed" })
      expect(ran).toEqual(["pay 1"])
    })
  )

  it.effect("can be another one; the sweep of a process then finds the Run, and not before", () =>
    Effect.gen(function* () {
      const { model, process, ran } = yield* office([pay(1), text("done")])
      const here = process(policy({ expiresAfter: "1 hour" }))
      yield* here(start)
      yield* TestClock.adjust("59 minutes")
      expect(yield* here(Run.recover([clerk]))).toEqual([])
      yield* TestClock.adjust("1 minute")
      expect(yield* here(Run.recover([clerk]))).toMatchObject([{ outcome: { _tag: "Completed" } }])
      expect(resultsOf((yield* model.requests)[1])).toEqual([
        { isFailure: true, result: { error: "Nobody answered in time; not executed." } }
      ])
      expect(ran).toEqual([])
    })
  )

  it.effect("can be without end, and ends earlier where the asking guard says so", () =>
    Effect.gen(function* () {
      const asking = guarding(({ proposal }) =>
        proposal._tag === "Call" && proposal.call.name === "mail"
          ? { _tag: "Ask", reason: "mails cost", expiresAt: 1000 }
          : Guard.allow
      )
      const { process } = yield* office([
        calls([
          ["pay", { amount: 1 }],
          ["mail", { to: "bob" }]
        ])
      ])
      yield* process(both(policy({ expiresAfter: "Infinity" }), asking))(start)
      const requests = yield* process(policy())(only("ApprovalRequested"))
      expect(requests.map(({ expiresAt, name }) => [name, expiresAt])).toEqual([
        ["pay", undefined],
        ["mail", 1000]
      ])
    })
  )

  it.effect("holds for a question about the next Turn too", () =>
    Effect.gen(function* () {
      const asking = guarding(({ proposal }) => (proposal._tag === "Step" ? Guard.ask("on?") : Guard.allow))
      const { process } = yield* office([text("done")])
      const here = process(both(policy({ expiresAfter: "1 hour" }), asking))
      expect(yield* here(start)).toMatchObject({ waiting: [{ id: "s1", expiresAt: 3_600_000 }] })
      yield* here(approve("s1"))
      expect(yield* here(resume)).toMatchObject({ _tag: "Completed" })
    })
  )
})

describe("who may answer", () => {
  it.effect("V3 everybody by default, but not the agent itself, and nobody without a name", () =>
    Effect.gen(function* () {
      const { process, ran } = yield* office([pay(1), text("done")])
      const here = process(policy())
      yield* here(start)
      for (const by of ["clerk", "", "  ", "Clerk ", "cl\u200Berk", "\u200B", "ｃｌｅｒｋ"])
        expect(yield* here(told(approve("t1.0", { by })))).toBe("Fatal MayNotAnswer")
      expect(yield* here(only("CallAnswered"))).toEqual([])
      expect(yield* here(told(approve("t1.0", { by: "anybody" })))).toBe("void")
      yield* here(resume)
      expect(ran).toEqual(["pay 1"])
      expect(yield* here(only("CallAnswered"))).toMatchObject([{ by: "anybody" }])
    })
  )

  it.effect("V3 a process without the policy cannot answer, nor can it go on with the Run", () =>
    Effect.gen(function* () {
      const { process } = yield* office([pay(1), text("done")])
      yield* process(policy())(start)
      expect(yield* process(Layer.empty)(told(approve("t1.0")))).toBe("Fatal PluginMissing")
      expect(yield* process(Layer.empty)(told(deny("t1.0", "no")))).toBe("Fatal PluginMissing")
      expect(yield* process(Layer.empty)(only("CallAnswered"))).toEqual([])
    })
  )

  it.effect("is decided with what was asked, on whose behalf, and what is answered", () =>
    Effect.gen(function* () {
      const { process } = yield* office([pay(1), text("done")])
      const seen: Array<unknown> = []
      const here = process(
        policy({
          mayAnswer: (by, request) => {
            seen.push(request)
            return by !== request.principal?.id // four eyes
          }
        })
      )
      yield* here(start)
      expect(yield* here(told(approve("t1.0", { by: "eve" })))).toBe("Fatal MayNotAnswer")
      expect(seen).toEqual([
        {
          runId,
          callId: "t1.0",
          kind: "approval",
          agent: "clerk",
          name: "pay",
          arguments: { amount: 1 },
          guard: "core",
          reason: "pay needs approval",
          principal: { id: "eve" },
          answer: { _tag: "Approve", digest: (yield* here(asked("t1.0"))).digest }
        }
      ])
      expect(yield* here(told(approve("t1.0", { by: "ann" })))).toBe("void")
    })
  )

  it.effect("a rule that breaks refuses", () =>
    Effect.gen(function* () {
      const { process } = yield* office([pay(1), text("done")])
      yield* process(policy())(start)
      const throws = policy({
        mayAnswer: () => {
          throw new Error("the directory is away")
        }
      })
      expect(yield* process(throws)(told(approve("t1.0")))).toBe("Fatal MayNotAnswer")
      expect(yield* process(policy({ mayAnswer: () => Effect.die("away") }))(told(approve("t1.0")))).toBe(
        "Fatal MayNotAnswer"
      )
      expect(yield* process(policy({ mayAnswer: () => Effect.succeed(true) }))(told(approve("t1.0")))).toBe("void")
    })
  )
})

describe("a yes for the rest of the Run", () => {
  it.effect("V1 lets the same tool with the same arguments pass, in another process too, and no other", () =>
    Effect.gen(function* () {
      const { process, ran } = yield* office([pay(1), pay(1), pay(2), text("done")])
      const here = process(policy())
      yield* here(start)
      yield* here(approve("t1.0", { scope: "run" }))
      expect(yield* process(policy())(resume)).toMatchObject({ _tag: "Suspended", waiting: [{ id: "t3.0" }] })
      expect(ran).toEqual(["pay 1", "pay 1"])
      const [granted] = yield* here(only("VerdictGiven"))
      expect(granted).toMatchObject({
        guard: "approvals",
        on: "t2.0",
        verdict: "Allow",
        note: { scope: "run", from: "t1.0", by: "ann" }
      })
    })
  )

  it.effect("V1 a yes for this call alone lets no other pass", () =>
    Effect.gen(function* () {
      const { process, ran } = yield* office([pay(1), pay(1)])
      const here = process(policy())
      yield* here(start)
      yield* here(approve("t1.0", { scope: "call" }))
      expect(yield* here(resume)).toMatchObject({ waiting: [{ id: "t2.0" }] })
      expect(ran).toEqual(["pay 1"])
    })
  )

  it.effect("V1 does not answer what another guard asks, and no Deny", () =>
    Effect.gen(function* () {
      let mood: Guard.Verdict = Guard.allow
      const moody = guarding(({ proposal }) => (proposal._tag === "Call" ? mood : Guard.allow))
      const { model, process, ran } = yield* office([pay(1), pay(1), pay(1), text("done")])
      const here = process(both(policy(), moody))
      yield* here(start)
      yield* here(approve("t1.0", { scope: "run" }))
      mood = Guard.ask("the budget is spent")
      expect(yield* here(resume)).toMatchObject({
        waiting: [{ id: "t2.0", guard: "other", reason: "the budget is spent" }]
      })
      yield* here(approve("t2.0"))
      mood = Guard.deny("closed")
      expect(yield* here(resume)).toMatchObject({ _tag: "Completed" })
      expect(ran).toEqual(["pay 1", "pay 1"])
      expect(resultsOf((yield* model.requests)[3])).toEqual([
        { isFailure: true, result: { error: "Refused by other: closed" } }
      ])
    })
  )

  it.effect("cannot be given to edited arguments", () =>
    Effect.gen(function* () {
      const { process } = yield* office([pay(1), text("done")])
      const here = process(policy())
      yield* here(start)
      expect(yield* here(told(approve("t1.0", { scope: "run", edited: { amount: 2 } })))).toBe("Fatal AnswerInvalid")
    })
  )
})

describe("edited arguments", () => {
  it.effect("are what runs, and both versions are kept", () =>
    Effect.gen(function* () {
      const { process, ran } = yield* office([pay(100), text("done")])
      const here = process(both(policy(), refusing))
      yield* here(start)
      yield* here(approve("t1.0", { edited: { amount: 5 } }))
      yield* here(resume)
      expect(ran).toEqual(["pay 5"])
      expect(yield* here(only("ToolCallStarted"))).toMatchObject([{ arguments: { amount: 5 } }])
      expect(JSON.stringify(yield* here(only("TurnCompleted")))).toContain('"amount":100')
    })
  )

  it.effect("RI-022 are judged again by the guards that can deny: what they refuse does not run", () =>
    Effect.gen(function* () {
      const { model, process, ran } = yield* office([pay(1), text("done")])
      const here = process(both(policy(), refusing))
      yield* here(start)
      yield* here(approve("t1.0", { edited: { amount: 666 } }))
      expect(yield* here(resume)).toMatchObject({ _tag: "Completed" })
      expect(ran).toEqual([])
      expect(resultsOf((yield* model.requests)[1])).toEqual([
        { isFailure: true, result: { error: "Refused by other: an evil sum" } }
      ])
      expect(yield* PairingChecker.ofRun(runId).pipe(here)).toEqual([])
    })
  )

  it.effect("are not asked about once more", () =>
    Effect.gen(function* () {
      const asking = guarding(({ proposal }) => (proposal._tag === "Call" ? Guard.ask("sure?") : Guard.allow))
      const { process, ran } = yield* office([pay(1), text("done")])
      const here = process(both(policy(), asking))
      yield* here(start)
      yield* here(approve("t1.0", { edited: { amount: 2 } }))
      expect(yield* here(resume)).toMatchObject({ _tag: "Completed" })
      expect(ran).toEqual(["pay 2"])
    })
  )
})

describe("the options", () => {
  it.effect.each([
    [{ expiresAfter: "soon" }, "Approvals: expiresAfter: must be a duration longer than 0"],
    [{ expiresAfter: 0 }, "Approvals: expiresAfter: must be a duration longer than 0"],
    [{ mode: "never" }, 'Approvals: mode: must be "wait" or "tell-model"'],
    [{ modes: { pay: "maybe" } }, 'Approvals: modes.pay: must be "wait" or "tell-model"'],
    [{ mayAnswer: true }, "Approvals: mayAnswer: must be a function"],
    [{ mayAnswer: null }, "Approvals: mayAnswer: must be a function"],
    [{ modes: null }, "Approvals: modes: Expected object | undefined"],
    [null, "Approvals: $: Expected object"],
    [{ expires: 1 }, "Approvals: expires: Expected no excess property"]
  ] as const)("%j is refused by the name of the field", ([options, message]) =>
    Effect.gen(function* () {
      const { process } = yield* office([])
      const wrong = yield* Effect.flip(process(policy(options as never))(Effect.void))
      expect(wrong.message).toBe(message)
    })
  )
})
