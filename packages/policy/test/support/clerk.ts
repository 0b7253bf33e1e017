/** An agent that asks before it pays, processes over one store, and how to look at what came of it. */
import { Agent, CheckpointStore, Guard, MemoryStore, Plugin, Run, type RunEvent } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"

const Amount = Schema.Struct({ amount: Schema.Number })
const Pay = Tool.make("pay", {
  parameters: Amount,
  success: Schema.Struct({ paid: Schema.Number }),
  needsApproval: true
})
const Mail = Tool.make("mail", { parameters: Schema.Struct({ to: Schema.String }), success: Schema.String })

/** Asked about, too; it does nothing. */
const Hold = Tool.make("hold", { success: Schema.String, needsApproval: true })

const kit = Toolkit.make(Pay, Mail, Hold)
export const clerk = Agent.make("clerk", { instructions: "Work.", tools: [kit] })

export type Services = Agent.Services<typeof clerk> | CheckpointStore.CheckpointStore
export type Process = <A, E>(effect: Effect.Effect<A, E, Services>) => Effect.Effect<A, E>

export const runId = "r"
export const start = Run.start(clerk, { runId, task: "go", principal: { id: "eve" } })
export const resume = Run.resume(clerk, { runId })

class Other extends Context.Service<Other, Plugin.Plugin>()("test/Other") {}
/** Another guard. */
export const guarding = (check: Guard.Guard["check"], name = "other"): Layer.Layer<never> =>
  Layer.succeed(Other, {
    [Plugin.PluginId]: {
      name,
      guards: [Guard.make({ name, stage: "budget", initial: 0, fold: (memory) => memory, check })]
    }
  })

/** Every process has the plugins that it names, and nothing else in common but the store. */
export const office = (script: ScriptedModel.Script) =>
  Effect.gen(function* () {
    const store = yield* MemoryStore.make
    const model = yield* ScriptedModel.make(script)
    const ran: Array<string> = []
    const does = <A>(what: string, result: A) =>
      Effect.sync(() => {
        ran.push(what)
        return result
      })
    const handlers = kit.toLayer({
      pay: ({ amount }) => does(`pay ${amount}`, { paid: amount }),
      mail: ({ to }) => does(`mail ${to}`, to),
      hold: () => Effect.succeed("held")
    })
    const process =
      <P, E>(plugins: Layer.Layer<P, E>, own = store) =>
      <A, F>(effect: Effect.Effect<A, F, Services | P>): Effect.Effect<A, E | F> =>
        Effect.provide(
          effect,
          Layer.mergeAll(Layer.succeed(CheckpointStore.CheckpointStore, own), model.layer, handlers, plugins)
        )
    return { store, model, ran, process }
  })

export const eventsOf = Effect.map(Stream.runCollect(Run.events(runId, { follow: false })), (entries) =>
  entries.map(({ event }) => event)
)
export const only = <Tag extends RunEvent.RunEvent["_tag"]>(tag: Tag) =>
  Effect.map(eventsOf, (events) => events.filter((event): event is RunEvent.Of<Tag> => event._tag === tag))

export const asked = (callId: string) =>
  Effect.map(only("ApprovalRequested"), (events) => {
    const event = events.findLast((event) => event.callId === callId)
    if (event === undefined) throw new Error(`nobody asked about ${callId}`)
    return event
  })

export interface Saying {
  readonly by?: string
  readonly edited?: Schema.Json
  readonly scope?: "call" | "run"
}
export const approve = (callId: string, { by = "ann", ...answer }: Saying = {}) =>
  Effect.flatMap(asked(callId), ({ digest }) =>
    Run.answer(clerk, { runId, callId, by, answer: { _tag: "Approve", digest, ...answer } })
  )
export const deny = (callId: string, reason: string, by = "ann") =>
  Effect.flatMap(asked(callId), ({ digest }) =>
    Run.answer(clerk, { runId, callId, by, answer: { _tag: "Deny", digest, reason } })
  )

/** `Fatal MayNotAnswer`, the tag of what came out, or void. */
export const told = <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.exit(effect), (exit): string => {
    if (Exit.isSuccess(exit)) {
      const { value } = exit
      return typeof value === "object" && value !== null && "_tag" in value ? String(value._tag) : "void"
    }
    const failed = exit.cause.reasons.find(Cause.isFailReason)
    if (failed === undefined) return Cause.pretty(exit.cause)
    const { error } = failed
    const reason = "reason" in error ? error.reason : undefined
    return typeof reason === "object" && reason !== null && "_tag" in reason
      ? `${error._tag} ${String(reason._tag)}`
      : error._tag
  })

export const resultsOf = (request: ScriptedModel.Request | undefined) =>
  request?.results.map(({ isFailure, result }) => ({ isFailure, result }))
