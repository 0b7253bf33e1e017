/** Measures how long others could not run. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

export interface Blocked {
  /** The longest time so far that nobody else could run, in ms; begins anew with each call. */
  readonly longest: () => number
}

/** Ticks every millisecond until the scope is closed. */
export const watch: Effect.Effect<Blocked, never, Scope.Scope> = Effect.gen(function* () {
  let last = performance.now()
  let longest = 0
  const tick = Effect.sync(() => {
    longest = Math.max(longest, performance.now() - last)
    last = performance.now()
  })
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep("1 millis"), tick)), { startImmediately: true })
  yield* Effect.sleep("20 millis")
  return {
    longest: () => {
      const found = Math.max(longest, performance.now() - last)
      longest = 0
      last = performance.now()
      return found
    }
  }
})
