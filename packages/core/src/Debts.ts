/**
 * Writes what an Attempt had finished when it ended and its store was away, as soon as the store is back (RI-134).
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { CheckpointStore, Held } from "./CheckpointStore.ts"
import type { Journal, JournalError } from "./Journal.ts"
import * as Lease from "./Lease.ts"

/** What an ended Attempt could not write yet. It keeps the lease until then: who let it go writes nothing any more. */
interface Owed {
  readonly owner: string
  /** Writes it, and lets the lease go. */
  readonly pay: Effect.Effect<void, JournalError>
}

/** What this process owes to its stores, by run id. */
const Owings: Context.Reference<WeakMap<CheckpointStore["Service"], Map<string, Owed>>> = Context.Reference(
  "@waystone/core/Drive/Debts",
  { defaultValue: () => new WeakMap() }
)

export const owedTo = (store: CheckpointStore["Service"]): Effect.Effect<Map<string, Owed>> =>
  Effect.map(Owings, (debts) => {
    const owed = debts.get(store) ?? new Map<string, Owed>()
    debts.set(store, owed)
    return owed
  })

/** What an Attempt that ends still has to write, and whose Run it was. */
interface Ending {
  readonly held: Held
  readonly owed: Map<string, Owed>
}

/** Writes what is left; where the store is away, as soon as it is back. */
export const closing = (journal: Journal, store: CheckpointStore["Service"], ending: Ending): Effect.Effect<void> =>
  Effect.matchEffect(journal.close, {
    onSuccess: () => Effect.void,
    onFailure: (error) =>
      error._tag === "StoreUnavailable"
        ? Effect.forkDetach(later(journal, store, ending), { startImmediately: true }) // a claim may come at once
        : Effect.void
  })

/** What is finished is written when the store is back, as long as nobody took the Run over (RI-134). */
const later = (journal: Journal, store: CheckpointStore["Service"], { held, owed }: Ending): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { owner, runId } = held
    const pay = Effect.andThen(journal.close, Lease.release(store, held))
    owed.set(runId, { owner, pay })
    return Effect.retry(pay, {
      schedule: Schedule.spaced("500 millis").pipe(Schedule.upTo({ times: 1200 })), // about ten minutes, whatever the clock
      while: (error) => error._tag === "StoreUnavailable"
    }).pipe(
      Effect.ignore,
      Effect.ensuring(
        Effect.sync(() => {
          if (owed.get(runId)?.owner === owner) owed.delete(runId)
        })
      )
    )
  })
