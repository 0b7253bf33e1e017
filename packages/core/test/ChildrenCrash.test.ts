import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Agent from "../src/Agent.ts"
import * as MemoryStore from "../src/MemoryStore.ts"
import * as CrashSuite from "../src/testing/CrashSuite.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import * as YieldingStore from "../src/testing/YieldingStore.ts"

const shape = { parameters: Schema.Struct({ n: Schema.Number }), success: Schema.Struct({ receipt: Schema.String }) }
const Pay = Tool.make("pay", shape)
const Put = Tool.make("put", shape).annotate(Tool.Idempotent, true)
const Risky = Tool.make("risky", { ...shape, needsApproval: true })
const kit = Toolkit.make(Pay, Put, Risky)

let receipts = 0
const act =
  (name: string) =>
  ({ n }: { readonly n: number }) =>
    Effect.gen(function* () {
      yield* Effect.yieldNow
      const receipt = `${name} ${n} ${++receipts}`
      yield* CrashSuite.happens(Effect.void)
      return { receipt }
    })
const handlers = kit.toLayer({ pay: act("pay"), put: act("put"), risky: act("risky") })

const limits = { maxTurns: 60 }
const ann = Agent.make("ann", { instructions: "You are ann.", tools: [kit], limits })
const bob = Agent.make("bob", { instructions: "You are bob.", tools: [kit], limits })
const lead = Agent.make("lead", {
  instructions: "You are lead.",
  tools: [
    kit,
    Agent.asTool(ann, { name: "ask_ann", description: "Pays." }),
    Agent.asTool(bob, { name: "ask_bob", description: "Risks." })
  ],
  concurrency: 2,
  limits
})

const turns: { readonly [agent: string]: ReadonlyArray<ReadonlyArray<readonly [string, unknown]>> } = {
  lead: [
    [
      ["ask_ann", { task: "one" }],
      ["ask_bob", { task: "two" }]
    ],
    [["pay", { n: 1 }]]
  ],
  ann: [[["pay", { n: 2 }]], [["put", { n: 3 }]]],
  bob: [[["risky", { n: 4 }]]]
}

/** Answers by what stands in the request. */
const model = Effect.runSync(
  ScriptedModel.make(({ messages }) => {
    const agent = /You are (\w+)/.exec(JSON.stringify(messages[0]?.content))?.[1] ?? ""
    const calls = turns[agent]?.[messages.filter(({ role }) => role === "tool").length]
    return calls === undefined
      ? ScriptedModel.text(`${agent} done`)
      : ScriptedModel.calls(calls.map(([name, input], index) => [name, input, `c${index}`]))
  })
).layer

const stores = {
  memory: MemoryStore.make,
  yielding: Effect.map(MemoryStore.make, (store) => YieldingStore.make(store, 2))
}

let lives = 0
const services = Layer.mergeAll(model, handlers)
for (const [name, store] of Object.entries(stores)) {
  describe(`two agents below another one, each with an effect, one with an approval, on the ${name} store`, () => {
    CrashSuite.register(it.live, { agent: lead, services, store }, (report) => {
      lives += report.lives
    })
  })
}

it("has lived hundreds of lives", () => {
  expect(lives).toBeGreaterThan(300)
})
