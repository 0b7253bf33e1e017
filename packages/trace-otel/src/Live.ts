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
import type { Unsent } from "./Unsent.ts"
import type { Writing } from "./Writing.ts"

export interface Parts {
  readonly store: CheckpointStore.CheckpointStore["Service"]
  readonly writing: Writing
  readonly sampler: Sampler
  readonly traces: Traces
  readonly held: Held
  readonly unsent: Unsent
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
  /** It is not the first that was seen of the Run, or not from its beginning. */
  later: boolean
  /** The Run has called sub-agents. */
  calls: boolean
  /** Another process has left unsent what came after this event. */
  after: number | undefined
}

const unread = (error: Entries.ReadError): Effect.Effect<void> =>
  Effect.logWarning("A trace could not be read from its journal; the Run goes on.", error)

const ignoring = (effect: Effect.Effect<void, Entries.ReadError>): Effect.Effect<void> =>
  Effect.catchTag(effect, ["StoreUnavailable", "StoreCorrupt", "CheckpointCorrupt", "CheckpointTooNew"], unread)

export const observer = (parts: Parts): Observer.Observer => ({
  name: "waystone-trace",
  attempt: ({ runId }) =>
    Effect.gen(function* () {
      const folding = new Folding(runId, parts.writing)
      const after = yield* parts.unsent.left(runId)
      const followed: Followed = { folding, spans: [], cut: false, open: false, later: false, calls: false, after }
      yield* Effect.addFinalizer(() => Effect.sync(() => forget(parts, followed)))
      return (entry: Observer.Entry) =>
        Effect.suspend(() =>
          entry.seq === followed.folding.seq + 1
            ? here(parts, followed, entry)
            : Effect.andThen(
                catchUp(parts, followed, entry),
                Effect.suspend(() => here(parts, followed, entry))
              )
        ).pipe(ignoring)
    }),
  ended: (runId) => ignoring(endedOutside(parts, runId))
})

/** Takes the next event; notes first that there will be something to send, where that begins. */
const here = (parts: Parts, followed: Followed, entry: Observer.Entry): Effect.Effect<void> => {
  const wasOpen = followed.open
  next(parts, followed, entry)
  if (wasOpen || !followed.open || followed.folding.head.parent !== undefined) return Effect.void
  return parts.unsent.begin(followed.folding.runId, entry.seq - 1)
}

/** A Run that rested was ended, and those below it: nobody drove them, so nobody saw it. */
const endedOutside = (parts: Parts, runId: string): Effect.Effect<void, Entries.ReadError> =>
  Effect.gen(function* () {
    const runs = yield* Segments.tree(parts, runId)
    for (const { last } of runs)
      if (last?.entry.epoch === 0 && last.taken.ended?.final === true)
        parts.measure(last.entry, last.folding, last.taken)
    const root = runs.at(-1)
    if (root?.last?.taken.ended !== undefined)
      parts.traces.send(runId, root.folding.seq, yield* parts.unsent.left(runId))
  })

/** Reads what came before this attempt, or what the observer was too slow for. */
const catchUp = (parts: Parts, followed: Followed, { seq }: Observer.Entry): Effect.Effect<void, Entries.ReadError> => {
  if (seq <= followed.folding.seq) return Effect.void
  const { runId, seq: seen } = followed.folding
  if (seen === 0) {
    return Effect.map(Segments.fold(parts, runId, seq - 1), ({ children, folding, open, segments }) => {
      const { head, traceId } = folding
      followed.folding = folding
      followed.calls = children.size > 0
      followed.later = head.attempts > 0
      const last = segments.at(-1)
      // Of a tree, the journals tell when the segment has ended; of a Run alone, this one.
      const sent = last === undefined || parts.sampler(traceId, last.faults) || head.parent !== undefined
      keep(parts, followed, [...(sent ? [] : segments.flatMap(({ spans }) => spans)), ...open])
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
  if (taken.forked === true) {
    drop(parts, followed)
    followed.calls = false
  }
  followed.calls ||= entry.event._tag === "ToolCallStarted" && entry.event.child !== undefined
  keep(parts, followed, taken.spans)
  if (!followed.open && entry.epoch > 0 && folding.head.attempts > 0 && taken.ended === undefined) {
    followed.open = true
    enter(parts, folding)
  }
  if (taken.ended !== undefined) decide(parts, followed, entry.seq)
}

const enter = ({ traces }: Parts, { head, runId, traceId }: Folding): void =>
  traces.enter(runId, traceId, head.parent === undefined)

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
  if (followed.open) parts.traces.leave(followed.folding.runId)
}

const decide = (parts: Parts, followed: Followed, upTo: number): void => {
  const { after, calls, folding, later, spans } = followed
  // What is left of before is read with it, from the journals.
  const cut = followed.cut || after !== undefined
  const { faults, head, runId } = folding
  if (!followed.open) enter(parts, folding)
  followed.open = false
  const rootId = head.parent?.rootId ?? runId
  const kept = parts.sampler(folding.traceId, faults)
  parts.traces.leave(runId, { runId, rootId, upTo, faults, spans: cut ? undefined : spans, later, calls, after })
  if (cut) parts.held.give(spans.length)
  followed.after = undefined
  followed.spans = []
  // What is dropped now is asked for again if a later segment is worth it: it is read from the journal then.
  followed.cut = head.parent === undefined && !kept
  followed.later = true
}
