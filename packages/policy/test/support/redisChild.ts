/** A process of its own with policies on Redis: `node redisChild.ts <url> <prefix> <run id> <calls>`; says what came of its Run. */
import { NodeRedis } from "@effect/platform-node"
import { Agent, MemoryStore, Run } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import { Breaker, Quota } from "@waystone/policy"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import * as RateLimiter from "effect/persistence/RateLimiter"

/** What one process saw. */
export interface Seen {
  readonly outcome: string
  readonly turns: number
  /** How often the handler ran. */
  readonly called: number
  readonly errors: ReadonlyArray<string | undefined>
}

const Down = Schema.TaggedStruct("Down", {})
const Fetch = Tool.make("fetch", { success: Schema.String, failure: Down }).annotate(Tool.Readonly, true)
const tools = Toolkit.make(Fetch)
const agent = Agent.make("fetcher", {
  instructions: "Fetch.",
  tools: [tools],
  requires: [Breaker.Breaker, Quota.Quota],
  limits: { maxConsecutiveFailures: 50 }
})

export interface Fetching {
  readonly runId: string
  readonly calls: number
  /** Done when the Layers are built. */
  readonly before?: Effect.Effect<void>
}

/** One Run of ann, with a quota of five model calls an hour and a breaker that opens at three failures. */
export const fetching = (
  redis: Parameters<typeof NodeRedis.layer>[0],
  prefix: string,
  { before = Effect.void, calls, runId }: Fetching
) =>
  Effect.gen(function* () {
    let called = 0
    const handlers = tools.toLayer({
      fetch: () =>
        Effect.suspend(() => {
          called++
          return Effect.fail({ _tag: "Down" } as const)
        })
    })
    const model = ScriptedModel.layer(({ number }) =>
      number <= calls ? ScriptedModel.call("fetch", {}) : ScriptedModel.text("done")
    )
    const shared = NodeRedis.layer(redis)
    const limiter = Layer.provide(RateLimiter.layer, RateLimiter.layerStoreRedis({ prefix: `${prefix}:quota:` }))
    const policies = Layer.merge(
      Layer.provide(Quota.layer({ turns: 5, windowSeconds: 3600, maxWaitSeconds: 0 }), limiter),
      Layer.provide(
        Breaker.layerStored({ failures: 3, openSeconds: 3600, errors: ["Down"] }),
        CircuitBreaker.layerStoreRedis({ prefix: `${prefix}:circuit:` })
      )
    ).pipe(Layer.provide(shared))
    return yield* Effect.gen(function* () {
      yield* before
      const outcome = yield* Run.start(agent, { runId, task: "go", principal: { id: "ann" } })
      const events = yield* Stream.runCollect(Run.events(runId, { follow: false }))
      const seen: Seen = {
        outcome: outcome._tag,
        turns: events.filter(({ event }) => event._tag === "TurnStarted").length,
        called,
        errors: events.flatMap(({ event }) => (event._tag === "ToolCallCompleted" ? [event.error] : []))
      }
      return seen
    }).pipe(Effect.provide(Layer.mergeAll(model, handlers, policies, MemoryStore.layer)))
  })

const [, file, url, prefix, runId, calls] = process.argv
if (file === import.meta.filename && url !== undefined && prefix !== undefined && runId !== undefined) {
  const seen = await Effect.runPromise(fetching({ url }, prefix, { runId, calls: Number(calls) }))
  process.stdout.write(`${JSON.stringify(seen)}\n`)
}
