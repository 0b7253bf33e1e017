/**
 * Makes a store lose answers: the append lands, and whoever made it is told that the store is unavailable.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { Append, CheckpointStore } from "../CheckpointStore.ts"
import { StoreUnavailable } from "../RunError.ts"

/** Says whether the answer of this append is lost. `count` counts all appends from 0, those of outside writers too. */
export type Loses = (count: number, append: Append) => boolean

/** Every k-th answer is lost, the first one being number k - 1. */
export const every =
  (k: number): Loses =>
  (count) =>
    count % k === k - 1

/** Only that answer is lost. */
export const nth =
  (n: number): Loses =>
  (count) =>
    count === n

/** The same store, losing the answers that `loses` says. */
export const make = (store: CheckpointStore["Service"], loses: Loses): CheckpointStore["Service"] => {
  let count = 0
  return {
    ...store,
    append: (append) =>
      Effect.suspend(() => {
        const lost = loses(count++, append)
        const failure = Effect.fail(new StoreUnavailable({ detail: "the answer was lost" }))
        return Effect.flatMap(store.append(append), (result) => (lost ? failure : Effect.succeed(result)))
      })
  }
}
