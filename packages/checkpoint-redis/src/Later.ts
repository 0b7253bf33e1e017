/**
 * Lets what is put right later fail without failing what has happened already.
 *
 * @since 0.1.0
 */
import type { CheckpointStore } from "@waystone/core"
import * as Effect from "effect/Effect"

/** Whether it was done. */
export const quietly = (
  what: string,
  effect: Effect.Effect<void, CheckpointStore.StoreError>
): Effect.Effect<boolean> =>
  Effect.matchEffect(effect, {
    onSuccess: () => Effect.succeed(true),
    onFailure: (error) =>
      Effect.as(Effect.logDebug(`checkpoint-redis: ${what} failed and is done later: ${error.message}`), false)
  })
