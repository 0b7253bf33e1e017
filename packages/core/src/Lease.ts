/**
 * Renews the lease of a driven Run, and lets it go.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { type Lease, leaseMillis } from "./Attempt.ts"
import type { CheckpointStore, Held } from "./CheckpointStore.ts"
import { gone, type JournalError } from "./Journal.ts"
import { OwnershipLost } from "./RunError.ts"

/** Lets the lease go, if it is still ours; if the store is away it ends by itself. */
export const release = (store: CheckpointStore["Service"], held: Held): Effect.Effect<void> =>
  Effect.ignore(store.release(held))

/** Another has it, or it is gone. */
const lost = (store: CheckpointStore["Service"], { runId }: Held): Effect.Effect<never, JournalError> =>
  Effect.flatMap(store.head(runId), (entry) =>
    Effect.fail(entry === undefined ? gone(runId) : new OwnershipLost({ runId }))
  )

type Clocks = ReadonlyArray<() => number>

/** The lease of an Attempt that claimed its Run just now. */
export const make = (store: CheckpointStore["Service"], held: Held, clocks: Clocks): Lease => {
  const read = () => clocks.map((clock) => clock())
  let since = read()
  return {
    left: () => leaseMillis - Math.max(...read().map((now, i) => now - (since[i] ?? now))),
    renew: Effect.suspend(() => {
      const asked = read()
      return Effect.flatMap(store.renew({ ...held, ttlMillis: leaseMillis }), (ours) => {
        if (!ours) return lost(store, held)
        since = asked
        return Effect.void
      })
    })
  }
}
