/**
 * Does what the contract asks for: one script for each operation on a Run, and the index after it.
 *
 * @since 0.1.0
 */
import { CheckpointStore } from "@waystone/core"
import * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import * as Batch from "./Batch.ts"
import * as Heads from "./Heads.ts"
import { quietly } from "./Later.ts"
import * as Listing from "./Listing.ts"
import type { Repair } from "./Repair.ts"
import * as Row from "./Row.ts"
import * as RunIndex from "./RunIndex.ts"
import { append } from "./scripts/append.ts"
import type * as Append from "./scripts/append.ts"
import { claim } from "./scripts/claim.ts"
import { read } from "./scripts/read.ts"
import { release } from "./scripts/release.ts"
import { remove } from "./scripts/remove.ts"
import { renew } from "./scripts/renew.ts"
import type * as Renew from "./scripts/renew.ts"

type Store = CheckpointStore.CheckpointStore["Service"]
type StoreError = CheckpointStore.StoreError

export interface Deps extends Listing.Deps {
  readonly repair: Repair
  readonly watch: (runId: string) => Stream.Stream<void, StoreError>
}

/** A reply of at most about so many bytes at a time; a longer page is asked for in parts. */
const maxBytes = 4 * 1024 * 1024

export const make = (deps: Deps): Store => {
  const { command, keys, redis } = deps
  return CheckpointStore.CheckpointStore.of({
    append: (request) => appended(deps, request),
    read: (runId, { after, limit }) => readAll(deps, runId, { after, upTo: after + limit }),
    head: (runId) => Heads.one(deps, runId),
    claim: (request) => claimed(deps, request),
    renew: ({ epoch, owner, runId, ttlMillis }) =>
      isDone(runId, command(runId, redis.eval(renew)({ keys: keys.run(runId), epoch, owner, ttlMillis }))),
    release: ({ epoch, owner, runId }) =>
      Effect.asVoid(isDone(runId, command(runId, redis.eval(release)({ keys: keys.run(runId), epoch, owner })))),
    list: (filter, page) =>
      filter.due === true && page.after === undefined
        ? Effect.andThen(quietly("repairing the index", deps.repair.part), Listing.list(deps, filter, page))
        : Listing.list(deps, filter, page),
    remove: (runId, expectedSeq) => removed(deps, runId, expectedSeq),
    watch: deps.watch
  })
}

const isDone = (runId: string, asked: Effect.Effect<Renew.Reply, StoreError>): Effect.Effect<boolean, StoreError> =>
  Effect.flatMap(asked, (reply) =>
    reply[0] === "corrupt" ? Row.damaged(runId, 0, reply[1]) : Effect.succeed(reply[0] === "done")
  )

const appended = Effect.fnUntraced(function* (
  deps: Deps,
  request: CheckpointStore.Append
): Effect.fn.Return<CheckpointStore.AppendResult, StoreError> {
  const { epoch, events, expectedSeq, head, lease, owner, runId } = request
  const { command, keys, redis } = deps
  const reply = yield* command(
    runId,
    redis.eval(append)({
      ...Batch.pack(events),
      keys: keys.run(runId),
      runId,
      epoch,
      owner,
      expectedSeq,
      count: events.length,
      row: Row.encode(head),
      updatedAt: head.updatedAt,
      body: head.body,
      lease,
      channel: keys.channel
    })
  )
  switch (reply[0]) {
    case "committed":
      yield* index(deps, { runId, row: head, updatedAt: head.updatedAt }, reply)
      return { _tag: "Committed" }
    case "conflict":
      return { _tag: "Conflict", seq: Number(reply[1]) }
    case "fenced":
      return { _tag: "Fenced" }
    case "corrupt":
      return yield* Row.damaged(runId, 0, reply[1])
  }
})

/**
 * The append has happened whatever becomes of its index entry, which is repaired later. Where only the time went on nothing
 * is written: a list meets an entry that stands too early, and moves it (X2). One that stood too late would be missed.
 */
