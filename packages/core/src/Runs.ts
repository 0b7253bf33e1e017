/**
 * Looks at stored Runs, and forks them.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Approval from "./Approval.ts"
import { boundedStore } from "./Bounded.ts"
import type { CheckpointStore, Filter, StoreError } from "./CheckpointStore.ts"
import * as Input from "./Input.ts"
import * as Listed from "./Listed.ts"
import { headRow, type ReadError, readEvents } from "./Journal.ts"
import { type Draft, stamp } from "./RunEvent.ts"
import type { Waiting } from "./Outcome.ts"
import * as Outcomes from "./Outcomes.ts"
import * as Outside from "./Outside.ts"
import * as Pending from "./Pending.ts"
import {
  CheckpointNotFound,
  type EncodeFailed,
  type InputInvalid,
  type Lift,
  lift,
  RunExists,
  type RunIdInvalid,
  type RunNotFound
} from "./RunError.ts"
import * as RunEvent from "./RunEvent.ts"
import type { Head, Status } from "./RunHead.ts"
import * as RunState from "./RunState.ts"
import { storable } from "./Storable.ts"
import * as Stored from "./Stored.ts"
import { defined } from "./Defined.ts"

/** What is known of a Run without reading its events. */
export interface RunInfo extends Omit<Head, "waits" | "paused" | "retry"> {
  readonly runId: string
  readonly seq: number
  /** Who drives it, if anybody does. */
  readonly owner?: string
  /** Of a running Run: what it does. */
  readonly phase?: "planning" | "thinking" | "acting"
  /** Everything that it waits for, with age: no silent stalls. */
  readonly waiting: ReadonlyArray<Waiting>
}

const info = ({ entry, head }: Listed.Listed, state?: RunState.RunState): RunInfo => {
  const { paused: _paused, retry: _retry, waits: _waits, ...rest } = head
  const phase = head.turnOpen ? "thinking" : head.open.length > 0 ? "acting" : "planning"
  return {
    ...rest,
    runId: entry.runId,
    seq: entry.seq,
    waiting: Outcomes.waiting(head, state),
    ...(entry.live && entry.owner !== undefined ? { owner: entry.owner } : undefined),
    ...(head.status === "running" ? { phase } : undefined)
  }
}

/** What is known of one Run; of one that waits for calls, with their arguments. */
export const get = (runId: string): Effect.Effect<RunInfo, Lift<ReadError | RunNotFound>, CheckpointStore> =>
  lift(
    Effect.gen(function* () {
      const seen = yield* Outside.look(runId)
      if (seen.head.waits.length === 0) return info(seen)
      const found = info(seen, yield* Stored.load(runId, seen.entry.seq))
      return { ...found, waiting: yield* Pending.described(runId, found.waiting) }
    })
  )

export interface ListInput {
  readonly status?: Status | ReadonlyArray<Status>
  readonly waiting?: Waiting["kind"]
  readonly agent?: string
  readonly session?: string
  /** The Runs of this parent; `null` for roots only. */
  readonly parent?: string | null
  /** At most this many: a whole number from 1. Default 100. */
  readonly limit?: number
  /** The last one of the page before; `updatedAt` is finite. */
  readonly after?: { readonly runId: string; readonly updatedAt: number }
}

/**
 * A page of Runs, the ones that nothing happened to for the longest time first. One that is damaged is left out and named in
 * a warning; `get` says what is wrong with it. Fails with InputInvalid, which names the field, if `limit` or `after` is none.
 */
export const list = (
  input: ListInput = {}
): Effect.Effect<ReadonlyArray<RunInfo>, Lift<StoreError | InputInvalid>, CheckpointStore> => {
  const { after, agent, limit = 100, status, ...rest } = input
  const page = { limit, ...defined({ after }) }
  const filter: Filter = {
    ...rest,
    ...(status === undefined ? undefined : { status: typeof status === "string" ? [status] : status }),
    ...(agent === undefined ? undefined : { agent: [agent] })
  }
  return lift(
    Effect.gen(function* () {
      yield* Listed.checked("Run.list", page)
      const found = yield* Listed.page(yield* boundedStore, filter, page)
      return found.map((one) => info(one))
    })
  )
}

/** The positions that a Run can be forked at: the ends of its appends. */
export const checkpoints = (
  runId: string
): Effect.Effect<ReadonlyArray<number>, Lift<ReadError | RunNotFound>, CheckpointStore> =>
  lift(
    Effect.gen(function* () {
      const { entry } = yield* Outside.look(runId)
      const ends: Array<number> = []
      const each = ({ seq }: { readonly seq: number }, end: boolean) => {
        if (end) ends.push(seq)
      }
      yield* readEvents(yield* boundedStore, runId, { after: 0, seq: entry.seq, each })
      return ends
    })
  )

export interface ForkInput {
  readonly runId: string
  /** The id of the new Run. */
  readonly id: string
  /** The end of an append. Default: the last one. */
  readonly at?: number
  /** What the new Run belongs to, as in `start`: its working folder, say, if that is another one. Default: the original's. */
  readonly session?: string
}

/**
 * Makes a Run of its own from the first `at` events of another. Nothing is decided anew: calls that had started are in
 * doubt in the fork, since its keys differ; decisions made later do not come along (RI-064).
 */
export const fork = (
  input: ForkInput
): Effect.Effect<
  string,
  Lift<ReadError | EncodeFailed | RunIdInvalid | RunNotFound | RunExists | CheckpointNotFound>,
  CheckpointStore
> =>
  lift(
    Effect.gen(function* () {
      const { id, runId } = input
      yield* Input.runId(id)
      const store = yield* boundedStore
      const { entry } = yield* Outside.look(runId)
      const at = input.at ?? entry.seq
      if (!Number.isInteger(at) || at < 1 || at > entry.seq) return yield* new CheckpointNotFound({ runId, at })
      const events: Array<RunEvent.RunEvent> = []
      let whole = false
      const each = ({ event }: { readonly event: RunEvent.RunEvent }, ends: boolean) => {
        events.push(event)
        whole = ends
      }
      yield* readEvents(store, runId, { after: 0, seq: at, each })
      if (!whole) return yield* new CheckpointNotFound({ runId, at })
      const now = yield* Clock.currentTimeMillis
      const forked: Draft = { _tag: "RunForked", from: { runId, seq: at }, ...defined({ session: input.session }) }
      yield* storable(forked)
      events.push(stamp(forked, now))
      for (const draft of yield* doubts(RunState.fromEvents(events))) events.push(stamp(draft, now))
      const { head } = RunState.fromEvents(events)
      const bodies = events.map(RunEvent.encode)
      const result = yield* store.append({ runId: id, epoch: 0, expectedSeq: 0, events: bodies, head: headRow(head) })
      return result._tag === "Committed" ? id : yield* new RunExists({ runId: id })
    })
  )

const doubts = ({ calls }: RunState.RunState): Effect.Effect<ReadonlyArray<Draft>> =>
  Effect.forEach(
    // A sub-agent's Run belongs to the original, whether it waits or may go on.
    calls.filter(
      ({ child, status }) =>
        status === "started" || status === "child" || (status === "approved" && child !== undefined)
    ),
    (call) =>
      Effect.map(Approval.doubtDigest(call), (digest): Draft => {
        const { callId, name } = call
        return { _tag: "CallInDoubt", callId, name, digest }
      })
  )
