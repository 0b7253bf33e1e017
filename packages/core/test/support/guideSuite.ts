/** The part of docs/write-a-store.md that registers tests. */
import { it } from "@effect/vitest"
import { CheckpointStore } from "@waystone/core"
import { AnswerLosingStore, CheckpointStoreSuite, YieldingStore } from "@waystone/core/testing"
import { Effect, Layer } from "effect"

type Store = CheckpointStore.CheckpointStore["Service"]

/** One test per rule; a rule whose capability is not given is listed as skipped, with its reason in its name. */
export const prove = (
  store: Layer.Layer<CheckpointStore.CheckpointStore, unknown>,
  capabilities: CheckpointStoreSuite.Capabilities
) => {
  CheckpointStoreSuite.register(it.live, { layer: store, capabilities })
}

/** The same store, every second answer of which is lost: all rules still hold. */
export const forgetful = (store: Effect.Effect<Store>) =>
  Layer.effect(
    CheckpointStore.CheckpointStore,
    Effect.map(store, (one) => AnswerLosingStore.make(YieldingStore.make(one), AnswerLosingStore.every(2)))
  )
