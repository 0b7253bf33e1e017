import { expect, it } from "@effect/vitest"
import { Agent, MemoryStore, Run, type RunEvent } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import { Breaker, LoopGuard, Sanitizer } from "@waystone/policy"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { journal } from "./Lives.ts"

/** Every policy of the package, set so that the script below makes it act. A new one is added here. */
const policies: ReadonlyArray<Layer.Layer<never, unknown>> = [
  LoopGuard.layer({ nudgeAt: 2, stopAt: 4 }),
  Sanitizer.layer(),
  Breaker.layer({ failures: 2, errors: ["Down"] })
]

/** All ways to merge Layers, each from the left or from the right, or given to one another. */
const nestings: ReadonlyArray<(layers: ReadonlyArray<Layer.Layer<never, unknown>>) => Layer.Layer<never, unknown>> = [
  (layers) => layers.reduce((all, next) => Layer.merge(all, next)),
  (layers) => layers.reduceRight((all, next) => Layer.merge(next, all)),
  (layers) => layers.reduce((all, next) => Layer.provideMerge(all, next)),
  (layers) => layers.reduceRight((all, next) => Layer.provideMerge(Layer.merge(Layer.empty, next), Layer.fresh(all)))
]

const permutations = <A>(all: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  all.length <= 1
    ? [all]
    : all.flatMap((one, i) => permutations(all.filter((_, j) => j !== i)).map((others) => [one, ...others]))

const Down = Schema.TaggedStruct("Down", { why: Schema.String })
const Call = Tool.make("call", {
  parameters: Schema.Struct({ n: Schema.Number }),
  success: Schema.String,
  failure: Down
}).annotate(Tool.Readonly, true)
const Tools = Toolkit.make(Call)
const requires = [LoopGuard.LoopGuard, Sanitizer.Sanitizer, Breaker.Breaker] as const
const agent = Agent.make("caller", { instructions: "Call.", tools: [Tools], requires: [...requires] })
const key = `AIza${"Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx"}`

/** What a Run's journal says, without times. */
const told = (events: ReadonlyArray<RunEvent.RunEvent>): unknown =>
  events.map((event) =>
    JSON.parse(JSON.stringify(event, (name, value) => (/At$|^at$|^owner$|^tries$/.test(name) ? undefined : value)))
  )

it.effect("the policies give the same verdicts and results in every order and nesting", () =>
  Effect.gen(function* () {
    const seen: Array<unknown> = []
    for (const order of permutations(policies)) {
      for (const nesting of nestings) {
        const model = yield* ScriptedModel.make(() => ScriptedModel.call("call", { n: 1 }))
        const handlers = Tools.toLayer({
          call: () => Effect.fail({ _tag: "Down", why: `no entry with ${key}` } as const)
        })
        // The casts say what the list cannot: all that the agent requires is in it.
        const live = nesting(order) as Layer.Layer<InstanceType<(typeof requires)[number]>>
        seen.push(
          yield* Effect.gen(function* () {
            yield* Run.start(agent, { runId: "order", task: "Call." })
            return told(yield* journal("order"))
          }).pipe(Effect.provide(Layer.mergeAll(model.layer, handlers, live, MemoryStore.layer)))
        )
      }
    }
    const [first, ...others] = seen
    const text = JSON.stringify(first)
    // Each of them has acted.
    expect(text).toContain('"verdict":"Nudge"')
    expect(text).toContain('"reason":{"_tag":"Loop"}')
    expect(text).toContain("[redacted:google-key]")
    expect(text).not.toContain(key)
    expect(text).toContain("CircuitOpen")
    expect(text).toContain('"plugins":["breaker","loop-guard","sanitizer"]')
    for (const other of others) expect(other).toEqual(first)
    expect(others).toHaveLength(23)
  })
)
