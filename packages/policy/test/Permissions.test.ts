import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { CheckpointStore, Guard, MemoryStore, Owner, Plugin, Run } from "@waystone/core"
import { DyingStore, Mortal } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { Approvals, Permissions } from "@waystone/policy"
import {
  agent,
  approve,
  digestOf,
  eventsOf,
  explained,
  handlers,
  only,
  paired,
  type Policy,
  policyLayer,
  runId,
  ScriptedModel
} from "./support/office.ts"

const { call, calls, text } = ScriptedModel

/** Runs a script to its rest under a policy. */
const ran = (policy: Policy, script: ScriptedModel.Script, roles?: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const did: Array<string> = []
    const model = yield* ScriptedModel.make(script)
    const store = yield* MemoryStore.make
    const layer = Layer.mergeAll(
      model.layer,
      handlers(did),
      policyLayer(policy),
      Layer.succeed(CheckpointStore.CheckpointStore, store)
    )
    const here = <A, E>(effect: Effect.Effect<A, E, Layer.Success<typeof layer>>) => Effect.provide(effect, layer)
    const principal = roles === undefined ? {} : { principal: { id: "ann", roles } }
    const outcome = yield* here(Run.start(agent, { runId, task: "go", ...principal }))
    yield* here(paired)
    return { did, events: yield* here(eventsOf), here, model, outcome, store }
  })

const defaults: Policy = { rules: [] }
const subject = (effect: Permissions.Explained["effect"], destructive = false) => ({
  tool: "t",
  effect,
  destructive,
  arguments: {}
})

describe("without a rule", () => {
  it.effect.each([
    ["readonly", false, "allow"],
    ["readonly", true, "allow"],
    ["idempotent", false, "deny"],
    ["unsafe", false, "deny"],
    ["idempotent", true, "ask"],
    ["unsafe", true, "ask"]
  ] as const)("R1 a tool that is %s, destructive %s: %s", ([effect, destructive, action]) =>
    Effect.map(explained(defaults, subject(effect, destructive)), (decision) => {
      expect(decision.action).toBe(action)
      expect(decision.rule).toBeUndefined()
    })
  )

  it.effect("R1 the model sees why an effect is denied, and the journal says so", () =>
    Effect.gen(function* () {
      const { did, events, model, outcome } = yield* ran(defaults, [
        calls([
          ["look", { path: "a" }],
          ["note", { text: "x" }]
        ]),
        text("done")
      ])
      expect(outcome._tag).toBe("Completed")
      expect(did).toEqual(["look a"])
      const message = "no rule allows note with these arguments; do it another way or tell the user"
      expect(only(events, "VerdictGiven")).toMatchObject([
        { guard: "permissions", on: "t1.1", verdict: "Deny", message }
      ])
      expect(JSON.stringify((yield* model.requests)[1]?.results)).toContain(`Refused by permissions: ${message}`)
    })
  )

  it.effect("R1 a destructive call waits for a person, whom the reason is shown", () =>
    Effect.gen(function* () {
      const { did, outcome } = yield* ran(defaults, [call("shell", { command: "ls" })])
      expect(outcome).toMatchObject({
        _tag: "Suspended",
        waiting: [{ id: "t1.0", guard: "permissions", reason: "no rule is about it, and shell is destructive" }]
      })
      expect(did).toEqual([])
    })
  )
})

