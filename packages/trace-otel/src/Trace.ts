/**
 * Rebuilds the trace of a stored Run from its journal: the same ids, names, attributes and times as live.
 *
 * @since 0.1.0
 */
import { CheckpointStore, RunError } from "@waystone/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Entries from "./Entries.ts"
import type { FinishedSpan } from "./FinishedSpan.ts"
import { Folding } from "./Folding.ts"
import type { ExportFailed } from "./ExportFailed.ts"
import * as Writing from "./Writing.ts"

export { ExportFailed } from "./ExportFailed.ts"
export type { Attributes, FinishedSpan, SpanEvent, SpanLink, Value } from "./FinishedSpan.ts"
export type { ReadError } from "./Entries.ts"

/** The spans of a Run that have ended, children before their parents. Of one that rests, its attempts so far. */
export const spans = (
  runId: string,
  options: Writing.Options = {}
): Effect.Effect<
  ReadonlyArray<FinishedSpan>,
  Entries.ReadError | RunError.RunNotFound,
  CheckpointStore.CheckpointStore
> => Effect.map(folded(runId, Writing.make(options)), (found) => found.spans)

const folded = (runId: string, writing: Writing.Writing) =>
  Effect.gen(function* () {
    const store = yield* CheckpointStore.CheckpointStore
    const folding = new Folding(runId, writing)
    let spans: Array<FinishedSpan> = []
    const seen = yield* Entries.read(store, runId, {
      each: (entry) => {
        const taken = folding.take(entry)
        spans = taken.forked === true ? [] : spans
        for (const span of taken.spans) spans.push(span)
      }
    })
    return seen === 0 ? yield* new RunError.RunNotFound({ runId }) : { spans, folding }
  })

/** Takes spans and says whether they have arrived. */
export interface Destination {
  readonly writing: Writing.Writing
  /** Fails if they were refused, or nobody was there. */
  readonly send: (spans: ReadonlyArray<FinishedSpan>) => Effect.Effect<void, ExportFailed>
}

/** Where traces go: OtelTrace provides it. */
export class TraceDestination extends Context.Service<TraceDestination, Destination>()(
  "@waystone/trace-otel/TraceDestination"
) {}

/**
 * Sends the trace of a stored Run, whatever was sampled or lost before, and says how many spans it has. Sending again does no
 * harm: the ids are the same. Fails with ExportFailed if it did not arrive.
 */
export const exportRun = (
  runId: string
): Effect.Effect<
  number,
  Entries.ReadError | RunError.RunNotFound | ExportFailed,
  CheckpointStore.CheckpointStore | TraceDestination
> =>
  Effect.gen(function* () {
    const { send, writing } = yield* TraceDestination
    const { spans } = yield* folded(runId, writing)
    yield* send(spans)
    return spans.length
  })

export { exportRun as export }
