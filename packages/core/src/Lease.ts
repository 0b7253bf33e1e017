/**
 * Renews the lease of a driven Run, and lets it go.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { type Lease, leaseMillis } from "./Attempt.ts"
import type { CheckpointStore } from "./CheckpointStore.ts"
import { OwnershipLost } from "./RunError.ts"

/** A lease that an Attempt held: owners' names are unique, epochs start again in a Run that was removed and made anew. */
export interface Held {
  readonly runId: string
  readonly owner: string
  readonly epoch: number
}

/** Lets the lease go, if it is still ours: another may have made the Run, or made it anew, since. */
export const release = (store: CheckpointStore["Service"], { epoch, owner, runId }: Held): Effect.Effect<void> =>
  Effect.ignore(
    Effect.flatMap(store.head(runId), (entry) =>
      entry?.owner === owner ? store.release({ runId, epoch }) : Effect.void
    )
  )

type Clocks = ReadonlyArray<() => number>

/** The lease of an Attempt that claimed its Run just now. */
export const make = (
  store: CheckpointStore["Service"],
  { clocks, epoch, runId }: { readonly runId: string; readonly epoch: number; readonly clocks: Clocks }
): Lease => {
  const read = () => clocks.map((clock) => clock())
  let since = read()
  return {
    left: () => leaseMillis - Math.max(...read().map((now, i) => now - (since[i] ?? now))),
    renew: Effect.suspend(() => {
      const asked = read()
      return Effect.flatMap(store.renew({ runId, epoch, ttlMillis: leaseMillis }), (ours) => {
        if (!ours) return Effect.fail(new OwnershipLost({ runId }))
        since = asked
        return Effect.void
      })
    })
  }
}
