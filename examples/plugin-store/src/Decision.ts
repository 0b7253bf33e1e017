/** The contract as pure functions: parts 2, 3 and 4 of docs/write-a-store.md. Nothing here knows about files. */
import type { CheckpointStore } from "@waystone/core"

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
export const append = (
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

/** Busy, or the next epoch. The claim of an unknown Run writes nothing. */
export const claim = (
  row: Row | undefined,
  { owner, takeover, ttlMillis }: CheckpointStore.Lease & { readonly takeover?: number },
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

/** What only the owner may change: true and the new row, else false. */
export const held =
  ({ epoch, owner }: CheckpointStore.Held, change: (row: Row, now: number) => Row) =>
  (row: Row | undefined, now: number): Decision<boolean> =>
    row?.epoch === epoch && row.owner === owner ? { answer: true, row: change(row, now) } : { answer: false }

export const unowned = (row: Row): Row => {
  const { owner: _, ...rest } = row
  return rest
}

export const entryOf = (runId: string, row: Row, now: number): CheckpointStore.Entry => ({
  ...row.head,
  runId,
  seq: row.seq,
  epoch: row.epoch,
  ...(row.owner !== undefined && { owner: row.owner }),
  live: row.owner !== undefined && row.until > now
})
