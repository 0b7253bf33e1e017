/**
 * Tells time that is measured: it stands where the wall clock stood when it was made, and goes on by the monotonic clock.
 *
 * A wall clock that is set, back or forward, does not move it, so two readings always differ by what passed between them.
 * While a computer sleeps it stands still. Times that others compare with their own clock (`wakeAt`, `expiresAt`, the date of
 * a Retry-After) come from the wall clock instead.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** Epoch ms, whole, never less than the reading before. */
export type SteadyTime = () => number

const nanosPerMilli = 1_000_000n

/** A steady time that begins now, and the wall clock beside it. */
export const make: Effect.Effect<{ readonly now: SteadyTime; readonly wall: () => number }> = Effect.map(
  Clock.Clock,
  (clock) => {
    const wall = () => clock.currentTimeMillisUnsafe()
    const start = wall()
    const began = clock.monotonicTimeNanosUnsafe()
    return { wall, now: () => start + Number((clock.monotonicTimeNanosUnsafe() - began) / nanosPerMilli) }
  }
)
