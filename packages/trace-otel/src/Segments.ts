/**
 * Knows which spans of a Run are still to be sent: those since the last segment that was kept.
 *
 * A segment ends where a Run rests or ends. Nobody remembers which ones were sent: the sampler decides by the journal alone,
 * so whoever folds it knows. A segment that was dropped is still to be sent when a later one makes the Run worth keeping, and so
 * is one whose process died.
 *
 * @since 0.1.0
 */
import type { CheckpointStore } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Entries from "./Entries.ts"
import type { FinishedSpan } from "./FinishedSpan.ts"
import { Folding } from "./Folding.ts"
import type { Sampler } from "./Sampling.ts"
import type { Writing } from "./Writing.ts"

export interface Source {
  readonly store: CheckpointStore.CheckpointStore["Service"]
  readonly writing: Writing
  readonly sampler: Sampler
}

/** A Run folded up to `upTo`, and the spans that were not sent before the event `now`. */
export const unsent = (
  { sampler, store, writing }: Source,
  runId: string,
  { now, upTo }: { readonly upTo: number; readonly now: number }
): Effect.Effect<{ readonly folding: Folding; readonly spans: ReadonlyArray<FinishedSpan> }, Entries.ReadError> =>
  Effect.suspend(() => {
    const folding = new Folding(runId, writing)
    let spans: Array<FinishedSpan> = []
    const each: Parameters<typeof Entries.read>[2]["each"] = (entry) => {
      const taken = folding.take(entry)
      if (taken.forked === true) spans = []
      for (const span of taken.spans) spans.push(span)
      if (taken.ended !== undefined && entry.seq < now && sampler(folding.traceId, folding.faults)) spans = []
    }
    return Effect.map(Entries.read(store, runId, { upTo, each }), () => ({ folding, spans }))
  })