const index = (
  deps: Deps,
  now: RunIndex.Placed,
  reply: Extract<Append.Reply, readonly ["committed", ...ReadonlyArray<string>]>
): Effect.Effect<void> => {
  if (reply[1] === "same") return Effect.void
  const row = reply[1] === "moved" ? Row.decode(reply[2]) : undefined
  const updatedAt = reply[1] === "moved" ? Row.number(reply[3]) : undefined
  const before = row === undefined || updatedAt === undefined ? undefined : { runId: now.runId, row, updatedAt }
  return Effect.asVoid(quietly("writing the index", RunIndex.put(deps, now, before)))
}

/** Reads part by part, until the page is full or the Run has no more; a missing part is damage (RI-072). */
const readAll = Effect.fnUntraced(function* (
  { command, keys, redis }: Deps,
  runId: string,
  { after, upTo }: { readonly after: number; readonly upTo: number }
): Effect.fn.Return<ReadonlyArray<CheckpointStore.StoredEvent>, StoreError> {
  const events: Array<CheckpointStore.StoredEvent> = []
  let seen = after
  while (seen < upTo) {
    const reply = yield* command(runId, redis.eval(read)({ keys: keys.run(runId), after: seen, upTo, maxBytes }))
    if (reply[0] === "unknown") break
    if (reply[0] === "corrupt") return yield* Row.damaged(runId, 0, reply[1])
    const end = Math.min(upTo, Number(reply[1]))
    if (seen >= end) break
    if (reply[2].length === 0) return yield* Row.damaged(runId, seen + 1, "missing")
    for (const row of reply[2]) {
      const batch = Batch.unpack(row)
      const first = batch?.[0]
      if (batch === undefined || first === undefined) return yield* Row.damaged(runId, seen + 1, `events ${row[0]}`)
      // A page may begin inside an append, but only the first append of a page may have begun before it.
      const whole = first.seq === seen + 1 || (seen === after && first.seq <= seen + 1)
      if (!whole) return yield* Row.damaged(runId, seen + 1, "missing")
      for (const event of batch) if (event.seq > seen && event.seq <= end) events.push(event)
      seen = batch.at(-1)?.seq ?? seen
    }
  }
  return events
})

const claimed = Effect.fnUntraced(function* (
  { command, keys, redis }: Deps,
  { owner, runId, takeover, ttlMillis }: Parameters<Store["claim"]>[0]
): Effect.fn.Return<CheckpointStore.ClaimResult, StoreError> {
  const reply = yield* command(runId, redis.eval(claim)({ keys: keys.run(runId), owner, ttlMillis, takeover }))
  switch (reply[0]) {
    case "unknown":
      return { _tag: "Claimed", epoch: 1, seq: 0 }
    case "claimed": {
      const [, epoch, seq, previous] = reply
      return { _tag: "Claimed", epoch, seq: Number(seq), ...(previous === null ? undefined : { previous }) }
    }
    case "busy":
      return { _tag: "Busy", epoch: Number(reply[1]), owner: reply[2] }
    case "corrupt":
      return yield* Row.damaged(runId, 0, reply[1])
  }
})

/** The index after the Run: an entry without a Run is harmless, a Run without an entry is not found until it is repaired. */
const removed = Effect.fnUntraced(function* (
  deps: Deps,
  runId: string,
  expectedSeq: number | "damaged"
): Effect.fn.Return<boolean, StoreError> {
  const { command, keys, redis } = deps
  const reply = yield* command(runId, redis.eval(remove)({ keys: keys.run(runId), expectedSeq }))
  if (reply[0] === "corrupt") return yield* Row.damaged(runId, 0, reply[1])
  if (reply[0] === "kept") return false
  const row = Row.decode(reply[1])
  const updatedAt = Row.number(reply[2])
  if (row !== undefined && updatedAt !== undefined) {
    yield* quietly("writing the index", RunIndex.take(deps, { runId, updatedAt, outOf: RunIndex.setsOf(row) }))
  }
  return true
})
