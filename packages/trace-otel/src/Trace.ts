/**
 * Rebuilds the trace of a stored Run from its journal: the same ids, names, attributes and times as live.
 *
 * @since 0.1.0
 */
import { CheckpointStore, RunError } from "@waystone/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { enclosing } from "./Enclosing.ts"
import type * as Entries from "./Entries.ts"
import type { FinishedSpan } from "./FinishedSpan.ts"
import * as Segments from "./Segments.ts"
import { sendAll } from "./Sender.ts"
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
> =>
  Effect.gen(function* () {
    const store = yield* CheckpointStore.CheckpointStore
    const runs = yield* runsOf({ store, writing: Writing.make(options) }, runId)
    const ids = new Set(
      runs
        .slice(-1)
        .flatMap(spansOf)
        .map(({ spanId }) => spanId)
    )
    return enclosing(runs.flatMap(spansOf)).filter(({ spanId }) => ids.has(spanId))
  })

/** A Run, the last, and all Runs below it, which tell until when a lost call of it lived. */
const runsOf = (parts: Parameters<typeof Segments.tree>[0], runId: string) =>
  Effect.filterOrFail(
    Segments.tree(parts, runId),
    (runs) => runs.at(-1)?.folding.seq !== 0,
    () => new RunError.RunNotFound({ runId })
  )

const spansOf = ({ open, segments }: Segments.Folded): ReadonlyArray<FinishedSpan> => [
  ...segments.flatMap(({ spans }) => spans),
  ...open
]

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
 * The spans of a Run and of all Runs below it, each as `spans` gives them: those below first, the Run's own last.
 */
export const tree = (
  runId: string,
  options: Writing.Options = {}
): Effect.Effect<
  ReadonlyArray<FinishedSpan>,
  Entries.ReadError | RunError.RunNotFound,
  CheckpointStore.CheckpointStore
> => below(runId, Writing.make(options))

const below = (runId: string, writing: Writing.Writing) =>
  Effect.gen(function* () {
    const store = yield* CheckpointStore.CheckpointStore
    return enclosing((yield* runsOf({ store, writing }, runId)).flatMap(spansOf))
  })

/**
 * Sends the trace of a stored Run, with all Runs below it, whatever was sampled or lost before, and says how many spans it has.
 * Sending again does no harm: the ids are the same. Fails with ExportFailed if it did not arrive.
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
    const spans = yield* below(runId, writing)
    yield* sendAll(send, spans)
    return spans.length
  })

export { exportRun as export }
