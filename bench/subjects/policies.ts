import { NodeServices } from "@effect/platform-node"
import { ModelInfo } from "@waystone/core"
import { Approvals, Breaker, Budget, LoopGuard, Permissions, Prices, Quota, Sanitizer } from "@waystone/policy"
import * as Layer from "effect/Layer"
import * as RateLimiter from "effect/persistence/RateLimiter"
import { Add } from "./model.ts"

/** Nothing runs out within a Run of this many steps. */
const much = 1_000_000_000

/** What stands between a call and its effect, by name; a new module gets a line here. */
const policies = {
  approvals: Approvals.layer(),
  breaker: Breaker.layer(),
  budget: Layer.mergeAll(
    Budget.layer({ tokens: much, costUsd: much, turns: much, calls: much }),
    Prices.layer({ maintained: false, table: { "bench/model": { input: 1, output: 1 } } }),
    Layer.succeed(ModelInfo.ModelInfo, { provider: "bench", model: "model", window: 200_000, maxOutput: 1000 })
  ),
  loopGuard: LoopGuard.layer(),
  permissions: Permissions.layer({
    rules: [
      { action: "deny", tools: [Add.name], when: { a: { min: much } } },
      { action: "allow", tools: [Add.name] }
    ]
  }).pipe(Layer.provide(NodeServices.layer)),
  quota: Quota.layer({ turns: much }).pipe(
    Layer.provide(RateLimiter.layer.pipe(Layer.provide(RateLimiter.layerStoreMemory)))
  ),
  sanitizer: Sanitizer.layer()
}

const { approvals, breaker, budget, loopGuard, permissions, quota, sanitizer } = policies

export const layers = {
  none: Layer.empty,
  ...policies,
  all: Layer.mergeAll(approvals, breaker, budget, loopGuard, permissions, quota, sanitizer)
}

export type Policy = keyof typeof layers