describe("rules", () => {
  it.effect("the first that matches decides, and its name and reason stand in the journal", () =>
    Effect.gen(function* () {
      const policy: Policy = {
        rules: [
          { name: "small", action: "allow", tools: ["refund"], when: { amount: { max: 10 } } },
          { name: "large", action: "deny", tools: ["refund"], when: { amount: { min: 100 } }, reason: "ask Bob" },
          { action: "ask", tools: ["ref*"] }
        ]
      }
      const { did, events } = yield* ran(policy, [
        calls([
          ["refund", { amount: 10 }],
          ["refund", { amount: 100 }],
          ["refund", { amount: 50 }],
          ["refund_vip", { amount: 1 }]
        ])
      ])
      expect(did).toEqual(["refund 10"])
      expect(only(events, "VerdictGiven")).toMatchObject([{ on: "t1.1", message: "ask Bob (rule large)" }])
      expect(only(events, "ApprovalRequested")).toMatchObject([
        { callId: "t1.2", reason: "refund needs approval (rule rules[2])" },
        { callId: "t1.3", reason: "refund_vip needs approval (rule rules[2])" }
      ])
    })
  )

  it.effect.each([
    [["clerk"], ["refund 1"]],
    [["guest", "clerk"], ["refund 1"]],
    [["guest"], []],
    [undefined, []]
  ] as const)("roles are those of the Run's principal: %j", ([roles, expected]) =>
    Effect.map(
      ran(
        { rules: [{ action: "allow", roles: ["boss", "clerk"] }] },
        [call("refund", { amount: 1 }), text("done")],
        roles
      ),
      ({ did }) => expect(did).toEqual(expected)
    )
  )

  it.effect("a call is explained without roles, and nothing before it, where none are given", () =>
    Effect.gen(function* () {
      const roles = ["admin", "boss", "clerk", "support", "user"]
      const some: Policy = { rules: [{ action: "allow", roles }], afterUntrusted: "ask" }
      const asked = { tool: "t", effect: "unsafe", arguments: {} } as const
      expect((yield* explained(some, asked)).action).toBe("deny")
      expect((yield* explained(some, { ...asked, roles: ["clerk"] })).action).toBe("allow")
    })
  )

  const when = (action: Permissions.Action, condition: Permissions.Condition, place = "a"): Policy => ({
    rules: [{ action, when: { [place]: condition } }]
  })
  const yes = { allow: "allow", deny: "deny" } as const

  it.effect.each([
    [{ equals: 1 }, 1, true],
    [{ equals: 1 }, "1", false],
    [{ equals: { a: 1, b: [2] } }, { b: [2], a: 1 }, true],
    [{ oneOf: [1, "x"] }, "x", true],
    [{ oneOf: [1, "x"] }, "y", false],
    [{ matches: ["a*c"] }, "abbc", true],
    [{ matches: ["a*c"] }, "abcd", false],
    [{ matches: ["a*bc*c"] }, "abc", false],
    [{ min: 1, max: 2 }, 1, true],
    [{ min: 1, max: 2 }, 2, true],
    [{ min: 1, max: 2 }, 2.5, false],
    [{ min: 1, max: 2 }, 0.5, false],
    [{ min: 1 }, undefined, false],
    [{ equals: 1, max: 0 }, 1, false]
  ] as ReadonlyArray<[Permissions.Condition, unknown, boolean]>)(
    "a condition %j of %j: %s",
    ([condition, value, holds]) =>
      Effect.gen(function* () {
        for (const action of ["allow", "deny"] as const) {
          const call = {
            tool: "t",
            effect: action === "allow" ? "unsafe" : "readonly",
            arguments: { a: value }
          } as const
          const other = action === "allow" ? "deny" : "allow"
          const args = value === undefined ? {} : { a: value }
          const decision = yield* explained(when(action, condition), { ...call, arguments: args })
          expect([action, decision.action]).toEqual([action, holds ? yes[action] : other])
        }
      })
  )

  it.effect.each([
    [{ max: 5 }, "4"],
    [{ min: 5 }, Number.NaN],
    [{ matches: ["x"] }, 1],
    [{ path: ["x"] }, 1],
    [{ inside: ["."] }, "a\0b"],
    [{ totalMax: 5 }, "1"],
    [{ totalMax: 5 }, -1]
  ] as ReadonlyArray<[Permissions.Condition, unknown]>)(
    "R2 a rule that cannot be evaluated denies, one that allows too: %j of %j",
    ([condition, value]) =>
      Effect.gen(function* () {
        for (const action of ["allow", "ask", "deny"] as const) {
          const decision = yield* explained(when(action, condition), {
            tool: "t",
            effect: "readonly",
            arguments: { a: value }
          })
          expect(decision).toMatchObject({ action: "deny", rule: "rules[0]" })
          expect(decision.reason).toContain("it cannot be evaluated")
        }
      })
  )

  it.effect("of several values a rule that allows needs all, one that denies needs one", () =>
    Effect.gen(function* () {
      const files = (...names: ReadonlyArray<string>) => ({
        tool: "t",
        effect: "unsafe" as const,
        arguments: { files: names.map((path) => ({ path })) }
      })
      const allowed = when("allow", { matches: ["a*"] }, "files.*.path")
      const denied: Policy = {
        rules: [...when("deny", { matches: ["a*"] }, "files.*.path").rules, { action: "allow" }]
      }
      expect((yield* explained(allowed, files("a", "ab"))).action).toBe("allow")
      expect((yield* explained(allowed, files("a", "b"))).action).toBe("deny")
      expect((yield* explained(allowed, files())).action).toBe("deny")
      expect((yield* explained(denied, files("b", "a"))).action).toBe("deny")
      expect((yield* explained(denied, files("b", "c"))).action).toBe("allow")
      const odd = { ...files(), arguments: { files: [{ path: "a" }, {}] } }
      expect((yield* explained(allowed, odd)).action).toBe("deny")
    })
  )

  it.effect("an inherited property is no argument", () =>
    Effect.map(
      explained(when("allow", { matches: ["*"] }, "constructor.name"), { tool: "t", effect: "unsafe", arguments: {} }),
      ({ action }) => expect(action).toBe("deny")
    )
  )
})

