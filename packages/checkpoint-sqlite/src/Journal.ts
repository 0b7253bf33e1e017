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
import { now, number, type Row } from "./Row.ts"

type Store = CheckpointStore.CheckpointStore["Service"]
type HeadRow = CheckpointStore.HeadRow
type AppendResult = CheckpointStore.AppendResult

const committed: AppendResult = { _tag: "Committed" }
const fenced: AppendResult = { _tag: "Fenced" }

export const make = (connection: Connection): Pick<Store, "append" | "read"> => {
  const { db } = connection
  const find = db.prepare(
    "SELECT rid, seq, epoch, status, agent, session, parent, waiting, wake_at FROM runs WHERE run_id = ?"
  )
  const create = db.prepare(
    `INSERT INTO runs (run_id, seq, epoch, owner, until, updated_at, head, status, agent, session, parent, waiting, wake_at)
     VALUES (?, ?, ?, ?, ${now} + ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING rid`
  )
  const add = db.prepare("INSERT INTO journal (rid, seq, epoch, body) VALUES (?, ?, ?, ?)")
  // Named columns of an index are written to it again, changed or not: so the rest is set only where it changes.
  const touch = db.prepare("UPDATE runs SET seq = ?, updated_at = ?, head = ? WHERE rid = ?")
  const replace = db.prepare(
    `UPDATE runs SET seq = ?, updated_at = ?, head = ?, status = ?, agent = ?, session = ?, parent = ?, waiting = ?, wake_at = ?
     WHERE rid = ?`
  )
  const page = db.prepare(
    `SELECT seq, epoch, body FROM journal
     WHERE rid = (SELECT rid FROM runs WHERE run_id = ?) AND seq > ? ORDER BY seq`
  )
  const append = ({ epoch, events, expectedSeq, head, lease, runId }: CheckpointStore.Append): AppendResult => {
    const run = find.get(runId)
    if (run !== undefined && epoch !== 0 && epoch !== run["epoch"]) return fenced
    const seq = run === undefined ? 0 : number(run, "seq")
    if (seq !== expectedSeq) return { _tag: "Conflict", seq }
    const next = seq + events.length
    const fields = fieldsOf(head)
    if (run === undefined) {
      const held = [lease?.owner ?? null, lease?.ttlMillis ?? 0]
      const row = create.get(runId, next, epoch, ...held, head.updatedAt, head.body, ...fields) ?? {}
      add.run(number(row, "rid"), next, epoch, pack(events))
      return committed
    }
    const rid = number(run, "rid")
    add.run(rid, next, epoch, pack(events))
    if (isSame(run, fields)) touch.run(next, head.updatedAt, head.body, rid)
    else replace.run(next, head.updatedAt, head.body, ...fields, rid)
    return committed
  }
  return {
    append: (request) => connection.transaction(request.runId, () => append(request)),
    read: (runId, range) => connection.attempt(runId, () => read(page, runId, range))
  }
}

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
    next = last + 1
    for (let seq = Math.max(first, after + 1); seq <= last; seq++) {
      events.push({ seq, epoch, body: bodies[seq - first] ?? "", ends: seq === last })
      if (events.length === limit) return events
    }
  }
  return events
}
