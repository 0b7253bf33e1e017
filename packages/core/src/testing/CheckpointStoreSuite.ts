/**
 * Proves that a backend keeps the contract of `CheckpointStore`, rule by rule.
 *
 * It knows no test framework and no backend. Each rule uses run ids, agents and sessions of its own, so all of them can
 * share one store, even one that holds other Runs.
 *
 * @example
 * CheckpointStoreSuite.register(it.live, { layer: MyStore.layer, capabilities: {} })
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { CheckpointStore } from "../CheckpointStore.ts"
import type { Capabilities, Rule } from "./StoreRules.ts"
import * as Appends from "./StoreRulesOfAppends.ts"
import * as Leases from "./StoreRulesOfLeases.ts"
import * as Lists from "./StoreRulesOfLists.ts"

export type { Capabilities, Rule } from "./StoreRules.ts"

/** All rules that a store with these capabilities must keep. */
export const rules = (capabilities: Capabilities = {}): ReadonlyArray<Rule> => [
  ...Appends.rules(capabilities),
  ...Leases.rules(capabilities),
  ...Lists.rules(capabilities)
]

/** How a test framework registers a test that is an Effect: `it.effect` and `it.live` of `@effect/vitest` fit. */
export type It = (name: string, run: () => Effect.Effect<void, unknown>) => void

/** Registers one test per rule; each builds the layer anew. */
export const register = (
  it: It,
  {
    capabilities,
    layer
  }: { readonly layer: Layer.Layer<CheckpointStore, unknown>; readonly capabilities?: Capabilities }
): void => {
  for (const { name, run } of rules(capabilities)) it(name, () => Effect.provide(run, layer))
}