/** At most 500 in refunds per Run, then ask. */
const atMost500: Policy = {
  rules: [
    { name: "up to 500", action: "allow", tools: ["refund*"], when: { amount: { totalMax: 500 } } },
    { name: "beyond", action: "ask", tools: ["refund*"] },
    { action: "allow", tools: ["note"] }
  ]
}
/** Each asks, and more than 500 is not even asked about. */
const atMost500OrNever: Policy = {
  rules: [
    { name: "beyond", action: "deny", tools: ["refund"], when: { amount: { totalAbove: 500 } } },
    { name: "up to 500", action: "ask", tools: ["refund"] }
  ]
}
const refund = (amount: number) => ["refund", { amount }] as const

describe("sums over the Run", () => {
  it.effect("P3 calls of all tools of the rule are added up, and then it asks", () =>
    Effect.gen(function* () {
      const script = [
        call("refund", { amount: 300 }),
        call("refund_vip", { amount: 200 }),
        call("refund", { amount: 1 })
      ]
      const { did, outcome } = yield* ran(atMost500, script)
      expect(did).toEqual(["refund 300", "refund_vip 200"])
      expect(outcome).toMatchObject({ _tag: "Suspended", waiting: [{ id: "t3.0", guard: "permissions" }] })
    })
  )

  it.effect(
    "P3 of the same reply, what may run counts, and what may once a person agrees; what is refused does not",
    () =>
      Effect.gen(function* () {
        const { did, outcome } = yield* ran(atMost500, [calls([refund(300), refund(200), refund(400), refund(1)])])
        expect(did).toEqual(["refund 300", "refund 200"])
        expect(outcome).toMatchObject({ waiting: [{ id: "t1.2" }, { id: "t1.3" }] })
        const refusing = yield* ran(atMost500OrNever, [calls([refund(600), refund(300), refund(300)])])
        expect(refusing.outcome).toMatchObject({ waiting: [{ id: "t1.1" }] })
      })
  )

  it.effect("P1 P3 edited arguments make no room that another call of the reply has taken, whichever is first", () =>
    Effect.gen(function* () {
      for (const edited of ["t1.0", "t1.1"]) {
        const { did, here } = yield* ran(atMost500OrNever, [calls([refund(100), refund(100)]), text("done")])
        for (const callId of ["t1.0", "t1.1"])
          yield* here(callId === edited ? approve(callId, { amount: 450 }) : approve(callId))
        expect((yield* here(Run.resume(agent, { runId })))._tag).toBe("Completed")
        expect(did).toEqual(["refund 100"])
      }
    })
  )

  it.effect("M1 what a person allowed counts, with the amount that they edited", () =>
    Effect.gen(function* () {
      const script = [call("refund", { amount: 600 }), calls([refund(200), refund(300)])]
      const { did, here } = yield* ran(atMost500, script)
      yield* here(approve("t1.0", { amount: 250 }))
      const outcome = yield* here(Run.resume(agent, { runId }))
      expect(did).toEqual(["refund 250", "refund 200"])
      expect(outcome).toMatchObject({ waiting: [{ id: "t2.1" }] })
      yield* here(paired)
    })
  )

  it.effect.each(["wait", "tell-model"] as const)(
    "P3 a yes for the rest of the Run is one for that call alone where a sum had a say (%s)",
    (mode) =>
      Effect.gen(function* () {
        const model = yield* ScriptedModel.make([...[3, 3, 3].map(() => call("refund", { amount: 300 })), text("done")])
        const did: Array<string> = []
        const live = Layer.mergeAll(model.layer, handlers(did), policyLayer(atMost500), Approvals.layer({ mode }))
        yield* Effect.gen(function* () {
          let outcome = yield* Run.start(agent, { runId, task: "go" })
          for (const callId of ["t2.0", "t3.0"]) {
            expect(outcome).toMatchObject({ _tag: "Suspended", waiting: [{ id: callId }] })
            const answer = { _tag: "Approve", digest: yield* digestOf(callId), scope: "run" } as const
            yield* Run.answer(agent, { runId, callId, by: "ann", answer })
            outcome = yield* Run.resume(agent, { runId })
          }
          expect(outcome._tag).toBe("Completed")
          expect(did).toHaveLength(3)
        }).pipe(Effect.provide(Layer.merge(live, MemoryStore.layer)))
      })
  )

  it.effect("M1 a call that the person denied does not count", () =>
    Effect.gen(function* () {
      const script = [call("refund", { amount: 600 }), call("refund", { amount: 500 }), text("done")]
      const { did, here } = yield* ran(atMost500, script)
      const { waiting } = yield* here(Run.get(runId))
      const [wait] = waiting
      const digest = wait !== undefined && "digest" in wait ? (wait.digest ?? "") : ""
      yield* here(
        Run.answer(agent, { runId, callId: "t1.0", answer: { _tag: "Deny", digest, reason: "no" }, by: "ann" })
      )
      expect((yield* here(Run.resume(agent, { runId })))._tag).toBe("Completed")
      expect(did).toEqual(["refund 500"])
    })
  )

  it.effect("explain folds what has happened, and changes nothing", () =>
    Effect.gen(function* () {
      const { events } = yield* ran(atMost500, [call("refund", { amount: 400 }), text("done")])
      const next = { tool: "refund", effect: "unsafe" as const, arguments: { amount: 200 } }
      for (let i = 0; i < 2; i++) {
        expect(yield* explained(atMost500, next)).toMatchObject({ action: "allow", rule: "up to 500" })
        expect(yield* explained(atMost500, { ...next, after: events })).toMatchObject({ action: "ask", rule: "beyond" })
      }
    })
  )
})

