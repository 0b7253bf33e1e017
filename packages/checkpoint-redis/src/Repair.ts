/**
 * Finds Runs whose index entries were lost, by their heads: a crash between an append and its index loses nothing.
 *
 * It goes through the server's keys with SCAN, a bounded part at a time. One whole pass is made in the background when the
 * store is opened; each sweep for due Runs looks at another part before it lists (X2). SCAN sees one server: in a cluster
 * each master has to be walked through (see the README).
 *
 * @since 0.1.0
 */
import type { CheckpointStore } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import { number, decode } from "./Row.ts"
import * as RunIndex from "./RunIndex.ts"

/** Keys that one part looks at: about 1 ms of the server, and 10 ms where all of them are heads of Runs. */
const partSize = 500
/** Rest between the parts of the first pass. */
const pause = "20 millis"

export interface Repair {
  /** All keys, once. */
  readonly pass: Effect.Effect<void, CheckpointStore.StoreError>
  /** The next part of them, going round and round. */
  readonly part: Effect.Effect<void, CheckpointStore.StoreError>
}

export const make = (deps: RunIndex.Deps): Effect.Effect<Repair> =>
  Effect.map(Ref.make("0"), (place) => {
    const pass = Effect.gen(function* () {
      let cursor = yield* from(deps, "0")
      while (cursor !== "0") {
        yield* Effect.sleep(pause)
        cursor = yield* from(deps, cursor)
      }
    })
    const part = Effect.gen(function* () {
      yield* Ref.set(place, yield* from(deps, yield* Ref.get(place)))
    })
    return { pass, part }
  })

/** Looks at the part at that cursor; gives the next one, `"0"` at the end. */
export const from = Effect.fnUntraced(function* (
  deps: RunIndex.Deps,
  cursor: string
): Effect.fn.Return<string, CheckpointStore.StoreError> {
  const { command, keys, redis } = deps
  const scan = redis.send<readonly [string, ReadonlyArray<string>]>
  const [next, heads] = yield* command("", scan("SCAN", cursor, "MATCH", keys.heads, "COUNT", String(partSize)))
  yield* Effect.forEach(heads, (head) => one(deps, head), { concurrency: "unbounded", discard: true })
  return String(next)
})

/** A damaged head is left to whoever asks for that Run. */
const one = Effect.fnUntraced(function* (
  deps: RunIndex.Deps,
  head: string
): Effect.fn.Return<void, CheckpointStore.StoreError> {
  const { command, keys, redis } = deps
  const runId = keys.runIdOf(head)
  const fields = redis.send<ReadonlyArray<string | null>>("HMGET", head, "row", "updatedAt")
  const [rowText, updatedAtText] = yield* Effect.catchTag(command(runId, fields), "CheckpointCorrupt", () =>
    Effect.succeed([])
  )
  const [row, updatedAt] = [decode(rowText), number(updatedAtText)]
  if (row !== undefined && updatedAt !== undefined) yield* RunIndex.put(deps, { runId, row, updatedAt })
})
