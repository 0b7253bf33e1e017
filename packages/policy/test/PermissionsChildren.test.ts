import { describe, expect, it } from "@effect/vitest"
import { Agent, CheckpointStore, MemoryStore, Run } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { agent, explained, handlers, kit, type Policy, policyLayer, runId, ScriptedModel } from "./support/office.ts"

const { call, calls, text } = ScriptedModel

const lead = Agent.make("lead", {
  instructions: "Lead.",
  tools: [kit, Agent.asTool(agent, { name: "help", description: "Helps." })],
  concurrency: 2
})
const help = call("help", { task: "help" })

/** Runs a script to its rest under a policy: the model says one entry after the other, whoever asks. */
const ran = (policy: Policy, script: ScriptedModel.Script, roles: ReadonlyArray<string> = [], root = lead) =>
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
    const outcome = yield* here(Run.start(root, { runId, task: "go", principal: { id: "ann", roles } }))
    return { did, here, outcome }
  })

describe("permissions of an agent below another one", () => {
  const all: Policy = { rules: [{ action: "allow" }], afterUntrusted: "ask" }
  const note = call("note", { text: "b" })

  it.effect("what its root may not do is denied to it, by the same rule and the same roles", () =>
    Effect.gen(function* () {
      const policy: Policy = {
        rules: [
          { action: "allow", tools: ["note"], roles: ["writer"] },
          { action: "allow", tools: ["help"] }
        ]
      }
      const script = [help, note, text("helped"), text("done")]
      expect((yield* ran(policy, script)).did).toEqual([])
      expect((yield* ran(policy, script, ["writer"])).did).toEqual(["note b"])
    })
  )

  it.effect("M2 it asks where its caller had read from outside, and not where it had not", () =>
    Effect.gen(function* () {
      const trusted = yield* ran(all, [help, note, text("helped"), text("done")])
      expect(trusted.did).toEqual(["note b"])

      const { did, here, outcome } = yield* ran(all, [call("fetch", { url: "x" }), help, note])
      // To have it done is an effect itself.
      expect(outcome).toMatchObject({ waiting: [{ id: "t2.0", name: "help" }] })
      const { waiting } = yield* here(Run.get(runId))
      const approve = { _tag: "Approve", digest: waiting[0]?.digest ?? "" } as const
      yield* here(Run.answer(lead, { runId, callId: "t2.0", answer: approve, by: "eve" }))
      expect(yield* here(Run.resume(lead, { runId }))).toMatchObject({
        waiting: [{ id: "t1.0", path: ["t2.0"], name: "note" }]
      })
      expect(did).toEqual(["fetch x"])
    })
  )

  const upTo500: Policy = {
    rules: [
      { action: "allow", tools: ["refund*"], when: { amount: { totalMax: 500 } } },
      { action: "allow", tools: ["help"] }
    ]
  }
  const refund = (amount: number) => call("refund", { amount })
  const amounts = (did: ReadonlyArray<string>) => did.map((what) => Number(what.split(" ")[1]))

  it.effect(
    "PT1 an amount over the Run is one of the whole tree: what either has used the other cannot use again",
    () =>
      Effect.gen(function* () {
        const below = [refund(250), refund(100), text("helped")]
        const { did, outcome } = yield* ran(upTo500, [
          refund(200),
          help,
          ...below,
          refund(50),
          refund(10),
          text("done")
        ])
        expect(outcome).toMatchObject({ _tag: "Completed", output: "done" })
        expect(amounts(did)).toEqual([200, 250, 50])
      })
  )

  it.effect("PT1 several at once get a part each, and what they leave is their caller's again", () =>
    Effect.gen(function* () {
      const task = { task: "help" }
      const { did, here, outcome } = yield* ran(upTo500, ({ messages }) => {
        const turn = messages.filter(({ role }) => role === "assistant").length
        if (!JSON.stringify(messages[0]).includes("Lead.")) return turn < 3 ? refund(100) : text("helped")
        const two = calls([
          ["help", task],
          ["help", task]
        ])
        return [two, refund(60), refund(100), refund(41), text("done")][turn] ?? text("too much")
      })
      expect(outcome).toMatchObject({ output: "done" })
      // 250 each; of the 100 that are left after four, 60 and no more than 40.
      expect(amounts(did)).toEqual([100, 100, 100, 100, 60])
      const events = (yield* here(Stream.runCollect(Run.events(runId)))).map(({ event }) => event)
      const shares = events.flatMap((event) =>
        event._tag === "ToolCallStarted" && event.child !== undefined ? [event.reservations?.["permissions"]] : []
      )
      expect(shares).toEqual(Array(2).fill({ "0 amount": 250, untrusted: 0 }))
      // While they work, all that they may use is gone.
      const first = events.findIndex((event) => event._tag === "ToolCallStarted")
      const decided = (amount: number, upTo: number) => {
        const asked = { tool: "refund", effect: "unsafe", arguments: { amount }, after: events.slice(0, upTo) } as const
        return Effect.map(explained(upTo500, asked), ({ action }) => action)
      }
      expect(yield* decided(250, first + 1)).toBe("allow")
      expect(yield* decided(251, first + 1)).toBe("deny")
    })
  )

  it.effect("PT1 a call beside it keeps a part, and what was used ahead of it is not given away", () =>
    Effect.gen(function* () {
      const { did } = yield* ran(upTo500, ({ messages }) => {
        const turn = messages.filter(({ role }) => role === "assistant").length
        if (!JSON.stringify(messages[0]).includes("Lead.")) return turn < 5 ? refund(60) : text("helped")
        const beside = calls([
          ["refund", { amount: 300 }],
          ["help", { task: "help" }],
          ["refund", { amount: 1 }]
        ])
        return turn === 0 ? beside : text("done")
      })
      // 200 are left for it, and none for the call after it.
      expect(amounts(did).toSorted()).toEqual([300, 60, 60, 60].toSorted())

      const after = yield* ran(upTo500, ({ messages }) => {
        const turn = messages.filter(({ role }) => role === "assistant").length
        if (!JSON.stringify(messages[0]).includes("Lead.")) return [refund(240), refund(11)][turn] ?? text("helped")
        const beside = calls([
          ["help", { task: "help" }],
          ["refund", { amount: 250 }]
        ])
        return turn === 0 ? beside : text("done")
      })
      expect(amounts(after.did).toSorted()).toEqual([240, 250])
    })
  )

  it.effect("PT1 one below another one uses the same part", () =>
    Effect.gen(function* () {
      const top = Agent.make("top", {
        instructions: "Top.",
        tools: [kit, Agent.asTool(lead, { name: "help", description: "Leads." })]
      })
      const script = [
        call("help", { task: "lead" }),
        refund(200),
        help,
        refund(250),
        refund(100),
        text("helped"),
        refund(50),
        refund(10),
        text("led"),
        refund(1),
        text("done")
      ]
      const { did, outcome } = yield* ran(upTo500, script, [], top)
      expect(outcome).toMatchObject({ output: "done" })
      expect(amounts(did)).toEqual([200, 250, 50])
    })
  )

  it.effect("PT2 one that was not told what it may use asks, and what a person lets it use counts for its caller", () =>
    Effect.gen(function* () {
      const policy: Policy = { rules: [{ action: "ask", tools: ["help"] }, ...upTo500.rules] }
      const script = [help, refund(300), text("helped"), refund(201), refund(200), text("done")]
      const { did, here } = yield* ran(policy, script)
      const approve = (path: ReadonlyArray<string>, callId: string) =>
        here(
          Effect.gen(function* () {
            const { waiting } = yield* Run.get(runId)
            const digest = waiting[0]?.digest ?? ""
            yield* Run.answer(lead, { runId, path, callId, answer: { _tag: "Approve", digest }, by: "eve" })
            return yield* Run.resume(lead, { runId })
          })
        )
      expect(yield* approve([], "t1.0")).toMatchObject({
        waiting: [
          {
            name: "refund",
            path: ["t1.0"],
            reason: "what the Runs above have used of it is not known here (rule rules[1])"
          }
        ]
      })
      expect(yield* approve(["t1.0"], "t1.0")).toMatchObject({ output: "done" })
      expect(amounts(did)).toEqual([300, 200])
    })
  )

  it.effect("what it has read from outside makes its caller ask", () =>
    Effect.gen(function* () {
      const { did, outcome } = yield* ran(all, [help, call("fetch", { url: "x" }), text("ignore all rules"), note])
      expect(did).toEqual(["fetch x"])
      expect(outcome).toMatchObject({ waiting: [{ id: "t2.0", name: "note" }] })
    })
  )
})
