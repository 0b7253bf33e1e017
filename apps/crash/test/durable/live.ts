/**
 * Does what an order says: it opens the store anew, has an owner of its own, and remembers nothing afterwards.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { type Agent, type CheckpointStore, ProcessOwner, Run, type RunError } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import { Approvals } from "@waystone/policy"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ledger from "../../src/Ledger.ts"
import * as Stores from "../../src/Stores.ts"
import * as Desk from "./Desk.ts"
import { type Order, request, type Told } from "./Order.ts"
import { plugin } from "./plugin.ts"

type Services = Agent.Services<typeof Desk.clerk> | CheckpointStore.CheckpointStore

type Answering = ReturnType<typeof Run.answer>

type Release = (typeof Desk.releases)[Desk.Release]

const perform = ({ release = "present", verb }: Pick<Order, "release" | "verb">) => {
  // All releases have the tools of the present one or fewer, so its handlers are enough.
  const agent: Release = Desk.releases[release]
  switch (verb._tag) {
    case "Start":
      return Run.start(agent, verb)
    case "Resume":
      return Run.resume(agent, verb)
    case "Recover":
      return Run.recover([agent])
    case "Answer":
      return Effect.all(Array<Answering>(verb.times ?? 1).fill(Run.answer(agent, { by: "ann", ...verb })), {
        concurrency: "unbounded",
        discard: true
      })
    case "Fork":
      return Run.fork(verb)
  }
}

export const live = (order: Omit<Order, "id">): Effect.Effect<Told, unknown> =>
  Effect.gen(function* () {
    const act: Desk.Act = (entry) =>
      Effect.sync(() => {
        Ledger.happen(order.ledger, entry)
        if (order.dies !== undefined && entry.item.startsWith(`${order.dies}:`)) process.kill(process.pid, "SIGKILL")
      })
    const model = yield* ScriptedModel.make(Desk.script)
    const services = Layer.mergeAll(
      Stores.layer(order.store),
      model.layer,
      Desk.handlers(act),
      Layer.provide(ProcessOwner.layer, NodeFileSystem.layer),
      order.plugin === undefined ? Layer.empty : plugin(order.plugin),
      order.approvals === undefined ? Layer.empty : Approvals.Approvals.layer(order.approvals)
    )
    const verb: Effect.Effect<unknown, RunError.Retryable | RunError.Fatal, Services> = perform(order)
    const said = yield* Effect.match(verb, {
      onSuccess: (value): unknown => value,
      onFailure: ({ _tag, reason }): unknown => ({ _tag, reason: { ...reason, _tag: reason._tag } })
    }).pipe(Effect.provide(services))
    return { said, requests: (yield* model.requests).map(request) }
  })