describe("afterUntrusted", () => {
  const all: Policy = { rules: [{ action: "allow" }] }
  const asks: Policy = { ...all, afterUntrusted: "ask" }
  const script = [
    call("fetch", { url: "x" }),
    calls([
      ["look", { path: "a" }],
      ["note", { text: "b" }]
    ])
  ]

  it.effect("once a result from outside is in the Run, effects ask and reads do not", () =>
    Effect.gen(function* () {
      const { did, outcome } = yield* ran(asks, script)
      expect(did).toEqual(["fetch x", "look a"])
      expect(outcome).toMatchObject({
        waiting: [{ id: "t2.1", reason: "what this Run has read from outside may have led to it (rule rules[0])" }]
      })
    })
  )

  it.effect("before it, and in the same reply, they do not", () =>
    Effect.gen(function* () {
      const { did } = yield* ran(asks, [
        calls([
          ["look", { path: "a" }],
          ["note", { text: "b" }]
        ]),
        calls([
          ["fetch", { url: "x" }],
          ["note", { text: "c" }]
        ]),
        text("done")
      ])
      expect(did).toEqual(["look a", "note b", "fetch x", "note c"])
    })
  )

  it.effect("is off by default, and what is denied stays denied", () =>
    Effect.gen(function* () {
      expect((yield* ran(all, [...script, text("done")])).did).toEqual(["fetch x", "look a", "note b"])
      const denied: Policy = { afterUntrusted: "ask", rules: [{ action: "deny", tools: ["note"] }] }
      const { did, outcome } = yield* ran(denied, [...script, text("done")])
      expect(outcome._tag).toBe("Completed")
      expect(did).toEqual(["fetch x", "look a"])
    })
  )
})

