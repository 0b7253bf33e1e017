/**
 * Reads the heads of Runs, many in one round trip.
 *
 * A cluster refuses a script on Runs of several slots, before it runs. Then each head is asked for by itself, all at once.
 *
 * @since 0.1.0
 */
import type { CheckpointStore, RunError } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Row from "./Row.ts"
import type * as RunIndex from "./RunIndex.ts"
import * as Script from "./scripts/heads.ts"

/** A head, and the server's time in ms when it was read. */
export interface Seen {
  readonly entry: CheckpointStore.Entry
  readonly now: number
}

/** Undefined if there is no such Run; damage is a finding here, since it is that of one Run only. */
export type Found = Result.Result<Seen | undefined, RunError.CheckpointCorrupt>

/** About so many bytes of bodies in a reply; more are asked for in parts. */
const maxBytes = 1024 * 1024
/** Runs in one script: about 2 ms of the server. */
const batchSize = 200

/** The heads of these Runs, in their order. */
export const of = Effect.fnUntraced(function* (
  deps: RunIndex.Deps,
  runIds: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<Found>, CheckpointStore.StoreError> {
  const found: Array<Found> = []
  while (found.length < runIds.length) {
    const part = runIds.slice(found.length, found.length + batchSize)
    const asked = Effect.catchIf(together(deps, part), isRefused, () => apart(deps, part))
    found.push(...(yield* asked))
  }
  return found
})

/** The head of a Run, if there is such a Run. */
export const one = (
  deps: RunIndex.Deps,
  runId: string
): Effect.Effect<CheckpointStore.Entry | undefined, CheckpointStore.StoreError> =>
  Effect.flatMap(together(deps, [runId]), ([found = Result.succeed(undefined)]) =>
    Effect.map(Effect.fromResult(found), (seen) => seen && { ...seen.entry, now: seen.now })
  )

const apart = (deps: RunIndex.Deps, runIds: ReadonlyArray<string>) =>
  Effect.map(
    Effect.forEach(runIds, (runId) => together(deps, [runId]), { concurrency: "unbounded" }),
    (found) => found.flat()
  )

/** As the server says it, or a client that knows the slots. */
const isRefused = (error: CheckpointStore.StoreError): boolean =>
  error._tag === "StoreUnavailable" && /CROSSSLOT|same (hash )?slot/i.test(error.detail)

/** At least the first of them. */
const together = Effect.fnUntraced(function* (
  { command, keys, redis }: RunIndex.Deps,
  runIds: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<Found>, CheckpointStore.StoreError> {
  const [now, ...heads] = yield* command("", redis.eval(Script.heads)({ runs: runIds.map(keys.run), maxBytes }))
  return heads.map((head, i) => read(runIds[i] ?? "", now, head))
})

const read = (runId: string, now: string, head: Script.Head): Found => {
  switch (head[0]) {
    case "unknown":
      return Result.succeed(undefined)
    case "corrupt":
      return Row.damage(runId, 0, head[1])
    case "head": {
      const [, ...fields] = head
      return Result.map(Row.entry(runId, now, fields), (entry) => ({ entry, now: Number(now) }))
    }
  }
}
