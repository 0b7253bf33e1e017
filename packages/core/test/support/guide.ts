/** The code of docs/write-a-store.md, compiled: Guide.test.ts compares both, and runs the suite over it. */
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { CheckpointStore, RunError } from "@waystone/core"
import type { CheckpointStoreSuite } from "@waystone/core/testing"
import { Effect, Layer } from "effect"

type Store = CheckpointStore.CheckpointStore["Service"]

/** What is kept of a Run beside its events. */
export interface Row {
  readonly seq: number
  readonly epoch: number
  readonly owner?: string
  /** When the lease ends: epoch ms by the store's clock. */
  readonly until: number
  readonly head: CheckpointStore.HeadRow
}

/** An answer, and what must be written together with it; without a row nothing is. */
export interface Decision<Answer> {
  readonly answer: Answer
  readonly row?: Row
  readonly events?: ReadonlyArray<CheckpointStore.StoredEvent>
}

/** Fenced, then Conflict, then everything at once. */
const decideAppend = (
  row: Row | undefined,
  { epoch, events, expectedSeq, head, lease, owner }: CheckpointStore.Append,
  now: number
): Decision<CheckpointStore.AppendResult> => {
  const isOwner = row?.epoch === epoch && row.owner === owner
  if (row !== undefined && epoch !== 0 && !isOwner) return { answer: { _tag: "Fenced" } }
  const seq = row?.seq ?? 0
  if (seq !== expectedSeq) return { answer: { _tag: "Conflict", seq } }
  const created = { epoch, until: now + (lease?.ttlMillis ?? 0), ...(lease && { owner: lease.owner }) }
  return {
    answer: { _tag: "Committed" },
    row: { ...(row ?? created), seq: seq + events.length, head },
    events: events.map((body, i) => ({ seq: seq + i + 1, epoch, body, ends: i === events.length - 1 }))
  }
}

/** Busy, or the next epoch. */
const decideClaim = (
  row: Row | undefined,
  { owner, takeover, ttlMillis }: Parameters<Store["claim"]>[0],
  now: number
): Decision<CheckpointStore.ClaimResult> => {
  if (row === undefined) return { answer: { _tag: "Claimed", epoch: 1, seq: 0 } }
  const { owner: previous } = row
  if (previous !== undefined && row.until > now && takeover !== row.epoch) {
    return { answer: { _tag: "Busy", epoch: row.epoch, owner: previous } }
  }
  const epoch = row.epoch + 1
  return {
    answer: { _tag: "Claimed", epoch, seq: row.seq, ...(previous !== undefined && { previous }) },
    row: { ...row, epoch, owner, until: now + ttlMillis }
  }
}

/** What is yours. */
export interface Backend {
  /** Reads the row, decides by the backend's own clock, writes what was decided: one atomic step. */
  readonly change: <Answer>(
    runId: string,
    decide: (row: Row | undefined, now: number) => Decision<Answer>
  ) => Effect.Effect<Answer, CheckpointStore.StoreError>
  readonly events: Store["read"]
  /** Rows with their run ids, and the backend's clock. What is damaged is left out and told (`CheckpointStore.leftOut`). */
  readonly rows: Effect.Effect<
    { readonly now: number; readonly rows: ReadonlyArray<readonly [runId: string, row: Row]> },
    CheckpointStore.StoreError
  >
  /** Removes the row and all events if the row has that seq, or cannot be read if that is asked for: one atomic step. */
  readonly remove: Store["remove"]
}

export const make = (backend: Backend): Store => {
  const held = ({ epoch, owner, runId }: CheckpointStore.Held, change: (row: Row, now: number) => Row) =>
    backend.change(runId, (row, now) =>
      row?.epoch === epoch && row.owner === owner ? { answer: true, row: change(row, now) } : { answer: false }
    )
  return CheckpointStore.CheckpointStore.of({
    append: (request) => backend.change(request.runId, (row, now) => decideAppend(row, request, now)),
    read: backend.events,
    head: (runId) => backend.change(runId, (row, now) => ({ answer: row && entryOf(runId, row, now) })),
    claim: (request) => backend.change(request.runId, (row, now) => decideClaim(row, request, now)),
    renew: (request) => held(request, (row, now) => ({ ...row, until: now + request.ttlMillis })),
    release: (request) => Effect.asVoid(held(request, unowned)),
    list: (filter, page) =>
      Effect.map(backend.rows, ({ now, rows }) =>
        CheckpointStore.pageOf(
          rows.map(([runId, row]) => entryOf(runId, row, now)),
          { filter, now, page }
        )
      ),
    remove: backend.remove
  })
}

export const layer = <E, R>(backend: Effect.Effect<Backend, E, R>) =>
  Layer.effect(CheckpointStore.CheckpointStore, Effect.map(backend, make))

const unowned = (row: Row): Row => {
  const { owner: _, ...rest } = row
  return rest
}

const entryOf = (runId: string, { head, until, ...row }: Row, now: number): CheckpointStore.Entry => ({
  ...head,
  ...row,
  runId,
  live: row.owner !== undefined && until > now
})

/** The system said this, and not a bug of ours. For a database: the class of its driver's errors. */
const isRefusal = (cause: unknown): cause is Error => cause instanceof Error && "syscall" in cause

/** Work on a backend that throws; the caller's interruption does not tear it apart. */
export const attempt = <A>(what: string, work: () => Promise<A>): Effect.Effect<A, RunError.StoreUnavailable> =>
  Effect.uninterruptible(
    Effect.catchDefect(Effect.promise(work), (cause) =>
      isRefusal(cause)
        ? Effect.fail(new RunError.StoreUnavailable({ detail: `${what}: ${cause.message}` }))
        : Effect.die(cause)
    )
  )

/** What was stored, or where it is damaged. */
export const parsed = <A>(
  { runId, seq, text }: { readonly runId: string; readonly seq: number; readonly text: string },
  is: (value: unknown) => value is A
): Effect.Effect<A, RunError.CheckpointCorrupt> => {
  const damaged = (path: string) => Effect.fail(new RunError.CheckpointCorrupt({ runId, seq, path }))
  try {
    const value: unknown = JSON.parse(text)
    return is(value) ? Effect.succeed(value) : damaged("$")
  } catch {
    return damaged("not JSON")
  }
}

/** In the test: a process that runs that file, and is killed with its scope. */
export const peer = (file: URL, args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const child = fork(file, args)
      await once(child, "message")
      return child
    }),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  ).pipe(
    Effect.map((child): CheckpointStoreSuite.Peer => ({
      ask: (order) => Effect.promise(() => asked(child, order)),
      kill: Effect.promise(async () => {
        const gone = once(child, "exit")
        child.kill("SIGKILL")
        await gone
      })
    }))
  )

const asked = async (child: ChildProcess, order: CheckpointStoreSuite.Order): Promise<CheckpointStoreSuite.Answer> => {
  const answer = once(child, "message")
  child.send(order)
  return (await answer)[0]
}
