/**
 * Gives a store to a process that can die: after its death no operation of that process is done or answered.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { Append, AppendResult, CheckpointStore, StoreError } from "../CheckpointStore.ts"
import type { Mortal } from "./Mortal.ts"
import * as WrappedStore from "./WrappedStore.ts"

/** What happens at an append: the process dies before it, or after it has landed and before it is answered. */
export type Fate = "die-before" | "die-after" | "live"

/** Asked at every append of this process. */
export type Decide = (append: Append) => Effect.Effect<Fate>

const alive: Decide = () => Effect.succeed("live")

/** The store as that process sees it. */
export const make = (
  store: CheckpointStore["Service"],
  mortal: Mortal,
  decide: Decide = alive
): CheckpointStore["Service"] => {
  const append = (request: Append): Effect.Effect<AppendResult, StoreError> =>
    Effect.flatMap(mortal.guard(decide(request)), (fate) => {
      switch (fate) {
        case "die-before":
          return mortal.die
        case "die-after":
          return Effect.andThen(Effect.exit(store.append(request)), mortal.die)
        case "live":
          return mortal.guard(store.append(request))
      }
    })
  return { ...WrappedStore.make(store, mortal.guard), append }
}
