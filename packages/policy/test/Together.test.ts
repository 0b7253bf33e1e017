import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { ScriptedModel } from "@waystone/core/testing"
import { Approvals, Budget, LoopGuard, Permissions, Quota } from "@waystone/policy"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as RateLimiter from "effect/persistence/RateLimiter"
import { approve, office, only, resultsOf, resume, start } from "./support/clerk.ts"

const { call, calls, text } = ScriptedModel
const pay = (amount: number) => call("pay", { amount })
const mail = (to: string) => call("mail", { to })
const approvals = Approvals.layer
const Limiter = RateLimiter.layer.pipe(Layer.provide(RateLimiter.layerStoreMemory))

describe("nudges of two policies before the same model call", () => {
  /** A yes to what did not wait, and a repetition: both are told before the second model call. */
  const told = Effect.fnUntraced(function* (turns: number) {
    const first = calls([
      ["pay", { amount: 1 }],
      ["hold", {}],
      ["mail", { to: "bob" }],
      ["mail", { to: "bob" }]
    ])
    const { model, process } = yield* office([first, text("done")])
    const here = process(
      Layer.mergeAll(
        approvals({ mode: "tell-model", modes: { hold: "wait" } }),
        Budget.layer({ tokens: 100_000 }),
        LoopGuard.layer({ nudgeAt: 2, stopAt: 3 }),
        Quota.layer({ turns, maxWaitSeconds: 0 }).pipe(Layer.provide(Limiter))
      )
    )
    return yield* here(
      Effect.gen(function* () {
        yield* start
        yield* approve("t1.0")
        yield* approve("t1.1")
        const outcome = yield* resume
        const nudges = (yield* only("VerdictGiven")).filter(({ verdict }) => verdict === "Nudge")
        return { outcome, nudges, requests: yield* model.requests, turns: yield* only("TurnStarted") }
      })
    )
  })

  it.effect("each is told once, the model hears both, and the model call counts once against the quota", () =>
    Effect.gen(function* () {
      const { nudges, outcome, requests, turns } = yield* told(2)
      expect(outcome).toMatchObject({ _tag: "Completed" })
      expect(nudges.map(({ guard, on }) => [guard, on])).toEqual([
        ["approvals", "s2"],
        ["loop-guard", "s2"]
      ])
      expect(requests).toHaveLength(2)
      const heard = JSON.stringify(requests[1]?.messages)
      expect(heard.split("You repeat yourself")).toHaveLength(2)
      expect(heard.split("confirmed pay")).toHaveLength(2)
      expect(turns.map(({ reservations }) => Object.keys(reservations ?? {}))).toEqual([["budget"], ["budget"]])
    })
  )

  it.effect("the quota counts at all", () =>
    Effect.map(told(1), ({ outcome }) => expect(outcome).toMatchObject({ _tag: "Stopped", reason: { guard: "quota" } }))
  )
})

