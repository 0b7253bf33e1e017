import { NodeServices } from "@effect/platform-node"
import { expect, it } from "@effect/vitest"
import { Agent, MemoryStore, ModelInfo, Run, type RunEvent } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import { Approvals, Breaker, Budget, LoopGuard, Permissions, Prices, Quota, Sanitizer } from "@waystone/policy"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as RateLimiter from "effect/persistence/RateLimiter"
import { vi } from "vitest"
import { journal } from "./Lives.ts"

vi.setConfig({ testTimeout: 300_000 })

type Policy = Layer.Layer<never, unknown>

const Limiter = RateLimiter.layer.pipe(Layer.provide(RateLimiter.layerStoreMemory))

/** Every policy of the package, set so that the script below makes it act. A new one is added here. */
const policies: ReadonlyArray<Policy> = [
  Approvals.layer({ mode: "tell-model" }),
  Breaker.layer({ failures: 2, errors: ["Down"] }),
  Budget.layer({ costUsd: 1, warnAt: 0.001 }),
  LoopGuard.layer({ nudgeAt: 2, stopAt: 4 }),
  Permissions.layer({
    rules: [
      { name: "small", action: "allow", tools: ["pay"], when: { n: { max: 5 } } },
      { name: "huge", action: "deny", tools: ["pay"], when: { n: { min: 100 } } },
      { name: "large", action: "ask", tools: ["pay"] }
    ]
  }).pipe(Layer.provide(NodeServices.layer)),
  Sanitizer.layer()
]
/** They have no say of their own in a Run that is within its quota; they stand between the others. */
const beside: ReadonlyArray<Policy> = [
  Quota.layer({ turns: 100 }).pipe(Layer.provide(Limiter)),
  Prices.layer({ table: { "p/m": { input: 1, output: 1000 } } })
]

/** All ways to merge Layers, each from the left or from the right, or given to one another. */
const nestings: ReadonlyArray<(layers: ReadonlyArray<Policy>) => Policy> = [
  (layers) => layers.reduce((all, next) => Layer.merge(all, next)),
  (layers) => layers.reduceRight((all, next) => Layer.merge(next, all)),
  (layers) => layers.reduce((all, next) => Layer.provideMerge(all, next)),
  (layers) => layers.reduceRight((all, next) => Layer.provideMerge(Layer.merge(Layer.empty, next), Layer.fresh(all)))
]

const permutations = <A>(all: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  all.length <= 1
    ? [all]
    : all.flatMap((one, i) => permutations(all.filter((_, j) => j !== i)).map((others) => [one, ...others]))

const parameters = Schema.Struct({ n: Schema.Number })
const Down = Schema.TaggedStruct("Down", { why: Schema.String })
const Call = Tool.make("call", { parameters, success: Schema.String, failure: Down }).annotate(Tool.Readonly, true)
const Pay = Tool.make("pay", { parameters, success: Schema.String })
const Tools = Toolkit.make(Call, Pay)
const key = `AIza${"Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx"}`
const handlers = Tools.toLayer({
  call: () => Effect.fail({ _tag: "Down", why: "no entry" } as const),
  pay: ({ n }) => Effect.succeed(`paid ${n} with ${key}`)
})
const requires = [
  Approvals.Approvals,
  Breaker.Breaker,
  Budget.Budget,
  LoopGuard.LoopGuard,
  Permissions.Permissions,
  Quota.Quota,
  Sanitizer.Sanitizer
] as const
const agent = Agent.make("caller", {
  instructions: "Call.",
  tools: [Tools],
  requires: [...requires],
  limits: { maxConsecutiveFailures: 50 }
})
const info = Layer.succeed(ModelInfo.ModelInfo, { provider: "p", model: "m", maxOutput: 100, window: 100_000 })

/** What a Run's journal says, without times. */
const told = (events: ReadonlyArray<RunEvent.RunEvent>): unknown =>
  events.map((event) =>
    JSON.parse(
      JSON.stringify(event, (name, value) => (/At$|^at$|^owner$|^tries$|^callIds$/.test(name) ? undefined : value))
    )
  )

/** One Run with the policies in this order and nesting: it pays by every rule, then it calls what is away. */
const run = Effect.fnUntraced(function* (order: ReadonlyArray<Policy>, nesting: number) {
  const paying = [1, 50, 500].map((n) => ["pay", { n }] as const)
  const model = yield* ScriptedModel.make(({ number }) =>
    number === 1 ? ScriptedModel.calls(paying) : ScriptedModel.call("call", { n: 1 })
  )
  // The cast says what the list cannot: all that the agent requires is in it.
  const live = nestings[nesting % nestings.length]?.(order) as Layer.Layer<InstanceType<(typeof requires)[number]>>
  return yield* Effect.gen(function* () {
    yield* Run.start(agent, { runId: "order", task: "Call.", principal: { id: "ann" } })
    return told(yield* journal("order"))
  }).pipe(Effect.provide(Layer.mergeAll(model.layer, info, handlers, live, MemoryStore.layer)))
})

const orders = permutations(policies)
/** Every order in every nesting takes half a minute; else the nestings take turns. */
const full = process.env["WAYSTONE_FULL"] === "1"

it.live("all six policies give the same verdicts and results in every order, in every nesting", () =>
  Effect.gen(function* () {
    const first = yield* run([...policies, ...beside], 0)
    const text = JSON.stringify(first)
    // Each of them has acted.
    expect(text).toMatch(/"guard":"permissions","on":"t1\.2","verdict":"Deny"/)
    expect(text).toMatch(/"ApprovalRequested","callId":"t1\.1".*"guard":"permissions".*"mode":"tell-model"/)
    expect(text).toContain("Waiting for confirmation")
    expect(text).toMatch(/"guard":"budget","on":"s\d","verdict":"Allow","note"/)
    expect(text).toMatch(/"reservations":\{"budget"/)
    expect(text).toMatch(/"costNanoUsd":\d/)
    expect(text).toContain('"verdict":"Nudge"')
    expect(text).toContain('"reason":{"_tag":"Loop"}')
    expect(text).toContain("[redacted:google-key]")
    expect(text).not.toContain(key)
    expect(text).toContain("CircuitOpen")
    expect(text).toContain('"plugins":["approvals","breaker","budget","loop-guard","permissions","quota","sanitizer"]')
    expect(orders).toHaveLength(720)
    for (const [i, order] of orders.entries()) {
      const among = order.toSpliced(i % 7, 0, ...beside)
      for (const nesting of full ? nestings.keys() : [i]) expect(yield* run(among, nesting)).toEqual(first)
    }
  })
)

/** Any one of them, and any two, are enough: none leans on another. */
it.live.each(policies.map((_, i) => i))("policy %i acts alone, and beside each other one", (i) =>
  Effect.gen(function* () {
    const alone = Agent.make("caller", { instructions: "Call.", tools: [Tools], limits: { maxTurns: 6 } })
    const one = policies.filter((_, j) => j === i)
    for (const other of [[], ...policies.filter((_, j) => j !== i).map((policy) => [policy])]) {
      const model = yield* ScriptedModel.make(() => ScriptedModel.call("call", { n: 1 }))
      const live = [...one, ...other].reduce((all, next) => Layer.merge(all, next))
      const outcome = yield* Run.start(alone, { runId: "alone", task: "Call." }).pipe(
        Effect.provide(Layer.mergeAll(model.layer, info, handlers, live, beside[1] ?? Layer.empty, MemoryStore.layer))
      )
      expect(outcome._tag).toBe("Stopped")
    }
  })
)
