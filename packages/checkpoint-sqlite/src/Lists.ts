/**
 * Lists the heads of Runs, oldest first.
 *
 * The Runs that are `running` and those that are not are found by indexes of their own and merged by SQLite: an index over
 * `updated_at` of all of them would be written by every append.
 *
 * @since 0.1.0
 */
import type { CheckpointStore } from "@waystone/core"
import type { SQLInputValue } from "node:sqlite"
import type { Connection } from "./Connection.ts"
import { entry, entryColumns, now } from "./Row.ts"

type Filter = CheckpointStore.Filter
type Page = CheckpointStore.Page

export const make = (connection: Connection): Pick<CheckpointStore.CheckpointStore["Service"], "list"> => ({
  list: (filter, page) =>
    connection.attempt(undefined, () => {
      const { parameters, sql } = query(filter, page)
      return connection.db.prepare(sql).all(parameters).map(entry)
    })
})

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
    const sql = "EXISTS (SELECT 1 FROM json_each(waiting) WHERE value = $waiting)"
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
