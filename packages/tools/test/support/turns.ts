/** Counts how often others could run, so that no test needs to measure for how long they could not. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

export interface Turns {
  /** How often another fiber that is always ready has run so far. */
  readonly taken: () => number
}

/** Counts until the scope is closed. */
export const watch: Effect.Effect<Turns, never, Scope.Scope> = Effect.gen(function* () {
  let taken = 0
  const turn = Effect.andThen(
    Effect.yieldNow,
    Effect.sync(() => taken++)
  )
  yield* Effect.forkScoped(Effect.forever(turn), { startImmediately: true })
  return { taken: () => taken }
})
