/**
 * Reads the stored events of a Run, page by page.
 *
 * @since 0.1.0
 */
import { type CheckpointStore, type Observer, RunError, RunEvent } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"

type Store = CheckpointStore.CheckpointStore["Service"]
export type ReadError = CheckpointStore.StoreError | RunError.CheckpointCorrupt | RunError.CheckpointTooNew

/** Events a page. */
const page = 1000

/** Calls `each` with the events after `after`, up to `upTo` if it is given; says how many there are. */
export const read = (
  store: Store,
  runId: string,
  {
    after = 0,
    each,
    upTo = Infinity
  }: { readonly after?: number; readonly upTo?: number; readonly each: (entry: Observer.Entry) => void }
): Effect.Effect<number, ReadError> =>
  Effect.gen(function* () {
    let seen = after
    while (seen < upTo) {
      const stored = yield* store.read(runId, { after: seen, limit: Math.min(page, upTo - seen) })
      for (const { body, epoch, seq } of stored) {
        if (seq !== seen + 1) return yield* new RunError.CheckpointCorrupt({ runId, seq: seen + 1, path: "missing" })
        const event = RunEvent.decode(body)
        if (Result.isFailure(event)) return yield* unreadable(runId, seq, event.failure)
        each({ seq, epoch, event: event.success })
        seen = seq
      }
      if (stored.length < page) break
    }
    return seen
  })

const unreadable = (runId: string, seq: number, failure: RunEvent.Unreadable) =>
  failure._tag === "TooNew"
    ? new RunError.CheckpointTooNew({ runId, seq, version: failure.version })
    : new RunError.CheckpointCorrupt({ runId, seq, path: failure.path })
