/** The example of `## Permissions` in the README, compiled. */
import { NodeServices } from "@effect/platform-node"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { Agent, MemoryStore, Run } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import { Permissions } from "@waystone/policy"

export const Refund = Tool.make("refund", {
  parameters: Schema.Struct({ amount: Schema.Number }),
  success: Schema.String
})
export const tools = Toolkit.make(Refund)
export const clerk = Agent.make("clerk", { instructions: "Help.", tools: [tools], requires: [Permissions.Permissions] })

export const permissions = Permissions.layer({
  rules: [
    {
      name: "small refunds",
      action: "allow",
      roles: ["support"],
      tools: ["refund"],
      when: { amount: { totalMax: 500 } }
    },
    { name: "large refunds", action: "ask", roles: ["support"], tools: ["refund"] }
  ]
})

// In place of a model, so that this runs without a key.
export const model = ScriptedModel.layer([
  ScriptedModel.call("refund", { amount: 400 }),
  ScriptedModel.call("refund", { amount: 200 })
])

export const outcome = Run.start(clerk, { runId: "r1", task: "…", principal: { id: "ann", roles: ["support"] } }).pipe(
  Effect.provide([
    tools.toLayer({ refund: ({ amount }) => Effect.succeed(`paid ${amount}`) }),
    Layer.provide(permissions, NodeServices.layer),
    model,
    MemoryStore.layer
  ]),
  Effect.runPromise
)
