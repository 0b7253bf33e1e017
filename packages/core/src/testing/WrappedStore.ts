/**
 * Wraps every operation of a store in one place, for stores that misbehave on purpose.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import { CheckpointStore } from "../CheckpointStore.ts"

/** Runs one operation in another way. */
export type Wrap = <A, E>(operation: Effect.Effect<A, E>, name: Operation) => Effect.Effect<A, E>

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
