/**
 * Lists the heads of Runs, oldest first.
 *
 * The Runs that are `running` and those that are not, or those of each status, are found by indexes of their own and merged
 * by SQLite: an index over `updated_at` of all of them would be written by every append.
 *
 * A damaged Run is left out with a warning, so that it does not hide the others; the page is filled from those after it.
 *
 * @since 0.1.0
 */
import { CheckpointStore, RunError } from "@waystone/core"
import type { SQLInputValue } from "node:sqlite"
import * as Effect from "effect/Effect"
import type { Connection } from "./Connection.ts"
import { Damaged } from "./Failure.ts"
import { entry, entryColumns, now, number, type Row, text } from "./Row.ts"

type Filter = CheckpointStore.Filter
type Page = CheckpointStore.Page

export const make = (connection: Connection): Pick<CheckpointStore.CheckpointStore["Service"], "list"> => ({
  list: (filter, page) =>
    Effect.flatMap(
      connection.attempt(undefined, () => listed(connection, filter, page)),
      ({ damaged, found }) => Effect.as(CheckpointStore.leftOut(damaged.map(corrupt)), found)
    )
})

interface Listed {
  readonly found: ReadonlyArray<CheckpointStore.Entry>
  readonly damaged: ReadonlyArray<Damaged>
}

const listed = ({ db }: Connection, filter: Filter, { after, limit }: Page): Listed => {
  const found: Array<CheckpointStore.Entry> = []
  const damaged: Array<Damaged> = []
  let next = after
  while (true) {
    const wanted = limit - found.length
    const { parameters, sql } = query(filter, next === undefined ? { limit: wanted } : { limit: wanted, after: next })
    const statement = db.prepare(sql)
    // Else one number that is out of range would fail the whole page.
    statement.setReadBigInts(true)
    const rows = statement.all(parameters)
    for (const row of rows) {
      const read = entryOf(row)
      if (read instanceof Damaged) damaged.push(read)
      else found.push(read)
    }
    const last = rows.at(-1)
    if (last === undefined || found.length >= limit || rows.length < wanted) return { found, damaged }
    next = { runId: text(last, "run_id"), updatedAt: number(last, "updated_at") }
  }
}

const entryOf = (row: Row): CheckpointStore.Entry | Damaged => {
  try {
    return entry(row)
  } catch (cause) {
    if (cause instanceof Damaged) return cause
    throw cause
  }
}

const corrupt = ({ path, runId = "without an id", seq }: Damaged) =>
  new RunError.CheckpointCorrupt({ runId, seq, path })

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
  const part = (from: string, of: string) => `SELECT ${entryColumns} FROM ${from} WHERE ${of}${conditions.join("")}`
  const parts = statuses(filter)?.map((status, i) => {
    if (status === "running") return part("runs", "status = 'running'")
    parameters[`$status${i}`] = status
    return part("runs INDEXED BY runs_status", `status <> 'running' AND status = $status${i}`)
  }) ?? [part("runs", "status = 'running'"), resting(filter, part)]
  return { sql: `${parts.join(" UNION ALL ")} ORDER BY updated_at, run_id LIMIT $limit`, parameters }
}

const resting = ({ due, parent, session, waiting }: Filter, part: (from: string, of: string) => string): string => {
  const rests = "status <> 'running'"
  if (due === true) return part("runs INDEXED BY runs_waking", `${rests} AND wake_at <= ${now}`)
  if (session !== undefined || typeof parent === "string") return part("runs", rests)
  return waiting === undefined
    ? part("runs INDEXED BY runs_resting", rests)
    : part("runs INDEXED BY runs_waits", `${rests} AND waiting <> '[]'`)
}

/** Core has seven; SQLite merges 500 at most. */
const maxStatuses = 10

/** The statuses, if they are the best way to the Runs. */
const statuses = ({ due, parent, session, status, waiting }: Filter): ReadonlyArray<string> | undefined => {
  if (due === true || session !== undefined || typeof parent === "string" || waiting !== undefined) return undefined
  const wanted = status === undefined ? [] : [...new Set(status)]
  return wanted.length > 0 && wanted.length <= maxStatuses ? wanted : undefined
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
    // What is no JSON is listed, so that it is found to be damaged.
    const sql =
      "CASE WHEN json_valid(waiting) THEN EXISTS (SELECT 1 FROM json_each(waiting) WHERE value = $waiting) ELSE 1 END"
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
