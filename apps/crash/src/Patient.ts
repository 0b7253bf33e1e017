/**
 * Asks again where a store does not answer in time: a machine that is busy with killing is no fault of the Run.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"

/** So often it asks again, half a second apart. */
export const times = 40

export const patient = <A, E extends { readonly _tag: string }, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.retry(effect, {
    while: ({ _tag }) => _tag === "Retryable",
    schedule: Schedule.spaced("500 millis").pipe(Schedule.upTo({ times }))
  })
