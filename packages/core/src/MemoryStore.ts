/**
 * Keeps Runs in memory: for tests, and for Runs that need not survive their process. Its clock is the one of whoever made it.
 *
 * @since 0.1.0
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import {
  type Append,
  type AppendResult,
  CheckpointStore,
  type ClaimResult,
  type Entry,
  type HeadRow,
  type Lease,
  pageOf,
  type StoredEvent,
  type Writer
} from "./CheckpointStore.ts"
import { defined } from "./Defined.ts"

interface Run {
  readonly events: Array<StoredEvent>
  head: HeadRow
  epoch: number
  owner: string | undefined
  until: number
}

/** A store of its own each time it is called. */
export const make: Effect.Effect<CheckpointStore["Service"]> = Effect.clockWith((clock) =>
  Effect.sync(() => over(new Map(), clock))
)

const over = (runs: Map<string, Run>, clock: Clock.Clock): CheckpointStore["Service"] => {
  // Not the caller's, which may be wrong (C4).
  const at = <A>(f: (now: number) => A) => Effect.sync(() => f(clock.currentTimeMillisUnsafe()))
  return CheckpointStore.of({
    append: (request) => at((now) => append(runs, request, now)),
    read: (runId, { after, limit }) => Effect.sync(() => runs.get(runId)?.events.slice(after, after + limit) ?? []),
    head: (runId) =>
      at((now) => {
        const run = runs.get(runId)
        return run && entry(runId, run, now)
      }),
    claim: (request) => at((now) => claim(runs, request, now)),
    renew: ({ ttlMillis, ...held }) =>
      at((now) => {
        const run = runs.get(held.runId)
        if (run === undefined || !isHeld(run, held)) return false
        run.until = now + ttlMillis
        return true
      }),
    release: (held) =>
      Effect.sync(() => {
        const run = runs.get(held.runId)
        if (run !== undefined && isHeld(run, held)) run.owner = undefined
      }),
    list: (filter, page) => at((now) => pageOf(entries(runs, now), { filter, page, now })),
    remove: (runId, expectedSeq) =>
      Effect.sync(() => runs.get(runId)?.events.length === expectedSeq && runs.delete(runId))
  })
}

/** Provides one store to everything below it. */
export const layer: Layer.Layer<CheckpointStore> = Layer.effect(CheckpointStore, make)

const isHeld = (run: Run, { epoch, owner }: Writer): boolean => run.epoch === epoch && run.owner === owner

const append = (runs: Map<string, Run>, request: Append, now: number): AppendResult => {
  const { epoch, events, expectedSeq, head, lease, runId } = request
  const known = runs.get(runId)
  if (known !== undefined && epoch !== 0 && !isHeld(known, request)) return { _tag: "Fenced" }
  const seq = known?.events.length ?? 0
  if (seq !== expectedSeq) return { _tag: "Conflict", seq }
  const run = known ?? { events: [], head, epoch, owner: lease?.owner, until: now + (lease?.ttlMillis ?? 0) }
  if (known === undefined) runs.set(runId, run)
  const last = events.length - 1
  events.forEach((body, i) => run.events.push({ seq: seq + i + 1, epoch, body, ends: i === last }))
  run.head = head
  return { _tag: "Committed" }
}

const claim = (
  runs: Map<string, Run>,
  { owner, runId, takeover, ttlMillis }: Lease & { readonly runId: string; readonly takeover?: number },
  now: number
): ClaimResult => {
  const run = runs.get(runId)
  if (run === undefined) return { _tag: "Claimed", epoch: 1, seq: 0 }
  const previous = run.owner
  if (previous !== undefined && run.until > now && takeover !== run.epoch) {
    return { _tag: "Busy", epoch: run.epoch, owner: previous }
  }
  run.epoch += 1
  run.owner = owner
  run.until = now + ttlMillis
  return { _tag: "Claimed", epoch: run.epoch, seq: run.events.length, ...defined({ previous }) }
}

const entry = (runId: string, run: Run, now: number): Entry => ({
  ...run.head,
  runId,
  seq: run.events.length,
  epoch: run.epoch,
  live: run.owner !== undefined && run.until > now,
  ...defined({ owner: run.owner })
})

const entries = (runs: ReadonlyMap<string, Run>, now: number): ReadonlyArray<Entry> =>
  Array.from(runs, ([runId, run]) => entry(runId, run, now))
