import { ModelInfo } from "@waystone/core"
import { Budget, Prices, Quota } from "@waystone/policy"
import * as Layer from "effect/Layer"
import * as RateLimiter from "effect/persistence/RateLimiter"

/** Nothing runs out within a Run of this many steps. */
const much = 1_000_000_000

/** What stands between a call and its effect, by name; a new module gets a line here and in `all`. */
export const policies = {
  none: Layer.empty,
  budget: Layer.mergeAll(
    Budget.layer({ tokens: much, costUsd: much, turns: much, calls: much }),
    Prices.layer({ maintained: false, table: { "bench/model": { input: 1, output: 1 } } }),
    Layer.succeed(ModelInfo.ModelInfo, { provider: "bench", model: "model", window: 200_000, maxOutput: 1000 })
  ),
  quota: Quota.layer({ turns: much }).pipe(
    Layer.provide(RateLimiter.layer.pipe(Layer.provide(RateLimiter.layerStoreMemory)))
  )
}

export const layers = { ...policies, all: Layer.mergeAll(policies.budget, policies.quota) }

export type Policy = keyof typeof layers
