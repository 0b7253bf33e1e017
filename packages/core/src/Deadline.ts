/**
 * Ends a Run whose active time is used up, whatever it is doing (RI-090). Waiting does not count.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type Attempt, limitsOf } from "./Attempt.ts"
import type { JournalError } from "./Journal.ts"
import { isEnding } from "./RunState.ts"

/** Milliseconds of active time that are left. */
export const remaining = (attempt: Attempt): number => {
  const now = attempt.now()
  const { activeAt = now, activeMs } = attempt.journal.state
  return Duration.toMillis(limitsOf(attempt).activeTime) - activeMs - Math.max(0, now - activeAt)
}

/** Stops the Run if its time is over; `phase` is what that interrupts. */
export const check = (attempt: Attempt, phase: string): Effect.Effect<boolean, JournalError> =>
  Effect.suspend(() => {
    const { journal } = attempt
    if (remaining(attempt) > 0 || isEnding(journal.state)) return Effect.succeed(false)
    const stop = { _tag: "Deadline", phase } as const
    return journal.put({ _tag: "VerdictGiven", guard: "limits", on: phase, verdict: "Stop", stop })
  })
