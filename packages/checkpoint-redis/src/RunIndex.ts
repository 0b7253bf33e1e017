/**
 * Keeps sorted sets of run ids, by `updatedAt`, so that a list need not look at every Run.
 *
 * Invariants
 *   X1  The index is written after the Run and proves nothing: every entry is checked against the head before it is listed.
 *   X2  What a crash or a race leaves wrong is put right by whoever meets it (lists), or by looking for it (Repair.ts).
 *   X3  What is lost of it is noticed by every list that would miss it, and the index is built anew first (Rebuild.ts): a key
 *       that was deleted, evicted or overwritten, the whole of it, or sets that an earlier version did not write. That
 *       finds the Runs that SCAN sees: in a cluster those of all masters only if the client walks through them.
 *
 * @since 0.1.0
 */
import type { CheckpointStore } from "@waystone/core"
import * as Effect from "effect/Effect"
import type * as Redis from "effect/persistence/Redis"
import type { Command } from "./Command.ts"
import type { Keys } from "./Keys.ts"
import type { Row } from "./Row.ts"
import { place } from "./scripts/place.ts"

/** A Run as the index sees it. */
export interface Placed {
  readonly runId: string
  readonly row: Row
  readonly updatedAt: number
}

/** What the index is made of. */
export interface Deps {
  readonly redis: Redis.Redis["Service"]
  readonly command: Command
  readonly keys: Keys
}

/** The sets that a Run belongs to. */
export const setsOf = ({ agent, parent, session, status, waiting, wakeAt }: Row): ReadonlyArray<string> => [
  "all",
  `status:${status}`,
  `agent:${agent}`,
  ...(status === "running" || wakeAt !== undefined ? ["due"] : []),
  ...new Set(waiting.map((kind) => `waiting:${kind}`)),
  ...(session === undefined ? [] : [`session:${session}`]),
  parent === undefined ? "roots" : `parent:${parent}`
]

/**
 * Groups of sets: every Run that the filter lets through stands in at least one set of each group, and all in `"all"`. Empty
 * if no field of the filter has a set.
 */
export const groupsFor = (filter: CheckpointStore.Filter): ReadonlyArray<ReadonlyArray<string>> => {
  const { agent, due, parent, session, status, waiting } = filter
  return [
    ...(session === undefined ? [] : [[`session:${session}`]]),
    ...(parent === undefined ? [] : [[parent === null ? "roots" : `parent:${parent}`]]),
    ...(waiting === undefined ? [] : [[`waiting:${waiting}`]]),
    ...(due === true ? [["due"]] : []),
    ...(status === undefined ? [] : [[...new Set(status)].map((one) => `status:${one}`)]),
    ...(agent === undefined ? [] : [[...new Set(agent)].map((one) => `agent:${one}`)])
  ]
}

/** Puts a Run where it belongs now, and takes it from where it belonged before. */
export const put = (deps: Deps, now: Placed, before?: Placed): Effect.Effect<void, CheckpointStore.StoreError> => {
  const into = setsOf(now.row)
  const outOf = before === undefined ? [] : setsOf(before.row).filter((set) => !into.includes(set))
  return placed(deps, { ...now, into, outOf, leftAt: before?.updatedAt ?? 0 })
}

/** Takes a Run from sets where it does not belong; a later entry stays. */
export const take = (
  deps: Deps,
  {
    outOf,
    runId,
    updatedAt
  }: { readonly runId: string; readonly updatedAt: number; readonly outOf: ReadonlyArray<string> }
): Effect.Effect<void, CheckpointStore.StoreError> =>
  placed(deps, { runId, updatedAt, into: [], outOf, leftAt: updatedAt })

const placed = (
  { command, keys, redis }: Deps,
  { into, outOf, ...args }: Omit<Parameters<typeof place.params>[0], "mark">
): Effect.Effect<void, CheckpointStore.StoreError> =>
  Effect.flatMap(
    command(
      "",
      redis.eval(place)({ ...args, into: into.map(keys.index), outOf: outOf.map(keys.index), mark: keys.mark })
    ),
    overwritten
  )

/** Says that keys of the index had another type. */
export const overwritten = (wrong: ReadonlyArray<string>): Effect.Effect<void> =>
  wrong.length === 0
    ? Effect.void
    : Effect.logWarning(
        `Keys of the index of Runs had another type. They were deleted, and the index is built anew: ${wrong.join(", ")}`
      )
