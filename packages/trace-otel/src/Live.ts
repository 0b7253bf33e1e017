/**
 * Observes Runs while they are driven, and exports each segment when it has ended and is worth keeping.
 *
 * Invariants
 *   L1  What is exported is what `Trace.spans` gives: it is the same fold, of the same events.
 *   L2  Whole traces or nothing: a segment is exported with all that was not exported before it, or not at all.
 *   L3  Memory is bounded however many Runs are open: spans that there is no room for are read again from the journal.
 *
 * @since 0.1.0
 */
import { type CheckpointStore, type Observer } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Entries from "./Entries.ts"
import type { FinishedSpan } from "./FinishedSpan.ts"
import { Folding, type Taken } from "./Folding.ts"
import type { Held } from "./Held.ts"
import type { Sampler } from "./Sampling.ts"
import * as Segments from "./Segments.ts"
import type { Traces } from "./Traces.ts"
import type { Writing } from "./Writing.ts"

export interface Parts {
  readonly store: CheckpointStore.CheckpointStore["Service"]
  readonly writing: Writing
  readonly sampler: Sampler
  readonly traces: Traces
  readonly held: Held
  /** Counts what happened; `taken` are the spans that it made. */
  readonly measure: (entry: Observer.Entry, folding: Folding, taken: Taken) => void
}

/** What is known of a Run while it is driven here. */
interface Followed {
  folding: Folding
  spans: Array<FinishedSpan>
  /** There was no room for all of them. */
  cut: boolean
  /** A segment is under way. */
  open: boolean
}

export const observer = (parts: Parts): Observer.Observer => ({
  name: "waystone-trace",
  attempt: ({ runId }) =>
    Effect.gen(function* () {
      const followed: Followed = { folding: new Folding(runId, parts.writing), spans: [], cut: false, open: false }
      yield* Effect.addFinalizer(() => Effect.sync(() => forget(parts, followed)))
      return (entry: Observer.Entry) =>
        Effect.suspend(() =>
          entry.seq === followed.folding.seq + 1
            ? Effect.sync(() => next(parts, followed, entry))
            : Effect.andThen(
                catchUp(parts, followed, entry),
                Effect.sync(() => next(parts, followed, entry))
              )
        ).pipe(Effect.catchTag(["StoreUnavailable", "StoreCorrupt", "CheckpointCorrupt", "CheckpointTooNew"], unread))
    })
})

const unread = (error: Entries.ReadError): Effect.Effect<void> =>
  Effect.logWarning("A trace could not be read from its journal; the Run goes on.", error)

/** Reads what came before this attempt, or what the observer was too slow for. */
const catchUp = (parts: Parts, followed: Followed, { seq }: Observer.Entry): Effect.Effect<void, Entries.ReadError> => {
  if (seq <= followed.folding.seq) return Effect.void
  const { runId, seq: seen } = followed.folding
  if (seen === 0) {
    return Effect.map(Segments.unsent(parts, runId, { upTo: seq - 1, now: seq }), ({ folding, spans }) => {
      followed.folding = folding
      keep(parts, followed, spans)
    })
  }
  const each = (entry: Observer.Entry) => next(parts, followed, entry)
  return Effect.asVoid(Entries.read(parts.store, runId, { after: seen, upTo: seq - 1, each }))
}

const next = (parts: Parts, followed: Followed, entry: Observer.Entry): void => {
  const { folding } = followed
  if (entry.seq <= folding.seq) return
  const taken = folding.take(entry)
  parts.measure(entry, folding, taken)
  if (taken.forked === true) drop(parts, followed)
  keep(parts, followed, taken.spans)
  if (!followed.open && entry.epoch > 0 && folding.head.attempts > 0 && taken.ended === undefined) {
    followed.open = true
    parts.traces.enter(folding.runId, folding.traceId)
  }
  if (taken.ended !== undefined) decide(parts, followed, entry.seq)
}

const keep = ({ held }: Parts, followed: Followed, spans: ReadonlyArray<FinishedSpan>): void => {
  if (followed.cut || spans.length === 0) return
  if (held.take(spans.length)) {
    for (const span of spans) followed.spans.push(span)
    return
  }
  held.give(followed.spans.length)
  held.cutRuns++
  followed.spans = []
  followed.cut = true
}

const drop = ({ held }: Parts, followed: Followed): void => {
  held.give(followed.spans.length)
  followed.spans = []
  followed.cut = false
}

const forget = (parts: Parts, followed: Followed): void => {
  drop(parts, followed)
  if (followed.open) parts.traces.leave(followed.folding.runId, false)
}

const decide = (parts: Parts, followed: Followed, seq: number): void => {
  const { cut, folding, spans } = followed
  const { runId } = folding
  if (!followed.open) parts.traces.enter(runId, folding.traceId)
  followed.open = false
  const kept = parts.sampler(folding.traceId, folding.faults)
  // What is dropped now is asked for again if a later segment is worth it: it is read from the journal then.
  parts.traces.leave(runId, kept, { runId, upTo: seq, spans: cut ? undefined : spans })
  followed.spans = []
  followed.cut = !kept
}
