import { describe, it } from "@effect/vitest"
import { Agent, Reconcile, ToolContext } from "@waystone/core"
import { CrashSuite, ScriptedModel } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { fresh } from "./support/files.ts"

const shape = { parameters: Schema.Struct({ n: Schema.Finite }), success: Schema.Struct({ receipt: Schema.String }) }
const Pay = Tool.make("pay", shape)
const Put = Tool.make("put", shape).annotate(Tool.Idempotent, true)
const Risky = Tool.make("risky", { ...shape, needsApproval: true })
const kit = Toolkit.make(Pay, Put, Risky)

/** The world outside, which no crash touches. */
const bank = new Map<string, string>()

const act = ({ n }: { readonly n: number }) =>
  Effect.gen(function* () {
    const { idempotencyKey } = yield* ToolContext.ToolContext
    const receipt = `${n} ž🧭 ${bank.size}`
    yield* CrashSuite.happens(Effect.sync(() => bank.set(idempotencyKey, receipt)))
    return { receipt }
  })

const asked = ({ key }: Reconcile.Input): Effect.Effect<Reconcile.Reconciled<{ readonly receipt: string }>> =>
  Effect.sync(() => {
    const receipt = bank.get(key)
    return receipt === undefined ? { _tag: "NeverStarted" } : { _tag: "Done", result: { receipt } }
  })

const turns: ReadonlyArray<ReadonlyArray<readonly [string, number]>> = [
  [["pay", 1]],
  [
    ["put", 2],
    ["risky", 3]
  ]
]

const model = ScriptedModel.layer(({ messages }) => {
  const calls = turns[messages.filter(({ role }) => role === "tool").length]
  return calls === undefined
    ? ScriptedModel.text("done")
    : ScriptedModel.calls(calls.map(([name, n], index) => [name, { n }, `c${index}`]))
})

const agent = Agent.make("crashing", { instructions: "Survive.", tools: [kit], limits: { maxTurns: 60 } })
const handlers = kit.toLayer({ pay: act, put: act, risky: act })

describe("a Run on SQLite that is killed at every point", () => {
  const services = Layer.mergeAll(model, handlers, Reconcile.layer(Pay, asked))
  CrashSuite.register(it.live, { agent, services, store: fresh })
})
