/**
 * Makes every operation of a store take time: the fiber yields before and after it.
 *
 * A store in memory answers at once, which hides what happens while an append is under way (FACTS 12).
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { CheckpointStore } from "../CheckpointStore.ts"
import * as WrappedStore from "./WrappedStore.ts"

/** The same store, yielding `times` before and after every operation. Default 1. */
export const make = (store: CheckpointStore["Service"], times = 1): CheckpointStore["Service"] => {
  const pause = Effect.repeat(Effect.yieldNow, { times: times - 1 })
  return WrappedStore.make(store, (operation) => Effect.ensuring(Effect.andThen(pause, operation), pause))
}
