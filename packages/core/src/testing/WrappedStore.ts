/**
 * Wraps every operation of a store in one place, to inject faults: a store that is slow, away, or counts what is asked of it.
 *
 * @example
 * // Every third operation finds the store away.
 * const flaky = Effect.map(MemoryStore.make, (store) => {
 *   let count = 0
 *   return WrappedStore.make(store, (operation, name) =>
 *     Effect.suspend(() =>
 *       ++count % 3 === 0 ? Effect.fail(new RunError.StoreUnavailable({ detail: `no ${name} now` })) : operation
 *     )
 *   )
 * })
 * const layer = Layer.effect(CheckpointStore.CheckpointStore, flaky)
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import { CheckpointStore, type StoreError } from "../CheckpointStore.ts"

/** Runs one operation in another way: not at all, later, twice, or with another end. It may fail as a store may. */
export type Wrap = <A>(operation: Effect.Effect<A, StoreError>, name: Operation) => Effect.Effect<A, StoreError>

/** The operations of a store. `watch` is a hint and is left out. */
export type Operation = Exclude<keyof CheckpointStore["Service"], "watch">

/** A store without `watch` whose operations are all wrapped. */
export const make = (store: CheckpointStore["Service"], wrap: Wrap): CheckpointStore["Service"] =>
  CheckpointStore.of({
    append: (request) => wrap(store.append(request), "append"),
    read: (runId, range) => wrap(store.read(runId, range), "read"),
    head: (runId) => wrap(store.head(runId), "head"),
    claim: (request) => wrap(store.claim(request), "claim"),
    renew: (request) => wrap(store.renew(request), "renew"),
    release: (request) => wrap(store.release(request), "release"),
    list: (filter, page) => wrap(store.list(filter, page), "list"),
    remove: (runId, expectedSeq) => wrap(store.remove(runId, expectedSeq), "remove")
  })
