/**
 * Knows which calls run, so that a long one can be shown as such.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { StillRunning, Update } from "./Shown.ts"

/** A person wonders after so long: then it is said, and again each time that so much more has passed. */
export const patience = Duration.seconds(10)

export interface Running {
  readonly note: (update: Update) => void
  /** The calls that have run for at least half of that. */
  readonly long: Effect.Effect<ReadonlyArray<StillRunning>>
}

export const make: Effect.Effect<Running> = Effect.map(Clock.Clock, (clock) => {
  const started = new Map<string, { readonly name: string; readonly at: number }>()
  const now = () => clock.currentTimeMillisUnsafe()
  return {
    note: (update) => {
      if (update._tag === "CallStarted") started.set(update.callId, { name: update.name, at: now() })
      if (update._tag === "Committed" && update.event._tag === "ToolCallCompleted") started.delete(update.event.callId)
    },
    long: Effect.sync(() =>
      [...started]
        .map(([callId, { at, name }]) => {
          const seconds = Math.round((now() - at) / 1000)
          return { _tag: "StillRunning", callId, name, seconds } as const
        })
        .filter(({ seconds }) => seconds >= Duration.toSeconds(patience) / 2)
    )
  }
})
