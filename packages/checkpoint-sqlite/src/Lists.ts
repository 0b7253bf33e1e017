/**
 * Lists the heads of Runs, oldest first.
 *
 * The Runs that are `running` and those that are not are found by indexes of their own and merged by SQLite: an index over
 * `updated_at` of all of them would be written by every append. A Run whose row is damaged is left out and named in the log:
 * it must not keep the others from being found.
 *
 * @since 0.1.0
 */
import { type CheckpointStore, RunError } from "@waystone/core"
import * as Effect from "effect/Effect"
import type { SQLInputValue } from "node:sqlite"
import type { Connection } from "./Connection.ts"
import { Damaged } from "./Failure.ts"
import { entry, entryColumns, now, type Row } from "./Row.ts"

type Filter = CheckpointStore.Filter
type Page = CheckpointStore.Page

export const make = (connection: Connection): Pick<CheckpointStore.CheckpointStore["Service"], "list"> => ({
  list: (filter, page) =>
    Effect.flatMap(
      connection.attempt(undefined, () => found(connection, query(filter, page), page.limit)),
      ({ damaged, entries }) => Effect.as(Effect.forEach(damaged, leftOut, { discard: true }), entries)
    )
})

interface Found {
  readonly entries: ReadonlyArray<CheckpointStore.Entry>
  readonly damaged: ReadonlyArray<Damaged>
}

/** A page of sound Runs: what is left out must not make it short, since a short page is the last one (C6). */
const found = (connection: Connection, query: Query, wanted: number, limit = wanted): Found => {
  const rows = connection.db.prepare(query.sql).all({ ...query.parameters, $limit: limit })
  const entries: Array<CheckpointStore.Entry> = []
  const damaged: Array<Damaged> = []
  for (const row of rows) {
    const one = entryOrDamage(row)
    if (one instanceof Damaged) damaged.push(one)
    else entries.push(one)
  }
  if (entries.length < wanted && rows.length === limit) return found(connection, query, wanted, wanted + damaged.length)
  return { entries: entries.slice(0, wanted), damaged }
}

const entryOrDamage = (row: Row): CheckpointStore.Entry | Damaged => {
  try {
    return entry(row)
  } catch (cause) {
    if (cause instanceof Damaged && cause.runId !== undefined) return cause
    throw cause
  }
}

const leftOut = ({ path, runId = "", seq }: Damaged) =>
  Effect.logWarning(`Left out of a list: ${new RunError.CheckpointCorrupt({ runId, seq, path }).message}`)

interface Query {
  readonly sql: string
  readonly parameters: Record<string, SQLInputValue>
}

/** Exported for the test that looks at its plan. */
export const query = (filter: Filter, page: Page): Query => {
  const parameters: Record<string, SQLInputValue> = { $limit: page.limit }
  const conditions = conditionsOf(filter, page).map(({ sql, values }) => {
    Object.assign(parameters, values)
    return ` AND ${sql}`
  })
  const half = (from: string, of: string) => `SELECT ${entryColumns} FROM ${from} WHERE ${of}${conditions.join("")}`
  const resting =
    filter.due === true
      ? half("runs INDEXED BY runs_waking", `status <> 'running' AND wake_at <= ${now}`)
      : half("runs", "status <> 'running'")
  return {
    sql: `${half("runs", "status = 'running'")} UNION ALL ${resting} ORDER BY updated_at, run_id LIMIT $limit`,
    parameters
  }
}

interface Condition {
  readonly sql: string
  readonly values?: Record<string, SQLInputValue>
}

const conditionsOf = (
  { agent, parent, session, status, updatedBefore, waiting }: Filter,
  { after }: Page
): ReadonlyArray<Condition> => {
  const found: Array<Condition> = []
  if (status !== undefined) found.push(oneOf("status", status))
  if (agent !== undefined) found.push(oneOf("agent", agent))
  if (session !== undefined) found.push({ sql: "session = $session", values: { $session: session } })
  if (parent === null) found.push({ sql: "parent IS NULL" })
  else if (parent !== undefined) found.push({ sql: "parent = $parent", values: { $parent: parent } })
  if (updatedBefore !== undefined) found.push({ sql: "updated_at < $before", values: { $before: updatedBefore } })
  if (waiting !== undefined) {
    // What is no JSON is let through: it is damage, and no error of the whole query.
    const named = "EXISTS (SELECT 1 FROM json_each(waiting) WHERE value = $waiting)"
    const sql = `CASE WHEN json_valid(waiting) THEN ${named} ELSE TRUE END`
    found.push({ sql, values: { $waiting: waiting } })
  }
  if (after !== undefined) {
    const values = { $afterAt: after.updatedAt, $afterId: after.runId }
    found.push({ sql: "(updated_at, run_id) > ($afterAt, $afterId)", values })
  }
  return found
}

const oneOf = (column: string, values: ReadonlyArray<string>): Condition => ({
  sql: `${column} IN (SELECT value FROM json_each($${column}))`,
  values: { [`$${column}`]: JSON.stringify(values) }
})
