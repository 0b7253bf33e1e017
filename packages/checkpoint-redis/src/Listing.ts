/**
 * Lists Runs: walks the fewest entries of the index that hold them all, and asks the heads that these name.
 *
 * Invariants
 *   L1  Whatever its filter, a list asks the server in parts of bounded work, and for many heads in one round trip.
 *   L2  A damaged Run is left out and warned of; it does not keep the others from being listed.
 *   L3  A list is right or fails: where a set that it needs was lost, the index is built anew first (X3). Not in a cluster
 *       whose client scans one master only: what was built from that one is taken for whole (see the README).
 *   L4  A list is right where its repairs of the index cannot be written: memory is full, or the server is a replica.
 *
 * @since 0.1.0
 */
import { CheckpointStore, RunError } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Heads from "./Heads.ts"
import { quietly } from "./Later.ts"
import type { Rebuild } from "./Rebuild.ts"
import * as RunIndex from "./RunIndex.ts"
import { range } from "./scripts/range.ts"
import type { Part } from "./scripts/range.ts"
import { sizes } from "./scripts/sizes.ts"

type Aged = { readonly runId: string; readonly updatedAt: number }
/** An entry of the index. */
interface Indexed extends Aged {
  readonly set: string
}

/** Entries of a set that a part gives: as many as the page has room for, between these. */
const fewest = 50
const most = 500
/** Entries that a part looks at, in all sets: about 5 ms of the server. */
const scanned = 5000

export interface Deps extends RunIndex.Deps {
  readonly rebuild: Rebuild
}

/** What one list walks through, and what it has come to. */
interface Walk {
  readonly deps: RunIndex.Deps
  readonly filter: CheckpointStore.Filter
  readonly page: CheckpointStore.Page
  readonly sets: ReadonlyArray<string>
  readonly groups: ReadonlyArray<ReadonlyArray<string>>
  readonly to: string
  /** Runs whose heads were read. */
  readonly asked: Set<string>
  readonly found: Array<CheckpointStore.Entry>
  readonly damaged: Array<RunError.CheckpointCorrupt>
  /** False once a repair could not be written: this list tries no more. */
  repairs: boolean
}

/** A page of the Runs that the filter lets through, the oldest `updatedAt` first. */
export const list = Effect.fnUntraced(function* (
  deps: Deps,
  filter: CheckpointStore.Filter,
  page: CheckpointStore.Page
): Effect.fn.Return<ReadonlyArray<CheckpointStore.Entry>, CheckpointStore.StoreError> {
  if (filter.status?.length === 0 || filter.agent?.length === 0 || page.limit < 1) return []
  for (let tries = 0; tries < mostBuilt; tries++) {
    const found = yield* walked(deps, filter, page)
    if (found !== undefined) return found
    yield* deps.rebuild(["all", ...RunIndex.groupsFor(filter).flat()])
  }
  return yield* new RunError.StoreUnavailable({ detail: "the index of Runs on Redis is lost again and again" })
})

/** How often one list has the index built anew. */
const mostBuilt = 3

/** Undefined if what it needs of the index is not whole. */
const walked = Effect.fnUntraced(function* (
  deps: RunIndex.Deps,
  filter: CheckpointStore.Filter,
  page: CheckpointStore.Page
): Effect.fn.Return<ReadonlyArray<CheckpointStore.Entry> | undefined, CheckpointStore.StoreError> {
  const to = filter.updatedBefore === undefined ? "+inf" : `(${filter.updatedBefore}`
  const ways = yield* waysOf(deps, filter)
  if (ways === undefined) return undefined
  const walk: Walk = { deps, filter, page, ...ways, to, asked: new Set(), found: [], damaged: [], repairs: true }
  let after: Aged | undefined = page.after
  for (let count = Math.min(Math.max(page.limit, fewest), most); ; count = Math.min(count * 2, most)) {
    const part = yield* partOf(walk, after, count)
    if (part === undefined) return undefined
    const { end, entries } = part
    yield* look(walk, entries)
    // What was met too early and has its place beyond the end waits for it: nothing that lies between may be left out.
    const whole = end === undefined ? walk.found : walk.found.filter((entry) => !isAfter(entry, end))
    if (end === undefined || whole.length >= page.limit) {
      yield* CheckpointStore.leftOut(walk.damaged)
      return whole.toSorted(CheckpointStore.byAge).slice(0, page.limit)
    }
    after = end
  }
})

