/**
 * Delivers what is to be exported, and comes back to the journal for what was refused.
 *
 * Invariants
 *   X1  What waits is a run id and a place in its journal: spans are kept only until they were refused once, or are too many.
 *   X2  Nothing that is to be exported is given up while the process lives, however often it is refused.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Ref from "effect/Ref"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { ExportFailed } from "./ExportFailed.ts"
import type { FinishedSpan } from "./FinishedSpan.ts"
import type { Held } from "./Held.ts"

/** Something to deliver: the spans of a segment of a Run. */
export interface Parcel {
  readonly runId: string
  /** The last event of the segment. */
  readonly upTo: number
  /** Segments that end after this event are sent with it, though they may have been taken from another process. */
  readonly after?: number
  /** Its spans, as long as there is room for them. */
  spans: ReadonlyArray<FinishedSpan> | undefined
}

export interface Options {
  readonly send: (spans: ReadonlyArray<FinishedSpan>) => Effect.Effect<void, ExportFailed>
  /** Reads a parcel's spans from the journal; of a Run that is gone, none. */
  readonly read: (parcel: Parcel) => Effect.Effect<ReadonlyArray<FinishedSpan>, unknown>
  /** All of a parcel has arrived. */
  readonly taken?: (parcel: Parcel) => Effect.Effect<void>
  readonly held: Held
  /** How long the end of the program waits for what was not taken yet. */
  readonly patience: Duration.Input
}

/** Spans in one request: the batch size of OpenTelemetry's own processors. */
const chunk = 512
/** Parcels that are taken together. */
const most = 128

/** From 200 ms, half as long again each time, up to 5 s: soon enough for a restart, rare enough for one that is overloaded. */
const pauses = Schedule.min([Schedule.exponential("200 millis", 1.5), Schedule.spaced("5 seconds")])

/** Starts delivering. What the scope's end leaves undelivered is named in a warning: the journal has it. */
export const make = (options: Options): Effect.Effect<(parcel: Parcel) => void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const queue = yield* Queue.unbounded<Parcel>()
    const open = yield* Ref.make<ReadonlyArray<Parcel>>([])
    let warned = false
    const deliver = Effect.gen(function* () {
      const parcels = yield* Queue.takeBetween(queue, 1, most)
      yield* Ref.set(open, parcels)
      // By id: what is read again may have fewer spans, where a Run was removed meanwhile.
      const sent = new Set<string>()
      const once = Effect.gen(function* () {
        const spans = (yield* collect(options, parcels)).filter(({ spanId }) => !sent.has(spanId))
        yield* sendAll(options.send, spans, (some) => {
          for (const { spanId } of some) sent.add(spanId)
        })
        warned = false
      })
      const refused = (error: unknown) =>
        Effect.suspend(() => {
          for (const parcel of parcels) release(options.held, parcel)
          if (warned) return Effect.void
          warned = true
          return Effect.logWarning("Traces are not taken; they are sent again from the journal.", error)
        })
      yield* Effect.retry(Effect.tapError(once, refused), pauses).pipe(Effect.ignore)
      const { taken } = options
      if (taken !== undefined) yield* Effect.forEach(parcels, taken, { discard: true })
      for (const parcel of parcels) release(options.held, parcel)
      yield* Ref.set(open, [])
    })
    const fiber = yield* Effect.forkDetach(Effect.forever(deliver))
    yield* Effect.addFinalizer(() => close({ fiber, open, queue }, options))
    return (parcel) => void Queue.offerUnsafe(queue, parcel)
  })

const release = (held: Held, parcel: Parcel): void => {
  held.give(parcel.spans?.length ?? 0)
  parcel.spans = undefined
}

/** A Run that is damaged keeps nobody else's spans back: it is named, and `Trace.export` says what is wrong with it. */
const collect = ({ read }: Options, parcels: ReadonlyArray<Parcel>) =>
  Effect.map(
    Effect.forEach(parcels, (parcel) =>
      parcel.spans === undefined
        ? Effect.catchIf(read(parcel), isDamaged, (error) =>
            Effect.as(Effect.logWarning(`The trace of the Run ${parcel.runId} cannot be read.`, error), [])
          )
        : Effect.succeed(parcel.spans)
    ),
    (spans) => spans.flat()
  )

const isDamaged = (error: unknown): boolean =>
  typeof error === "object" &&
  error !== null &&
  "_tag" in error &&
  (error._tag === "CheckpointCorrupt" || error._tag === "CheckpointTooNew")

/**
 * Sends spans in requests of at most `chunk`; of what a back end says that it is too large, each half by itself, and a span that
 * is too large alone goes nowhere, which a warning says.
 */
export const sendAll = (
  send: Options["send"],
  spans: ReadonlyArray<FinishedSpan>,
  sent: (spans: ReadonlyArray<FinishedSpan>) => void = () => {}
): Effect.Effect<void, ExportFailed> =>
  Effect.gen(function* () {
    const left: Array<ReadonlyArray<FinishedSpan>> = []
    for (let at = 0; at < spans.length; at += chunk) left.push(spans.slice(at, at + chunk))
    for (let some = left.shift(); some !== undefined; some = left.shift()) {
      const refused = yield* send(some).pipe(
        Effect.as(undefined),
        Effect.catchIf(
          ({ status }) => status === tooLarge,
          (error) => Effect.succeed(error)
        )
      )
      if (refused !== undefined && some.length > 1) {
        const half = Math.ceil(some.length / 2)
        left.unshift(some.slice(0, half), some.slice(half))
        continue
      }
      if (refused !== undefined)
        yield* Effect.logWarning(`A span is too large for the back end: ${some[0]?.name}.`, refused)
      sent(some)
    }
  })

/** RFC 9110, 15.5.14. */
const tooLarge = 413

const close = (
  {
    fiber,
    open,
    queue
  }: {
    readonly fiber: Fiber.Fiber<unknown, unknown>
    readonly open: Ref.Ref<ReadonlyArray<Parcel>>
    readonly queue: Queue.Queue<Parcel>
  },
  { patience }: Options
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const left = Effect.gen(function* () {
      return (yield* Queue.size(queue)) + (yield* Ref.get(open)).length
    })
    const done = Effect.repeat(left, { until: (count) => count === 0, schedule: Schedule.spaced("20 millis") })
    yield* Effect.timeoutOption(done, patience)
    yield* Fiber.interrupt(fiber)
    const missing = [...(yield* Ref.get(open)), ...(yield* Queue.clear(queue))].map(({ runId }) => runId)
    if (missing.length === 0) return
    const named = [...new Set(missing)]
    const waited = Duration.format(Duration.fromInputUnsafe(patience))
    yield* Effect.logWarning(
      `The traces of ${named.length} Runs were not taken in ${waited}; Trace.export sends them: ` +
        named.slice(0, 10).join(", ")
    )
  })