describe("a yes for the rest of the Run, and the permissions", () => {
  const permissions = (policy: Permissions.Policy) => Layer.provide(Permissions.layer(policy), NodeServices.layer)

  it.effect("outweighs what a rule asks about the same call, in another process too, and nothing else", () =>
    Effect.gen(function* () {
      const { process, ran } = yield* office([mail("bob"), mail("bob"), mail("eve")])
      const asking = () =>
        process(Layer.merge(approvals(), permissions({ rules: [{ name: "mails", action: "ask", tools: ["mail"] }] })))
      expect(yield* asking()(start)).toMatchObject({ waiting: [{ id: "t1.0", guard: "permissions" }] })
      yield* asking()(approve("t1.0", { scope: "run" }))
      expect(yield* asking()(resume)).toMatchObject({ waiting: [{ id: "t3.0", guard: "permissions" }] })
      expect(ran).toEqual(["mail bob", "mail bob"])
      expect(yield* asking()(only("VerdictGiven"))).toMatchObject([
        { guard: "approvals", on: "t2.0", verdict: "Allow", note: { scope: "run", from: "t1.0" } }
      ])
    })
  )

  const pays = permissions({
    rules: [
      { name: "pays", action: "ask", tools: ["pay"] },
      { action: "allow", tools: ["hold"] }
    ]
  })

  it.effect(
    "answers the tool that needs approval and the rule that asks about it at once, in another process too",
    () =>
      Effect.gen(function* () {
        const { process, ran } = yield* office([pay(1), pay(1), pay(1), text("done")])
        const here = () => process(Layer.merge(approvals(), pays))
        expect(yield* here()(start)).toMatchObject({
          waiting: [
            { id: "t1.0", guard: "core", reason: "pay needs approval; permissions: pay needs approval (rule pays)" }
          ]
        })
        yield* here()(approve("t1.0", { scope: "run" }))
        expect(yield* here()(resume)).toMatchObject({ _tag: "Completed" })
        expect(ran).toEqual(["pay 1", "pay 1", "pay 1"])
        expect(yield* here()(only("ApprovalRequested"))).toMatchObject([{ also: ["permissions"] }])
      })
  )

  it.effect("answers both where the call did not wait, for one repeated call", () =>
    Effect.gen(function* () {
      const { process, ran } = yield* office([
        calls([
          ["pay", { amount: 1 }],
          ["hold", {}]
        ]),
        pay(1),
        pay(1),
        text("done")
      ])
      const here = process(Layer.mergeAll(approvals({ mode: "tell-model", modes: { hold: "wait" } }), pays))
      yield* here(start)
      yield* here(approve("t1.0"))
      yield* here(approve("t1.1"))
      yield* here(resume)
      expect(ran).toEqual(["pay 1"])
      expect((yield* here(only("ToolCallCompleted"))).map(({ callId, ending }) => [callId, ending])).toContainEqual([
        "t3.0",
        "deferred"
      ])
    })
  )

  it.effect("does not answer a guard that did not ask then", () =>
    Effect.gen(function* () {
      const { process, ran } = yield* office([pay(1), pay(1), text("done")])
      const rules = [{ name: "sum", action: "ask", tools: ["pay"], when: { amount: { totalAbove: 1 } } }] as const
      const here = process(
        Layer.merge(approvals(), permissions({ rules: [...rules, { action: "allow", tools: ["pay"] }] }))
      )
      yield* here(start)
      yield* here(approve("t1.0", { scope: "run" }))
      expect(yield* here(resume)).toMatchObject({ waiting: [{ id: "t2.0", guard: "permissions" }] })
      expect(ran).toEqual(["pay 1"])
    })
  )

  it.effect("is one yes to the budget, also where the tool needs approval: used up once more, it asks again", () =>
    Effect.gen(function* () {
      const { process, ran } = yield* office([...[1, 2, 3, 4, 5].map(() => pay(1)), text("done")])
      const here = process(Layer.merge(approvals(), Budget.layer({ calls: 2, onExhausted: "ask" })))
      yield* here(start)
      for (const [callId, scope] of [
        ["t1.0", "call"],
        ["t2.0", "call"],
        ["t3.0", "run"],
        ["t5.0", "run"]
      ] as const) {
        yield* here(approve(callId, { scope }))
        yield* here(resume)
      }
      expect(ran).toHaveLength(5)
      const asked = (yield* here(only("ApprovalRequested"))).map(({ also, callId, guard }) => [callId, guard, also])
      expect(asked).toEqual([
        ["t1.0", "core", undefined],
        ["t2.0", "core", undefined],
        ["t3.0", "core", ["budget"]],
        ["t5.0", "budget", undefined]
      ])
    })
  )

  it.effect("does not outweigh what a rule denies", () =>
    Effect.gen(function* () {
      const { model, process, ran } = yield* office([pay(100), pay(100), text("done")])
      const here = process(
        Layer.merge(
          approvals(),
          permissions({
            rules: [
              { name: "all", action: "deny", tools: ["pay"], when: { amount: { totalAbove: 150 } } },
              { name: "pays", action: "ask", tools: ["pay"] }
            ]
          })
        )
      )
      yield* here(start)
      yield* here(approve("t1.0", { scope: "run" }))
      expect(yield* here(resume)).toMatchObject({ _tag: "Completed" })
      expect(ran).toEqual(["pay 100"])
      const results = resultsOf((yield* model.requests)[2])
      expect(JSON.stringify(results)).toContain("Refused by permissions")
    })
  )

  it.effect("RI-022 a person's other arguments are judged by the rules again", () =>
    Effect.gen(function* () {
      const { process, ran } = yield* office([mail("bob"), text("done")])
      const here = process(
        Layer.merge(
          approvals(),
          permissions({
            rules: [
              { name: "never", action: "deny", tools: ["mail"], when: { to: { equals: "mallory" } } },
              { name: "mails", action: "ask", tools: ["mail"] }
            ]
          })
        )
      )
      yield* here(start)
      yield* here(approve("t1.0", { edited: { to: "mallory" } }))
      yield* here(resume)
      expect(ran).toEqual([])
      expect(yield* here(only("VerdictGiven"))).toMatchObject([{ guard: "permissions", on: "t1.0", verdict: "Deny" }])
    })
  )
})
