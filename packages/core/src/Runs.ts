/**
 * Looks at stored Runs, forks them and removes them.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Approval from "./Approval.ts"
import { boundedStore } from "./Bounded.ts"
import type { CheckpointStore, Entry, Filter, StoreError } from "./CheckpointStore.ts"
import * as Input from "./Input.ts"
import * as Listed from "./Listed.ts"
import { headRow, type ReadError, readEvents } from "./Journal.ts"
import { type Draft, stamp } from "./RunEvent.ts"
import type { Waiting } from "./Outcome.ts"
import * as Outcomes from "./Outcomes.ts"
import * as Outside from "./Outside.ts"
import {
  CheckpointNotFound,
  type EncodeFailed,
  type InputInvalid,
  type Lift,
  lift,
  RunExists,
  type RunIdInvalid,
  type RunNotFound,
  RunNotTerminal
} from "./RunError.ts"
import * as RunEvent from "./RunEvent.ts"
import { type Head, isTerminal, type Status } from "./RunHead.ts"
import * as RunState from "./RunState.ts"
import { storable } from "./Storable.ts"
import * as Stored from "./Stored.ts"
import { defined } from "./Defined.ts"
import * as WorkOptions from "./WorkOptions.ts"

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
    Effect.flatMap(Outside.look(runId), (seen) =>
      seen.head.waits.length === 0
        ? Effect.succeed(info(seen))
        : Effect.map(Stored.load(runId, seen.entry.seq), (state) => info(seen, state))
    )
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
    calls.filter(({ status }) => status === "started" || status === "child"),
    (call) =>
      Effect.map(Approval.doubtDigest(call), (digest): Draft => {
        const { callId, name } = call
        return { _tag: "CallInDoubt", callId, name, digest }
      })
  )

/**
 * Removes a Run that ended; `force` removes one that waits, too, and one whose head or events are damaged, whatever its status,
 * unless somebody drives it (of which a head that cannot be read says nothing). Never a sound one that is accepted or running.
 */
export const remove = (
  runId: string,
  { force = false }: { readonly force?: boolean } = {}
): Effect.Effect<void, Lift<StoreError | RunNotFound | RunNotTerminal>, CheckpointStore> =>
  lift(
    Effect.gen(function* () {
      const store = yield* boundedStore
      if (force && (yield* removedDamaged(store, runId))) return
      while (true) {
        const { entry, head } = yield* Outside.look(runId)
        const free = isTerminal(head) || (force && head.status === "waiting")
        if (!free) return yield* new RunNotTerminal({ runId, status: head.status })
        if (yield* store.remove(runId, entry.seq)) return
      }
    })
  )

/** True if the Run was damaged, and is gone. Events are read only of one that could not be removed otherwise. */
const removedDamaged = (store: CheckpointStore["Service"], runId: string): Effect.Effect<boolean, StoreError> =>
  Effect.catchTag(
    Effect.gen(function* () {
      const entry = yield* store.head(runId)
      if (entry === undefined || entry.live) return false
      const sound = Effect.flatMap(Outside.headOf(entry), (head) =>
        isTerminal(head) || head.status === "waiting"
          ? Effect.void
          : readEvents(store, runId, { after: 0, seq: entry.seq, each: () => {} })
      )
      return yield* Effect.matchEffect(sound, {
        onSuccess: () => Effect.succeed(false),
        onFailure: (error) =>
          error._tag === "CheckpointCorrupt"
            ? store.remove(runId, entry.seq)
            : error._tag === "CheckpointTooNew"
              ? Effect.succeed(false)
              : Effect.fail(error)
      })
    }),
    "CheckpointCorrupt",
    () => store.remove(runId, "damaged")
  )

const ended: ReadonlyArray<Status> = ["completed", "stopped", "failed", "cancelled"]

/**
 * Removes Runs that ended and that nothing happened to for `olderThan`; says how many (RI-158). One that is damaged is kept
 * and named in a warning. `olderThan` goes by the caller's clock, as the times of a Run do by the clocks of those who wrote to
 * it (leases go by the store's): where clocks differ, keep more than they do. Fails with InputInvalid, and removes nothing, if
 * `olderThan` is negative, infinite or no duration.
 */
export const prune = ({
  olderThan,
  status = ended
}: {
  /** From 0. */
  readonly olderThan: Duration.Input
  /** Only these; others than the ends are ignored. */
  readonly status?: ReadonlyArray<Status>
}): Effect.Effect<number, Lift<StoreError | InputInvalid>, CheckpointStore> =>
  lift(
    Effect.gen(function* () {
      const store = yield* boundedStore
      const age = yield* WorkOptions.age("Run.prune: olderThan", olderThan)
      const updatedBefore = (yield* Clock.currentTimeMillis) - age + 1
      let removed = 0
      for (const one of ended.filter((one) => status.includes(one)))
        removed += yield* removeAll(store, { status: [one], updatedBefore })
      return removed
    })
  )

/** Page by page, from where the last page ended: what is kept is not looked at again. */
const removeAll = (store: CheckpointStore["Service"], filter: Filter): Effect.Effect<number, StoreError> =>
  Effect.gen(function* () {
    const limit = 100
    let removed = 0
    let after: Entry | undefined
    while (true) {
      const page = yield* Listed.page(store, filter, { limit, ...defined({ after }) })
      for (const { entry } of page) {
        const gone = Effect.catchTag(store.remove(entry.runId, entry.seq), "CheckpointCorrupt", ({ message }) =>
          Effect.as(Effect.logWarning(message), false)
        )
        if (yield* gone) removed++
      }
      after = page.at(-1)?.entry
      if (page.length < limit) return removed
    }
  })
