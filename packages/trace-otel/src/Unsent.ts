/**
 * Notes in a KeyValueStore which Runs have segments that no back end has taken yet, so that the next process that drives one of
 * them sends what a dead one could not.
 *
 * A note is one number: all segments that end at or before that event of the Run were taken, or dropped by the sampler. It is
 * written when the Run begins to work here, and removed when all of it was taken: who finds one of another process does not know
 * what arrived after that event, and sends it again with the same ids.
 *
 * Invariants
 *   U1  A segment that was not taken is noted, from before it ends until it was taken.
 *   U2  Without the notes nothing but that promise is lost: a Run never waits for them to work, nor fails with them.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as KeyValueStore from "effect/persistence/KeyValueStore"
import { hash } from "node:crypto"

export interface Unsent {
  /** Up to where a Run was sent by others, if somebody else has left something unsent. */
  readonly left: (runId: string) => Effect.Effect<number | undefined>
  /** The Run goes on here after that event. */
  readonly begin: (runId: string, after: number) => Effect.Effect<void>
  /** All up to that event was taken. */
  readonly taken: (runId: string, upTo: number) => Effect.Effect<void>
}

/** Remembers nothing. */
export const nowhere: Unsent = {
  left: () => Effect.succeed(undefined),
  begin: () => Effect.void,
  taken: () => Effect.void
}

/** Run ids may be longer than a file's name, and hold what none may. */
const keyOf = (runId: string): string => `trace-${hash("sha256", runId).slice(0, 40)}`

type Failure = KeyValueStore.KeyValueStoreError

const ignored = <A>(effect: Effect.Effect<A, Failure>): Effect.Effect<A | undefined> =>
  Effect.catchTag(effect, "KeyValueStoreError", (error) =>
    Effect.as(Effect.logWarning("What of a trace was not sent yet could not be noted, or read.", error), undefined)
  )

const quietly = (effect: Effect.Effect<void, Failure>): Effect.Effect<void> => Effect.asVoid(ignored(effect))

export const make = (notes: KeyValueStore.KeyValueStore): Unsent => {
  /** After which event each Run began to work here: what is noted by this process itself is on its way. */
  const here = new Map<string, number>()
  return {
    left: (runId) =>
      Effect.suspend(() => {
        if (here.has(runId)) return Effect.succeed(undefined)
        return Effect.map(notes.get(keyOf(runId)), (note) => {
          const after = Number(note)
          return note === undefined ? undefined : Number.isSafeInteger(after) ? after : 0
        })
      }).pipe(ignored),
    begin: (runId, after) =>
      Effect.suspend(() => {
        const known = here.has(runId)
        here.set(runId, after)
        if (known) return Effect.void
        // What another process has left stays noted until it was taken.
        return Effect.flatMap(notes.get(keyOf(runId)), (note) =>
          note === undefined ? notes.set(keyOf(runId), String(after)) : Effect.void
        )
      }).pipe(quietly),
    taken: (runId, upTo) =>
      Effect.suspend(() => {
        const began = here.get(runId)
        if (began !== undefined && began >= upTo) return notes.set(keyOf(runId), String(upTo))
        here.delete(runId)
        return notes.remove(keyOf(runId))
      }).pipe(quietly)
  }
}