describe("edited arguments", () => {
  const policy: Policy = {
    rules: [
      { name: "never", action: "deny", tools: ["refund"], when: { amount: { min: 1000 } } },
      { action: "ask", tools: ["refund"], when: { amount: { max: 10 } } }
    ]
  }
  const after = (amount: number) =>
    Effect.gen(function* () {
      const { did, here, model } = yield* ran(policy, [call("refund", { amount: 10 }), text("done")])
      yield* here(approve("t1.0", { amount }))
      expect((yield* here(Run.resume(agent, { runId })))._tag).toBe("Completed")
      yield* here(paired)
      const results = JSON.stringify((yield* model.requests)[1]?.results)
      return { did, events: yield* here(eventsOf), results }
    })

  it.effect("P1 what a rule denies is not run, though a person approved it, and the model is told", () =>
    Effect.map(after(1000), ({ did, events, results }) => {
      expect(did).toEqual([])
      expect(only(events, "VerdictGiven")).toMatchObject([
        { guard: "permissions", verdict: "Deny", message: "refund is not allowed like this (rule never)" }
      ])
      expect(results).toContain("(rule never)")
    })
  )

  it.effect("P1 what a rule asks about, or no rule is about, is what the person has decided", () =>
    Effect.gen(function* () {
      expect((yield* after(5)).did).toEqual(["refund 5"])
      expect((yield* after(500)).did).toEqual(["refund 500"])
    })
  )
})

describe("once per call id", () => {
  it.effect(
    "RI-108 a decision stands: nothing is judged again after it, also when its process dies before the tool",
    () =>
      Effect.gen(function* () {
        const store = yield* MemoryStore.make
        const model = yield* ScriptedModel.make([call("refund", { amount: 1 }), text("done")])
        const did: Array<string> = []
        let judged = 0
        // Denies whatever is judged a second time.
        class Once extends Permissions.Permissions {}
        const counting = Layer.effect(
          Once,
          Effect.map(Permissions.Permissions, (service) => ({
            ...service,
            [Plugin.PluginId]: {
              name: "permissions",
              guards: (service[Plugin.PluginId].guards ?? []).map((guard) =>
                Guard.make({
                  ...guard,
                  check: (check) => {
                    if (check.proposal._tag === "Call" && ++judged > 1) return Guard.deny("judged twice")
                    return guard.check(check)
                  }
                })
              )
            }
          }))
        ).pipe(Layer.provide(policyLayer({ rules: [{ action: "ask", tools: ["refund"] }] })))
        const process = (name: string, kept: CheckpointStore.CheckpointStore["Service"] = store) =>
          Layer.mergeAll(
            model.layer,
            handlers(did),
            counting,
            Layer.succeed(CheckpointStore.CheckpointStore, kept),
            Layer.succeed(Owner.Owner, {
              name: Effect.succeed(name),
              isDead: (other) => Effect.succeed(other !== name)
            })
          )
        yield* Effect.provide(Run.start(agent, { runId, task: "go" }), process("a"))
        yield* Effect.provide(approve("t1.0"), process("a"))
        const mortal = yield* Mortal.make
        const dying = DyingStore.make(store, mortal, ({ events }) =>
          Effect.succeed(events.some((line) => line.includes("ToolCallStarted")) ? "die-before" : "live")
        )
        const fiber = yield* Effect.forkDetach(Effect.provide(Run.resume(agent, { runId }), process("b", dying)), {
          startImmediately: true
        })
        yield* Effect.raceFirst(Effect.asVoid(Fiber.await(fiber)), mortal.died)
        expect(did).toEqual([])
        expect((yield* Effect.provide(Run.resume(agent, { runId }), process("c")))._tag).toBe("Completed")
        expect({ did, judged }).toEqual({ did: ["refund 1"], judged: 1 })
      }).pipe(Effect.provide(NodeServices.layer))
  )
})
