/**
 * Lists Runs: walks a set of the index, and asks the head of each Run that it names. One whose head is damaged is left out and
 * named in the log: it must not keep the others from being found.
 *
 * @since 0.1.0
 */
import type { CheckpointStore } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Row from "./Row.ts"
import * as RunIndex from "./RunIndex.ts"
import { head } from "./scripts/head.ts"
import { range } from "./scripts/range.ts"

type Aged = { readonly runId: string; readonly updatedAt: number }
/** A head, and the server's time in ms when it was read. */
interface Seen {
  readonly entry: CheckpointStore.Entry
  readonly now: number
}

/** Heads that are asked for at once. */
const batchSize = 200

/** A page of the Runs that the filter lets through, the oldest `updatedAt` first. */
export const list = Effect.fnUntraced(function* (
  deps: RunIndex.Deps,
  filter: CheckpointStore.Filter,
  page: CheckpointStore.Page
): Effect.fn.Return<ReadonlyArray<CheckpointStore.Entry>, CheckpointStore.StoreError> {
  if (filter.status?.length === 0 || page.limit < 1) return []
  const to = filter.updatedBefore === undefined ? "+inf" : `(${filter.updatedBefore}`
  const walk = { ...deps, set: RunIndex.setFor(filter), to }
  const found = new Map<string, CheckpointStore.Entry>()
  let position: Position = { from: page.after?.updatedAt, offset: 0, last: page.after }
  while (found.size < page.limit) {
    const batch = yield* batchAt(walk, position)
    const fresh = batch.filter((one) => isAfter(one, position.last))
    const checked = yield* Effect.forEach(fresh, (one) => check(walk, one), { concurrency: batchSize })
    const seen = checked.flatMap(({ seen }) =>
      seen !== undefined && matches(seen, filter) && isAfter(seen.entry, page.after) ? [seen.entry] : []
    )
    const last = batch.at(-1)
    const over = last === undefined || batch.length < batchSize
    // One that has moved beyond the batch is met again where it belongs; a page must not leave out what lies between.
    for (const entry of seen) if (over || !isAfter(entry, last)) found.set(entry.runId, entry)
    if (over) break
    position = next(position, last, checked.filter(({ moved }) => moved).length)
  }
  return [...found.values()].toSorted(byAge).slice(0, page.limit)
})

/** Where a walk through a set has come to. */
interface Position {
  readonly from: number | undefined
  /** How many at that time are known. */
  readonly offset: number
  readonly last: Aged | undefined
}

/** Goes on at the last time seen, and skips what is known at it: times repeat, and what was moved is not there any more. */
const next = ({ from, offset }: Position, last: Aged, moved: number): Position =>
  last.updatedAt === from
    ? { from, offset: offset + batchSize - moved, last }
    : { from: last.updatedAt, offset: 0, last }

const isAfter = (one: Aged, other: Aged | undefined): boolean => other === undefined || byAge(one, other) > 0

interface Walk extends RunIndex.Deps {
  readonly set: string
  readonly to: string
}

const batchAt = (
  { command, keys, redis, set, to }: Walk,
  { from, offset }: Position
): Effect.Effect<ReadonlyArray<Aged>, CheckpointStore.StoreError> => {
  const lowest = from === undefined ? "-inf" : String(from)
  const asked = redis.eval(range)({ set: keys.index(set), from: lowest, to, offset, count: batchSize })
  return Effect.map(command("", asked), (reply) => {
    const batch: Array<Aged> = []
    for (let i = 0; i + 1 < reply.length; i += 2) batch.push({ runId: reply[i] ?? "", updatedAt: Number(reply[i + 1]) })
    return batch
  })
}

/** Looks at the head of an entry of the index, and puts the entry right if the head says something else (X2). */
const check = Effect.fnUntraced(function* (
  { set, ...deps }: Walk,
  { runId, updatedAt }: Aged
): Effect.fn.Return<{ readonly seen: Seen | undefined; readonly moved: boolean }, CheckpointStore.StoreError> {
  const seen = yield* Effect.catchTag(look(deps, runId), "CheckpointCorrupt", ({ message }) =>
    Effect.as(Effect.logWarning(`Left out of a list: ${message}`), "damaged" as const)
  )
  // Its place in the index is left as it is, like all of it.
  if (seen === "damaged") return { seen: undefined, moved: false }
  const row = seen?.entry
  if (row === undefined || !RunIndex.setsOf(row).includes(set)) {
    yield* RunIndex.take(deps, { runId, updatedAt, outOf: [set] })
    return { seen: undefined, moved: true }
  }
  if (row.updatedAt === updatedAt) return { seen, moved: false }
  yield* RunIndex.put(deps, { runId, row, updatedAt: row.updatedAt })
  return { seen, moved: true }
})

/** The head of a Run, if there is such a Run. */
export const look = Effect.fnUntraced(function* (
  { command, keys, redis }: RunIndex.Deps,
  runId: string
): Effect.fn.Return<Seen | undefined, CheckpointStore.StoreError> {
  const reply = yield* command(runId, redis.eval(head)(keys.run(runId)))
  switch (reply[0]) {
    case "unknown":
      return undefined
    case "corrupt":
      return yield* Row.damaged(runId, 0, reply[1])
    case "head": {
      const [, now, ...fields] = reply
      return { entry: yield* Row.entry(runId, now, fields), now: Number(now) }
    }
  }
})

const byAge = (a: Aged, b: Aged): number =>
  a.updatedAt - b.updatedAt || (a.runId < b.runId ? -1 : a.runId > b.runId ? 1 : 0)

const matches = ({ entry, now }: Seen, filter: CheckpointStore.Filter): boolean =>
  (filter.status?.includes(entry.status) ?? true) &&
  (filter.waiting === undefined || entry.waiting.includes(filter.waiting)) &&
  (filter.agent?.includes(entry.agent) ?? true) &&
  (filter.session === undefined || entry.session === filter.session) &&
  (filter.parent === undefined || (entry.parent ?? null) === filter.parent) &&
  (filter.updatedBefore === undefined || entry.updatedAt < filter.updatedBefore) &&
  (filter.due !== true || entry.status === "running" || (entry.wakeAt !== undefined && entry.wakeAt <= now))
