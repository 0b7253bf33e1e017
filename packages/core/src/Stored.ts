/**
 * Reads a stored Run without driving it.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { boundedStore } from "./Bounded.ts"
import type { CheckpointStore } from "./CheckpointStore.ts"
import { type ReadError, readEvents } from "./Journal.ts"
import * as RunState from "./RunState.ts"

/** The state of a Run at `seq`. */
export const load = (runId: string, seq: number): Effect.Effect<RunState.RunState, ReadError, CheckpointStore> =>
  Effect.flatMap(boundedStore, (store) =>
    Effect.suspend(() => {
      let state = RunState.empty()
      const each = ({ event }: { readonly event: Parameters<typeof RunState.evolve>[1] }) => {
        state = RunState.evolve(state, event)
      }
      return Effect.map(readEvents(store, runId, { after: 0, seq, each }), () => state)
    })
  )
