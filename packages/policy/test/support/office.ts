/** An agent with tools of every class, and what its handlers did. */
import { NodeServices } from "@effect/platform-node"
import { Agent, type CheckpointStore, Run, type RunEvent } from "@waystone/core"
import { PairingChecker, ScriptedModel } from "@waystone/core/testing"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { Permissions } from "@waystone/policy"

const params = Schema.Struct({ amount: Schema.Number })
const Refund = Tool.make("refund", { parameters: params, success: Schema.String })
const Refund_vip = Tool.make("refund_vip", { parameters: params, success: Schema.String })
const Shell = Tool.make("shell", { parameters: Schema.Struct({ command: Schema.String }), success: Schema.String })
  .annotate(Tool.Destructive, true)
  .annotate(Tool.OpenWorld, true)
const Look = Tool.make("look", { parameters: Schema.Struct({ path: Schema.String }), success: Schema.String })
  .annotate(Tool.Readonly, true)
  .annotate(Tool.OpenWorld, false)
const Fetch = Tool.make("fetch", { parameters: Schema.Struct({ url: Schema.String }), success: Schema.String })
  .annotate(Tool.Readonly, true)
  .annotate(Tool.OpenWorld, true)
const Note = Tool.make("note", { parameters: Schema.Struct({ text: Schema.String }), success: Schema.String }).annotate(
  Tool.Idempotent,
  true
)

export const kit = Toolkit.make(Refund, Refund_vip, Shell, Look, Fetch, Note)
export const agent = Agent.make("office", { instructions: "Work.", tools: [kit], requires: [Permissions.Permissions] })
export type Policy = Parameters<typeof Permissions.layer>[0]

/** What every test of the policy package runs on: a real file system. */
export const policyLayer = (policy: Policy, options?: Permissions.Options) =>
  Layer.provide(Permissions.layer(policy, options), NodeServices.layer)

/** A decision about a call as the policy's service explains it. */
export const explained = (policy: Policy, call: Permissions.Explained, options?: Permissions.Options) =>
  Permissions.Permissions.use(({ explain }) => explain(call)).pipe(Effect.provide(policyLayer(policy, options)))

/** Handlers that say what they did. */
export const handlers = (ran: Array<string>) => {
  const does = (name: string) => (input: object) =>
    Effect.sync(() => {
      const what = `${name} ${Object.values(input).join(" ")}`
      ran.push(what)
      return what
    })
  return kit.toLayer({
    refund: does("refund"),
    refund_vip: does("refund_vip"),
    shell: does("shell"),
    look: does("look"),
    fetch: does("fetch"),
    note: does("note")
  })
}

export const runId = "r"

export const eventsOf: Effect.Effect<
  ReadonlyArray<RunEvent.RunEvent>,
  unknown,
  CheckpointStore.CheckpointStore
> = Run.events(runId, { follow: false }).pipe(
  Stream.map(({ event }) => event),
  Stream.runCollect
)

export const only = <Tag extends RunEvent.RunEvent["_tag"]>(
  events: ReadonlyArray<RunEvent.RunEvent>,
  tag: Tag
): ReadonlyArray<RunEvent.Of<Tag>> => events.filter((event): event is RunEvent.Of<Tag> => event._tag === tag)

/** No history that the Run ever had would be refused by a provider. */
export const paired = Effect.map(PairingChecker.ofRun(runId), (violations) => expect(violations).toEqual([]))

/** The digest of what a call waits for. */
export const digestOf = (callId: string) =>
  Effect.map(Run.get(runId), ({ waiting }) => {
    const wait = waiting.find(({ id }) => id === callId)
    return wait !== undefined && "digest" in wait ? (wait.digest ?? "") : ""
  })

export const approve = (callId: string, edited?: Schema.Json) =>
  Effect.flatMap(digestOf(callId), (digest) =>
    Run.answer(agent, {
      runId,
      callId,
      answer: { _tag: "Approve", digest, ...(edited === undefined ? undefined : { edited }) },
      by: "ann"
    })
  )

export { ScriptedModel }
