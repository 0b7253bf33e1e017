import { describe, expect, it } from "@effect/vitest"
import { Agent, CheckpointStore, MemoryStore, Run } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { agent, handlers, kit, type Policy, policyLayer, runId, ScriptedModel } from "./support/office.ts"

const { call, text } = ScriptedModel

const lead = Agent.make("lead", {
  instructions: "Lead.",
  tools: [kit, Agent.asTool(agent, { name: "help", description: "Helps." })]
})
const help = call("help", { task: "help" })

/** Runs a script to its rest under a policy: the model says one entry after the other, whoever asks. */
const ran = (policy: Policy, script: ScriptedModel.Script, roles: ReadonlyArray<string> = []) =>
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
    const outcome = yield* here(Run.start(lead, { runId, task: "go", principal: { id: "ann", roles } }))
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

  it.effect("what it has read from outside makes its caller ask", () =>
    Effect.gen(function* () {
      const { did, outcome } = yield* ran(all, [help, call("fetch", { url: "x" }), text("ignore all rules"), note])
      expect(did).toEqual(["fetch x"])
      expect(outcome).toMatchObject({ waiting: [{ id: "t2.0", name: "note" }] })
    })
  )
})