/** The sets to walk, which are the smallest, and the groups of the others. */
const waysOf = Effect.fnUntraced(function* (
  { command, keys, redis }: RunIndex.Deps,
  filter: CheckpointStore.Filter
): Effect.fn.Return<Pick<Walk, "sets" | "groups"> | undefined, CheckpointStore.StoreError> {
  const groups = RunIndex.groupsFor(filter)
  const [only = ["all"], ...others] = groups
  if (others.length === 0) return { sets: only, groups: [] }
  const found = yield* command("", redis.eval(sizes)({ sets: groups.flat().map(keys.index), mark: keys.mark }))
  if (found === null) return undefined
  const rest = [...found]
  const sums = groups.map(({ length }) => sum(rest.splice(0, length)))
  const least = sums.indexOf(Math.min(...sums))
  return { sets: groups[least] ?? only, groups: groups.filter((_, i) => i !== least) }
})

const sum = (sizes: ReadonlyArray<number>): number => sizes.reduce((total, size) => total + Number(size), 0)

/** The next entries of all sets, merged: everything up to `end`, or all there is if that is undefined. */
const partOf = Effect.fnUntraced(function* (
  { deps: { command, keys, redis }, groups, sets, to }: Walk,
  after: Aged | undefined,
  count: number
): Effect.fn.Return<
  { readonly entries: ReadonlyArray<Indexed>; readonly end: Aged | undefined } | undefined,
  CheckpointStore.StoreError
> {
  const parts = yield* command(
    "",
    redis.eval(range)({
      sets: sets.map(keys.index),
      groups: groups.map((group) => group.map(keys.index)),
      after,
      to,
      count,
      scanned: Math.ceil(scanned / sets.length),
      mark: keys.mark
    })
  )
  if (parts === null) return undefined
  const ends = parts.flatMap(([over, score, runId]) =>
    over === 1 || runId === null ? [] : [{ runId, updatedAt: Number(score) }]
  )
  const end = ends.toSorted(CheckpointStore.byAge)[0]
  const entries = parts.flatMap((part, i) => entriesOf(part, sets[i] ?? ""))
  return { entries: end === undefined ? entries : entries.filter((entry) => !isAfter(entry, end)), end }
})

const entriesOf = ([, , , found]: Part, set: string): ReadonlyArray<Indexed> => {
  const entries: Array<Indexed> = []
  for (let i = 0; i + 1 < found.length; i += 2) {
    entries.push({ set, runId: found[i] ?? "", updatedAt: Number(found[i + 1]) })
  }
  return entries
}

/** Reads the heads of these entries, keeps what the filter lets through, and puts wrong entries right (X2). */
const look = Effect.fnUntraced(function* (
  walk: Walk,
  entries: ReadonlyArray<Indexed>
): Effect.fn.Return<void, CheckpointStore.StoreError> {
  const fresh = new Map<string, Array<Indexed>>()
  for (const entry of entries) {
    if (!walk.asked.has(entry.runId)) fresh.set(entry.runId, [...(fresh.get(entry.runId) ?? []), entry])
  }
  const runIds = [...fresh.keys()]
  const heads = yield* Heads.of(walk.deps, runIds)
  const wrong: Array<Effect.Effect<void, CheckpointStore.StoreError>> = []
  for (const [i, head] of heads.entries()) {
    const runId = runIds[i] ?? ""
    walk.asked.add(runId)
    if (Result.isFailure(head)) {
      walk.damaged.push(head.failure)
      continue
    }
    const seen = head.success
    if (
      seen !== undefined &&
      CheckpointStore.matches(seen.entry, walk.filter, seen.now) &&
      isAfter(seen.entry, walk.page.after)
    ) {
      walk.found.push(seen.entry)
    }
    for (const entry of fresh.get(runId) ?? []) {
      const repair = repairOf(walk.deps, entry, seen?.entry)
      if (repair !== undefined) wrong.push(repair)
    }
  }
  yield* Effect.forEach(wrong, (repair) => repaired(walk, repair), { concurrency: 50, discard: true })
})

const repairOf = (
  deps: RunIndex.Deps,
  { runId, set, updatedAt }: Indexed,
  row: CheckpointStore.Entry | undefined
): Effect.Effect<void, CheckpointStore.StoreError> | undefined => {
  if (row === undefined || !RunIndex.setsOf(row).includes(set)) {
    return RunIndex.take(deps, { runId, updatedAt, outOf: [set] })
  }
  return row.updatedAt === updatedAt ? undefined : RunIndex.put(deps, { runId, row, updatedAt: row.updatedAt })
}

const repaired = (walk: Walk, repair: Effect.Effect<void, CheckpointStore.StoreError>): Effect.Effect<void> =>
  Effect.suspend(() =>
    walk.repairs
      ? Effect.map(quietly("repairing the index", repair), (done) => {
          walk.repairs &&= done
        })
      : Effect.void
  )

const isAfter = (one: Aged, other: Aged | undefined): boolean =>
  other === undefined || CheckpointStore.byAge(one, other) > 0
