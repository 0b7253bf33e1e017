import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Agent from "../src/Agent.ts"
import * as MemoryStore from "../src/MemoryStore.ts"
import * as Reconcile from "../src/Reconcile.ts"
import * as AnswerLosingStore from "../src/testing/AnswerLosingStore.ts"
import * as CrashSuite from "../src/testing/CrashSuite.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import * as YieldingStore from "../src/testing/YieldingStore.ts"
import { ToolContext } from "../src/ToolContext.ts"

const shape = { parameters: Schema.Struct({ n: Schema.Number }), success: Schema.Struct({ receipt: Schema.String }) }
const Pay = Tool.make("pay", shape)
const Put = Tool.make("put", shape).annotate(Tool.Idempotent, true)
const Look = Tool.make("look", shape).annotate(Tool.Readonly, true)
const Risky = Tool.make("risky", { ...shape, needsApproval: true })
const kit = Toolkit.make(Pay, Put, Look, Risky)

/** The world outside, which no crash touches: what was done under which key. */
const bank = new Map<string, string>()
let receipts = 0

const act =
  (name: string, pause: boolean) =>
  ({ n }: { readonly n: number }) =>
    Effect.gen(function* () {
      const { idempotencyKey } = yield* ToolContext
      if (pause) yield* Effect.yieldNow
      const receipt = `${name} ${n} ž🧭 ${++receipts}`
      yield* CrashSuite.happens(Effect.sync(() => bank.set(idempotencyKey, receipt)))
      if (pause) yield* Effect.yieldNow
      return { receipt }
    })

const handlers = kit.toLayer({
  pay: act("pay", true),
  put: act("put", true),
  look: act("look", false),
  risky: act("risky", true)
})

const asked = ({ key }: Reconcile.Input): Effect.Effect<Reconcile.Reconciled<{ readonly receipt: string }>> =>
  Effect.sync(() => {
    const receipt = bank.get(key)
    return receipt === undefined ? { _tag: "NeverStarted" } : { _tag: "Done", result: { receipt } }
  })
const reconcilers = Layer.merge(Reconcile.layer(Pay, asked), Reconcile.layer(Risky, asked))

/** Ids repeat across turns on purpose: some providers do that. */
const turns: ReadonlyArray<ReadonlyArray<readonly [string, number]>> = [
  [["pay", 1]],
  [
    ["look", 2],
    ["pay", 3],
    ["put", 4]
  ],
  [
    ["risky", 5],
    ["look", 6],
    ["risky", 7]
  ]
]

/** Answers by what stands in the request, so a lost turn is asked again and gets the same reply. */
const model = Effect.runSync(
  ScriptedModel.make(({ messages }) => {
    const calls = turns[messages.filter(({ role }) => role === "tool").length]
    return calls === undefined
      ? ScriptedModel.text("done")
      : ScriptedModel.calls(calls.map(([name, n], index) => [name, { n }, `c${index}`]))
  })
).layer

const stores = {
  memory: MemoryStore.make,
  yielding: Effect.map(MemoryStore.make, (store) => YieldingStore.make(store, 2)),
  "answer-losing": Effect.map(MemoryStore.make, (store) =>
    AnswerLosingStore.make(YieldingStore.make(store), AnswerLosingStore.every(3))
  )
}

let lives = 0
let doubts = 0
let repeats = 0
const count = (report: CrashSuite.Report) => {
  lives += report.lives
  doubts += report.doubts
  repeats += report.repeats
}

for (const [name, store] of Object.entries(stores)) {
  for (const concurrency of [1, 3]) {
    for (const reconcile of [false, true]) {
      describe(`on the ${name} store, concurrency ${concurrency}, ${reconcile ? "with" : "without"} reconcile`, () => {
        const agent = Agent.make("crashing", {
          instructions: "Survive.",
          tools: [kit],
          concurrency,
          limits: { maxTurns: 60 }
        })
        const services = Layer.mergeAll(model, handlers, reconcile ? reconcilers : Layer.empty)
        CrashSuite.register(it.live, { agent, services, store }, count)
      })
    }
  }
}

describe("RI-032 limits", () => {
  const forever = ScriptedModel.layer(() =>
    ScriptedModel.calls([
      ["look", { n: 1 }],
      ["pay", { n: 2 }]
    ])
  )
  const agent = Agent.make("forever", { instructions: "Go on.", tools: [kit], limits: { maxTurns: 4 } })
  CrashSuite.register(it.live, { agent, services: Layer.merge(forever, handlers), store: stores.yielding }, count)
})

const Fails = Tool.make("fails", { parameters: Schema.Struct({}), success: Schema.String, failure: Schema.String })
describe("RI-032 limits that count failures", () => {
  const failing = ScriptedModel.layer(() => ScriptedModel.call("fails", {}, "c0"))
  const failed = Toolkit.make(Fails).toLayer({ fails: () => Effect.fail("no") })
  const agent = Agent.make("failing", { instructions: "Fail.", tools: [Fails], limits: { maxConsecutiveFailures: 3 } })
  CrashSuite.register(it.live, { agent, services: Layer.merge(failing, failed), store: stores.memory }, count)
})

it("has lived thousands of lives", () => {
  console.log(`${lives} lives, ${doubts} calls in doubt, ${repeats} harmless repeats`)
  expect(lives).toBeGreaterThan(3000)
  expect(doubts).toBeGreaterThan(100)
})
