import { expect, expectTypeOf, it } from "@effect/vitest"
import { Agent, MemoryStore, Run } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import { CallCap } from "@waystone/example-plugin-guard"
import { Array, Effect, Fiber, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { Tool, Toolkit } from "effect/ai"

const Mail = Tool.make("send_mail", { parameters: Schema.Struct({ to: Schema.String }), success: Schema.String })
const Tools = Toolkit.make(Mail)
const spec = { instructions: "Send mail.", tools: [Tools] }
const agent = Agent.make("mailer", { ...spec, requires: [CallCap] })
/** The same agent as an older deployment has it, without the guard. */
const unguarded = Agent.make("mailer", spec)

const { call, calls, hang, text } = ScriptedModel
const mail = (to: string) => call("send_mail", { to })
const mails = (...to: ReadonlyArray<string>) => calls(to.map(mail))

const outbox = () => {
  const sent: Array<string> = []
  const send_mail = ({ to }: { readonly to: string }) => Effect.sync(() => `mail ${sent.push(to)}`)
  return { sent, layer: Tools.toLayer({ send_mail }) }
}

const approve = (digest: string) => ({ _tag: "Approve", digest }) as const
const deny = (digest: string) => ({ _tag: "Deny", digest, reason: "she is on leave" }) as const

/** What a person does: look at what the Run waits for, and decide in its order. */
const decide = (runId: string, decisions: ReadonlyArray<typeof approve | typeof deny>) =>
  Effect.gen(function* () {
    const { waiting } = yield* Run.get(runId)
    for (const [{ id: callId, digest = "" }, decision] of Array.zip(waiting, decisions)) {
      yield* Run.answer(agent, { runId, callId, answer: decision(digest), by: "eve" })
    }
  })

it.layer(MemoryStore.layer)((it) => {
  it.effect("lets calls under the cap pass, and asks for the rest of the same reply", () =>
    Effect.gen(function* () {
      const { sent, layer } = outbox()
      const model = yield* ScriptedModel.make([mails("ann", "bob", "cy", "dee"), text("done")])
      const live = Layer.mergeAll(model.layer, layer, CallCap.layer({ send_mail: 2 }))

      const asked = yield* Run.start(agent, { runId: "asks", task: "Write to all." }).pipe(Effect.provide(live))
      expect(sent).toEqual(["ann", "bob"])
      expect(asked).toMatchObject({
        _tag: "Suspended",
        waiting: [
          { kind: "approval", guard: "call-cap", arguments: { to: "cy" } },
          { kind: "approval", guard: "call-cap", arguments: { to: "dee" } }
        ]
      })

      yield* decide("asks", [approve, deny])
      const outcome = yield* Run.resume(agent, { runId: "asks" }).pipe(Effect.provide(live))
      expect(outcome).toMatchObject({ _tag: "Completed", output: "done" })
      expect(sent).toEqual(["ann", "bob", "cy"])
      expect(JSON.stringify((yield* model.requests).at(-1))).toContain("she is on leave")
      yield* model.assertConsumed
    })
  )

  it.effect("leaves tools without a cap alone", () =>
    Effect.gen(function* () {
      const { sent, layer } = outbox()
      const model = yield* ScriptedModel.make([mails("ann", "bob"), text("done")])
      const outcome = yield* Run.start(agent, { runId: "other", task: "Write to all." }).pipe(
        Effect.provide(Layer.mergeAll(model.layer, layer, CallCap.layer({ pay: 0 })))
      )
      expect(outcome._tag).toBe("Completed")
      expect(sent).toEqual(["ann", "bob"])
    })
  )

  /** Runs until `ann` has her mail and the model hangs in its second turn; then the process is interrupted. */
  const interrupted = (runId: string, layer: ReturnType<typeof outbox>["layer"]) =>
    Effect.gen(function* () {
      const model = yield* ScriptedModel.make([mail("ann"), hang])
      const fiber = yield* Run.start(agent, { runId, task: "Write to all." }).pipe(
        Effect.provide(Layer.mergeAll(model.layer, layer, CallCap.layer({ send_mail: 1 }))),
        Effect.forkChild
      )
      yield* TestClock.adjust("1 second")
      expect(yield* model.requests).toHaveLength(2)
      yield* Fiber.interrupt(fiber)
    })

  it.effect("remembers the calls of before an interruption", () =>
    Effect.gen(function* () {
      const { sent, layer } = outbox()
      yield* interrupted("survives", layer)
      const model = yield* ScriptedModel.make([mail("bob")])
      const outcome = yield* Run.resume(agent, { runId: "survives" }).pipe(
        Effect.provide(Layer.mergeAll(model.layer, layer, CallCap.layer({ send_mail: 1 })))
      )
      expect(outcome).toMatchObject({ _tag: "Suspended", waiting: [{ arguments: { to: "bob" } }] })
      expect(sent).toEqual(["ann"])
    })
  )

  it.effect("a resume without the plugin fails with PluginMissing", () =>
    Effect.gen(function* () {
      const { sent, layer } = outbox()
      yield* interrupted("lacks", layer)
      const model = yield* ScriptedModel.make([mail("bob")])
      const error = yield* Run.resume(unguarded, { runId: "lacks" }).pipe(
        Effect.provide(Layer.mergeAll(model.layer, layer)),
        Effect.flip
      )
      expect(error).toMatchObject({ _tag: "Fatal", reason: { _tag: "PluginMissing", missing: ["call-cap"] } })
      expect(sent).toEqual(["ann"])
    })
  )

  it("forgetting the Layer does not compile", () => {
    const live = Layer.mergeAll(ScriptedModel.layer([text("done")]), outbox().layer, MemoryStore.layer)
    const run = Run.start(agent, { runId: "types", task: "Write to all." }).pipe(Effect.provide(live))
    const provided = run.pipe(Effect.provide(CallCap.layer({})))
    const runnable = <A>(_needs: [Effect.Services<A>] extends [never] ? "nothing" : A): void => undefined
    runnable<typeof provided>("nothing")
    // @ts-expect-error CallCap is not provided
    runnable<typeof run>("nothing")
    expectTypeOf<Effect.Services<typeof run>>().toEqualTypeOf<CallCap>()
  })
})
