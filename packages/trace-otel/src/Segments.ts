/**
 * Knows which spans of a Run and of all Runs below it are still to be sent: those since the last segment that was kept.
 *
 * A segment ends where a root Run rests or ends; what its sub-agents did until then is part of it. Nobody remembers which ones
 * were sent: the sampler decides by the journals alone, so whoever folds them knows. A segment that was dropped is still to be
 * sent when a later one makes the Run worth keeping, and so is one whose process died.
 *
 * Invariants
 *   G1  Whole trees or nothing: a fault of any Run of a tree keeps all of them, also what they did in earlier segments.
 *   G2  The spans of a tree come in the same order whoever reads them: Run by Run, by their ids, the root last.
 *
 * @since 0.1.0
 */
import type { CheckpointStore, Observer } from "@waystone/core"
import * as Effect from "effect/Effect"
import { enclosing } from "./Enclosing.ts"
import * as Entries from "./Entries.ts"
import { faultless, type Faults, merged } from "./Faults.ts"
import type { FinishedSpan } from "./FinishedSpan.ts"
import { Folding, type Taken } from "./Folding.ts"
import type { Sampler } from "./Sampling.ts"
import type { Writing } from "./Writing.ts"

export interface Source {
  readonly store: CheckpointStore.CheckpointStore["Service"]
  readonly writing: Writing
  readonly sampler: Sampler
}

/** What one Run did until it rested or ended. */
interface Segment {
  /** Its last event, and when that was. */
  readonly seq: number
  readonly at: number
  readonly faults: Faults
  readonly spans: ReadonlyArray<FinishedSpan>
}

export interface Folded {
  readonly folding: Folding
  readonly segments: ReadonlyArray<Segment>
  /** Spans since the last segment. */
  readonly open: ReadonlyArray<FinishedSpan>
  /** The Runs that it called, and in which of its segments each of them came to rest or to its end. */
  readonly children: ReadonlyMap<string, ReadonlyArray<number>>
  /** What the last event was, and what it made. */
  readonly last: { readonly entry: Observer.Entry; readonly taken: Taken; readonly folding: Folding } | undefined
}

/** A Run folded up to an event of it. Its spans are those since it last rested. */
export const fold = (
  { store, writing }: Pick<Source, "store" | "writing">,
  runId: string,
  upTo?: number
): Effect.Effect<Folded, Entries.ReadError> =>
  Effect.suspend(() => {
    const folding = new Folding(runId, writing)
    let segments: Array<Segment> = []
    let open: Array<FinishedSpan> = []
    let last: Folded["last"]
    const children = new Map<string, Array<number>>()
    const each: Parameters<typeof Entries.read>[2]["each"] = (entry) => {
      const { event } = entry
      const taken = folding.take(entry)
      last = { entry, taken, folding }
      if (taken.forked === true) {
        // What it inherited belongs to the trace of the original.
        open = []
        segments = []
        children.clear()
      }
      if (event._tag === "ToolCallStarted" && event.child !== undefined && !children.has(event.child.runId))
        children.set(event.child.runId, [])
      if (event._tag === "ChildSuspended") children.get(event.runId)?.push(segments.length)
      if (event._tag === "ToolCallCompleted") children.get(event.child?.runId ?? "")?.push(segments.length)
      for (const span of taken.spans) open.push(span)
      if (taken.ended === undefined) return
      segments.push({ seq: entry.seq, at: event.at, faults: folding.faults, spans: open })
      open = []
    }
    return Effect.map(Entries.read(store, runId, { each, ...(upTo === undefined ? undefined : { upTo }) }), () => ({
      folding,
      segments,
      open,
      children,
      last
    }))
  })

/**
 * The spans of a tree that the segment of its root which ends with the event `upTo` has to send: none if it is not kept.
 * `after`: nobody knows whether segments that end after that event were taken.
 */
export const unsent = (
  source: Source,
  rootId: string,
  upTo: number,
  after = Infinity
): Effect.Effect<ReadonlyArray<FinishedSpan>, Entries.ReadError> =>
  Effect.gen(function* () {
    const root = yield* fold(source, rootId, upTo)
    const rounds = root.segments.map((segment) => [segment])
    const below: Array<readonly [round: number, segment: Segment]> = []
    for (const { rounds: of, run } of yield* descendants(source, root)) {
      for (const [index, segment] of run.segments.entries()) {
        const round = of[index] ?? rounds.length
        rounds[round]?.push(segment)
        below.push([round, segment])
      }
    }
    let from = 0
    let keeps = false
    let faults = faultless
    for (const [round, segments] of rounds.entries()) {
      for (const segment of segments) faults = merged(faults, segment.faults)
      keeps = source.sampler(root.folding.traceId, faults)
      if (keeps && round < rounds.length - 1 && (root.segments[round]?.seq ?? 0) <= after) from = round + 1
    }
    if (!keeps) return []
    const now = below.filter(([round]) => round >= from && round < rounds.length).map(([, segment]) => segment)
    return enclosing([...now, ...root.segments.slice(from)].flatMap(({ spans }) => spans))
  })

/** A Run and all Runs below it, itself the last. */
export const tree = (
  source: Pick<Source, "store" | "writing">,
  runId: string
): Effect.Effect<ReadonlyArray<Folded>, Entries.ReadError> =>
  Effect.gen(function* () {
    const root = yield* fold(source, runId)
    const below = yield* descendants(source, root)
    return [...below.map(({ run }) => run), root]
  })

interface Below {
  readonly run: Folded
  /** In which segment of the root each segment of it ended. */
  readonly rounds: ReadonlyArray<number>
}

/** All Runs below one, by their ids. Some may be gone, or never have begun. */
const descendants = (
  source: Pick<Source, "store" | "writing">,
  root: Folded
): Effect.Effect<ReadonlyArray<Below>, Entries.ReadError> =>
  Effect.gen(function* () {
    const found: Array<Below> = []
    const next: Array<Below> = [{ run: root, rounds: root.segments.map((_, index) => index) }]
    while (true) {
      const parent = next.pop()
      if (parent === undefined) return found.toSorted((a, b) => byId(a.run.folding.runId, b.run.folding.runId))
      for (const [runId, seen] of parent.run.children) {
        const run = yield* fold(source, runId)
        const of = run.segments.map(({ at }, index) => within(parent.run, at, seen[index]))
        const below = { run, rounds: of.map((index) => parent.rounds[index] ?? Infinity) }
        found.push(below)
        next.push(below)
      }
    }
  })

/** In which segment of its caller a Run came to rest at a time; `seen` says it where that is the very moment of two of them. */
const within = ({ folding, segments }: Folded, time: number, seen: number | undefined): number => {
  const index = segments.findIndex(({ at }) => at >= time)
  // Who ended a Run from outside may have another clock than who drove those below it.
  if (index === -1) return folding.head.status === "waiting" ? Infinity : segments.length - 1
  return segments[index]?.at === time ? Math.max(index, seen ?? index) : index
}

export const byId = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
