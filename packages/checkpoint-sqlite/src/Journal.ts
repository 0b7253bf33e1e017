/**
 * Appends to the journals of Runs and reads them.
 *
 * An append is one transaction of three statements: look at the Run, add one row, replace its head (C1, C2).
 *
 * @since 0.1.0
 */
import type { CheckpointStore } from "@waystone/core"
import type { SQLOutputValue, StatementSync } from "node:sqlite"
import { pack, unpack } from "./Body.ts"
import type { Connection } from "./Connection.ts"
import { Damaged } from "./Failure.ts"
import type { Find } from "./Find.ts"
import { now, number, type Row } from "./Row.ts"

type Store = CheckpointStore.CheckpointStore["Service"]
type HeadRow = CheckpointStore.HeadRow
type AppendResult = CheckpointStore.AppendResult

const committed: AppendResult = { _tag: "Committed" }
const fenced: AppendResult = { _tag: "Fenced" }

export const make = (connection: Connection, find: Find): Pick<Store, "append" | "read"> => {
  const { db } = connection
  const create = db.prepare(
    `INSERT INTO runs (rid, run_id, seq, epoch, owner, until, updated_at, head, status, agent, session, parent, waiting, wake_at)
     VALUES (${newRid}, ?, ?, ?, ?, ${now} + ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING rid`
  )
  const begin = db.prepare("INSERT INTO journal (rid, seq, epoch, body, run_id) VALUES (?, ?, ?, ?, ?)")
  const add = db.prepare("INSERT INTO journal (rid, seq, epoch, body) VALUES (?, ?, ?, ?)")
  // Named columns of an index are written to it again, changed or not: so the rest is set only where it changes.
  const touch = db.prepare("UPDATE runs SET seq = ?, updated_at = ?, head = ? WHERE rid = ?")
  const replace = db.prepare(
    `UPDATE runs SET seq = ?, updated_at = ?, head = ?, status = ?, agent = ?, session = ?, parent = ?, waiting = ?, wake_at = ?
     WHERE rid = ?`
  )
  const page = db.prepare(
    `SELECT seq, epoch, body, run_id FROM journal
     WHERE rid = (SELECT rid FROM runs WHERE run_id = ?) AND seq > ? ORDER BY seq`
  )
  const append = ({ epoch, events, expectedSeq, head, lease, owner, runId }: CheckpointStore.Append): AppendResult => {
    const run = find.run(runId)
    if (run !== undefined && epoch !== 0 && (epoch !== run.epoch || owner !== run.owner)) return fenced
    const seq = run?.seq ?? 0
    if (seq !== expectedSeq) return { _tag: "Conflict", seq }
    const next = seq + events.length
    const fields = fieldsOf(head)
    if (run === undefined) {
      const held = [lease?.owner ?? null, lease?.ttlMillis ?? 0]
      const row = create.get(runId, next, epoch, ...held, head.updatedAt, head.body, ...fields) ?? {}
      begin.run(number(row, "rid"), next, epoch, pack(events), runId)
      return committed
    }
    const { rid } = run
    add.run(rid, next, epoch, pack(events))
    if (isSame(run.row, fields)) touch.run(next, head.updatedAt, head.body, rid)
    else replace.run(next, head.updatedAt, head.body, ...fields, rid)
    return committed
  }
  return {
    append: (request) => connection.transaction(request.runId, () => append(request)),
    read: (runId, range) =>
      // The events are of one moment: the page looks for the Run itself.
      connection.attempt(runId, () => (find.run(runId) === undefined ? [] : read(page, runId, range)))
  }
}

/** Above every one that either table has, so that no rows that somebody left behind become those of a new Run. */
const newRid = "max(ifnull((SELECT max(rid) FROM runs), 0), ifnull((SELECT max(rid) FROM journal), 0)) + 1"

const columns = ["status", "agent", "session", "parent", "waiting", "wake_at"]

/** In the order of `columns`. */
const fieldsOf = ({ agent, parent, session, status, waiting, wakeAt }: HeadRow) => [
  status,
  agent,
  session ?? null,
  parent ?? null,
  waiting.length === 0 ? "[]" : JSON.stringify(waiting),
  wakeAt ?? null
]

const isSame = (run: Row, fields: ReadonlyArray<SQLOutputValue>): boolean =>
  columns.every((column, i) => run[column] === fields[i])

const read = (
  page: StatementSync,
  runId: string,
  { after, limit }: Parameters<Store["read"]>[1]
): ReadonlyArray<CheckpointStore.StoredEvent> => {
  const events: Array<CheckpointStore.StoredEvent> = []
  if (limit <= 0) return events
  let next: number | undefined
  // An iterator: how many rows hold `limit` events is not known before.
  for (const row of page.iterate(runId, after)) {
    const last = number(row, "seq")
    const epoch = number(row, "epoch")
    const bodies = unpack(row["body"])
    if (bodies === undefined) throw new Damaged({ path: "journal.body", seq: last })
    const first = last - bodies.length + 1
    if (next === undefined ? first > after + 1 : first !== next) {
      throw new Damaged({ path: "journal: missing", seq: next ?? after + 1 })
    }
    // Rows of the first schema version name nobody, as do those after the first.
    const of = row["run_id"]
    if (of !== null && of !== runId) throw new Damaged({ path: "journal.run_id", seq: first })
    next = last + 1
    for (let seq = Math.max(first, after + 1); seq <= last; seq++) {
      events.push({ seq, epoch, body: bodies[seq - first] ?? "", ends: seq === last })
      if (events.length === limit) return events
    }
  }
  return events
}
