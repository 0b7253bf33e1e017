/**
 * Gives every question to a store a time limit, so that one that never answers is one that is away.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { CheckpointStore } from "./CheckpointStore.ts"
import { within } from "./Interruption.ts"
import { StoreUnavailable } from "./RunError.ts"

/** How long a store may take to answer (SPEC 6). No option of a store can make it longer. */
export const answerTime = Duration.seconds(5)

/** An effect of a store that fails with StoreUnavailable when it takes too long. */
export const limited = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | StoreUnavailable, R> =>
  within(
    effect,
    answerTime,
    Effect.failSync(() => new StoreUnavailable({ detail: `no answer within ${Duration.format(answerTime)}` }))
  )

/** The same store, its answers limited. */
export const bounded = (store: CheckpointStore["Service"]): CheckpointStore["Service"] =>
  CheckpointStore.of({
    ...store,
    append: (request) => limited(store.append(request)),
    read: (runId, range) => limited(store.read(runId, range)),
    head: (runId) => limited(store.head(runId)),
    claim: (request) => limited(store.claim(request)),
    renew: (request) => limited(store.renew(request)),
    release: (request) => limited(store.release(request)),
    list: (filter, page) => limited(store.list(filter, page)),
    remove: (runId, expectedSeq) => limited(store.remove(runId, expectedSeq))
  })

/** The store of the context, its answers limited. */
export const boundedStore: Effect.Effect<CheckpointStore["Service"], never, CheckpointStore> = CheckpointStore.use(
  (store) => Effect.succeed(bounded(store))
)
