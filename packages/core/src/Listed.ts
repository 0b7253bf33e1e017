/**
 * Lists stored Runs with their heads. One whose head cannot be read is left out and named in a warning: it never keeps
 * the others from being seen.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { CheckpointStore, Entry, Filter, Page, StoreError } from "./CheckpointStore.ts"
import { defined } from "./Defined.ts"
import * as Input from "./Input.ts"
import { leftOut } from "./LeftOut.ts"
import * as Outside from "./Outside.ts"
import type { CheckpointCorrupt, InputInvalid } from "./RunError.ts"
import type { Head } from "./RunHead.ts"

export interface Listed {
  readonly entry: Entry
  readonly head: Head
}

/** Refuses a page that no store can give, so that all of them give the same answer. */
export const checked = (verb: string, { after, limit }: Page): Effect.Effect<void, InputInvalid> => {
  if (!(Number.isSafeInteger(limit) && limit >= 1)) {
    return Input.invalid(`${verb}: limit`, limit, "a whole number from 1")
  }
  return after === undefined || Number.isFinite(after.updatedAt)
    ? Effect.void
    : Input.invalid(`${verb}: after.updatedAt`, after.updatedAt, "a time in epoch ms")
}

/** A page that is shorter than its limit only where there is no more: what is left out, further Runs make up for. */
export const page = (
  store: CheckpointStore["Service"],
  filter: Filter,
  { after, limit }: Page
): Effect.Effect<ReadonlyArray<Listed>, StoreError> =>
  Effect.gen(function* () {
    const found: Array<Listed> = []
    const damaged: Array<CheckpointCorrupt> = []
    let last = after
    while (found.length < limit) {
      const missing = limit - found.length
      const entries = yield* store.list(filter, { limit: missing, ...defined({ after: last }) })
      for (const entry of entries) {
        yield* Effect.match(Outside.headOf(entry), {
          onSuccess: (head) => void found.push({ entry, head }),
          onFailure: (error) => void damaged.push(error)
        })
      }
      last = entries.at(-1)
      if (entries.length < missing) break
    }
    yield* leftOut(damaged)
    return found
  })
