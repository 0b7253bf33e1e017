/**
 * Removes stored Runs, with the Runs of their sub-agents.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { boundedStore } from "./Bounded.ts"
import type { CheckpointStore, Entry, Filter, StoreError } from "./CheckpointStore.ts"
import { defined } from "./Defined.ts"
import * as Descendants from "./Descendants.ts"
import { type ReadError, readEvents } from "./Journal.ts"
import * as Listed from "./Listed.ts"
import * as Outside from "./Outside.ts"
import * as Route from "./Route.ts"
import {
  type EncodeFailed,
  type InputInvalid,
  type Lift,
  lift,
  type RunIsChild,
  type RunNotFound,
  RunNotTerminal
} from "./RunError.ts"
import type { Draft } from "./RunEvent.ts"
import { isTerminal, type Status } from "./RunHead.ts"
import * as Stored from "./Stored.ts"
import * as WorkOptions from "./WorkOptions.ts"

/**
 * Removes a Run that ended; `force` removes one that waits, too, and one whose head or events are damaged, whatever its status,
 * unless somebody drives it (of which a head that cannot be read says nothing). Never a sound one that is accepted or running.
 */
export const remove = (
  runId: string,
  { force = false }: { readonly force?: boolean } = {}
): Effect.Effect<void, Lift<ReadError | EncodeFailed | RunNotFound | RunNotTerminal | RunIsChild>, CheckpointStore> =>
  lift(
    Effect.gen(function* () {
      const store = yield* boundedStore
      if (force && (yield* removedDamaged(store, runId))) return yield* Descendants.remove(store, runId, force)
      while (true) {
        const { entry, head } = yield* Outside.look(runId)
        // One whose root is gone has nobody else to remove it.
        if (head.parent !== undefined && (yield* store.head(head.parent.rootId)) !== undefined)
          return yield* Route.root(runId, head)
        const free = isTerminal(head) || (force && head.status === "waiting")
        if (!free) return yield* new RunNotTerminal({ runId, status: head.status })
        // Without its sub-agents' Runs it would begin them anew, so it must have ended before they go.
        if (head.status === "waiting" && Descendants.has(yield* Stored.load(runId, entry.seq))) {
          yield* cancelled(runId)
          if (entry.live) yield* Effect.sleep("100 millis") // whoever holds it ends it, or lets it go
          continue
        }
        if (head.children === true) yield* Descendants.remove(store, runId, force)
        if (yield* store.remove(runId, entry.seq)) return
      }
    })
  )

const removal = { by: "remove" }

/** Cancels a Run that waits, with all below it. */
const cancelled = (runId: string) =>
  Effect.andThen(
    Outside.append(runId, ({ head }) =>
      Effect.succeed<ReadonlyArray<Draft>>(
        head.status !== "waiting" || head.cancelled !== undefined ? [] : [{ _tag: "CancelRequested", ...removal }]
      )
    ),
    Descendants.end(runId, removal)
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
 * and named in a warning, and so is one with a sub-agent whose Run is damaged, or has not ended. `olderThan` goes by the caller's clock, as the times of a Run do by the clocks of those who wrote to
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
        removed += yield* removeAll(store, { status: [one], parent: null, updatedBefore })
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
      for (const { entry, head } of page) {
        const below = head.children === true ? Descendants.remove(store, entry.runId, false) : Effect.void
        const all = Effect.andThen(below, store.remove(entry.runId, entry.seq))
        const gone = Effect.catchTag(all, ["CheckpointCorrupt", "RunNotTerminal"], ({ message }) =>
          Effect.as(Effect.logWarning(message), false)
        )
        if (yield* gone) removed++
      }
      after = page.at(-1)?.entry
      if (page.length < limit) return removed
    }
  })
