/**
 * Appends to a Run without its lease: after one read of the head, and again after each conflict.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { bounded } from "./Bounded.ts"
import { CheckpointStore, type Entry, type StoreError } from "./CheckpointStore.ts"
import { headRow, unshown } from "./Journal.ts"
import { type Draft, stamp } from "./RunEvent.ts"
import { CheckpointCorrupt, type EncodeFailed, RunNotFound } from "./RunError.ts"
import * as RunEvent from "./RunEvent.ts"
import { storable } from "./Storable.ts"
import { empty, evolveHead, type Head } from "./RunHead.ts"

/** A Run as an outside writer sees it. */
export interface Seen {
  readonly entry: Entry
  readonly head: Head
  /** By the clock of this process; epoch ms. */
  readonly now: number
}

/** What time it is for everybody who has to do with the Run: by the store's clock, where it says it. */
export const storeTime = ({ entry, now }: Pick<Seen, "entry" | "now">): number => entry.now ?? now

/** The head that a store kept; it agrees with the row beside it, since both were written as one. */
export const headOf = (entry: Entry): Effect.Effect<Head, CheckpointCorrupt> =>
  Effect.suspend(() => {
    try {
      const head: Head = JSON.parse(entry.body)
      const lists = [head.waits, head.deferred, head.open, head.messages]
      if (head.status === entry.status && lists.every(Array.isArray)) return Effect.succeed(head)
    } catch {
      // reported below
    }
    return Effect.fail(new CheckpointCorrupt({ runId: entry.runId, seq: entry.seq, path: "head" }))
  })

/** Reads a head, if there is such a Run. */
export const find = (runId: string): Effect.Effect<Seen | undefined, StoreError, CheckpointStore> =>
  Effect.gen(function* () {
    const entry = yield* bounded(yield* CheckpointStore).head(runId)
    return entry && { entry, head: yield* headOf(entry), now: yield* Clock.currentTimeMillis }
  })

/** Reads a head. */
export const look = (runId: string): Effect.Effect<Seen, StoreError | RunNotFound, CheckpointStore> =>
  Effect.flatMap(find(runId), (seen) =>
    seen === undefined ? Effect.fail(new RunNotFound({ runId })) : Effect.succeed(seen)
  )

const retries = Schedule.exponential("50 millis").pipe(Schedule.upTo({ times: 4 }))

/**
 * Appends what `decide` says, if it says anything. After a conflict or a lost answer it looks again, so `decide` must
 * say nothing where the head shows that it was done: then no event is written twice.
 */
export const append = <E, R>(
  runId: string,
  decide: (seen: Seen) => Effect.Effect<ReadonlyArray<Draft>, E, R>
): Effect.Effect<void, E | StoreError | EncodeFailed | RunNotFound, CheckpointStore | R> => {
  const once = Effect.gen(function* () {
    let refused: number | undefined
    while (true) {
      const { entry, head, now } = yield* look(runId)
      if (entry.seq === refused) return yield* unshown()
      const drafts = yield* decide({ entry, head, now })
      if (drafts.length === 0) return
      if (yield* write(runId, { seq: entry.seq, head, now, drafts })) return
      refused = entry.seq
    }
  })
  return Effect.retry(once, {
    schedule: retries,
    while: (error: E | StoreError | EncodeFailed | RunNotFound) =>
      (error as { readonly _tag?: unknown })._tag === "StoreUnavailable"
  })
}

/** Creates a Run; false if there is one of that id. */
export const create = (
  runId: string,
  drafts: ReadonlyArray<Draft>
): Effect.Effect<boolean, StoreError | EncodeFailed, CheckpointStore> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => write(runId, { seq: 0, head: empty, now, drafts }))

const write = Effect.fnUntraced(function* (
  runId: string,
  {
    drafts,
    head,
    now,
    seq
  }: { readonly seq: number; readonly head: Head; readonly now: number; readonly drafts: ReadonlyArray<Draft> }
): Effect.fn.Return<boolean, StoreError | EncodeFailed, CheckpointStore> {
  const events = yield* Effect.forEach(drafts, (draft) => Effect.as(storable(draft), stamp(draft, now)))
  const result = yield* bounded(yield* CheckpointStore).append({
    runId,
    epoch: 0,
    expectedSeq: seq,
    events: events.map(RunEvent.encode),
    head: headRow(events.reduce(evolveHead, head))
  })
  return result._tag === "Committed"
})
