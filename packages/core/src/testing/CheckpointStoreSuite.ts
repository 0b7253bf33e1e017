/**
 * Proves that a backend keeps the contract of `CheckpointStore`, rule by rule.
 *
 * It knows no test framework and no backend. Each rule uses run ids, agents and sessions of its own, so all of them can
 * share one store, even one that holds other Runs. What a backend can do beyond the contract is declared by the caller; a
 * rule that needs more is skipped, and says which capability it wants. docs/write-a-store.md has the rules as a table.
 *
 * @example
 * CheckpointStoreSuite.register(it.live, { layer: MyStore.layer, capabilities: {} })
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { CheckpointStore } from "../CheckpointStore.ts"
import type { Capabilities, Rule, Skipped } from "./StoreRules.ts"
import * as Appends from "./StoreRulesOfAppends.ts"
import * as Contents from "./StoreRulesOfContents.ts"
import * as Damage from "./StoreRulesOfDamage.ts"
import * as Leases from "./StoreRulesOfLeases.ts"
import * as Lists from "./StoreRulesOfLists.ts"
import * as Processes from "./StoreRulesOfProcesses.ts"
import * as Removal from "./StoreRulesOfRemoval.ts"

export { type Answer, obey, type Order, type Peer } from "./StorePeer.ts"
export { Broken, type Capabilities, type Rule, type Skipped } from "./StoreRules.ts"

const all = (capabilities: Capabilities): ReadonlyArray<Rule | Skipped> =>
  [
    ...Contents.rules(capabilities),
    ...Appends.rules(capabilities),
    ...Leases.rules(capabilities),
    ...Lists.rules(capabilities),
    ...Removal.rules(capabilities),
    ...Damage.rules(capabilities),
    ...Processes.rules(capabilities)
  ].toSorted((a, b) => (a.name < b.name ? -1 : 1))

/** All rules that a store with these capabilities must keep, by number. */
export const rules = (capabilities: Capabilities = {}): ReadonlyArray<Rule> =>
  all(capabilities).filter((one) => one._tag === "Rule")

/** The rules that are not tried for want of a capability, each with its reason. */
export const skipped = (capabilities: Capabilities = {}): ReadonlyArray<Skipped> =>
  all(capabilities).filter((one) => one._tag === "Skipped")

/** Registers a test that is an Effect, with how long it may take. */
export type Test = (name: string, run: () => Effect.Effect<void, unknown>, timeoutMillis: number) => void

/** How a test framework registers tests: `it.effect` and `it.live` of `@effect/vitest` fit. Without `skip`, see `skipped`. */
export interface It extends Test {
  readonly skip?: Test
}

/** So long may a rule take: real processes on a busy machine are slow. Ms. */
const timeoutMillis = 60_000

/** Registers one test per rule, each of which builds the layer anew; a rule that is skipped bears its reason in its name. */
export const register = (
  it: It,
  {
    capabilities = {},
    layer
  }: { readonly layer: Layer.Layer<CheckpointStore, unknown>; readonly capabilities?: Capabilities }
): void => {
  for (const { name, run } of rules(capabilities)) it(name, () => Effect.provide(run, layer), timeoutMillis)
  for (const { name, reason } of skipped(capabilities)) {
    it.skip?.(`${name}: skipped, ${reason}`, () => Effect.void, timeoutMillis)
  }
}
