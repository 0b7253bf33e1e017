/**
 * Finds the row of a Run, without its head.
 *
 * A Run is unknown only if neither table has a row of it: one whose row in `runs` is missing, or says what this package
 * never writes, or does not end where its journal ends, is damaged (RI-106).
 *
 * @since 0.1.0
 */
import type { DatabaseSync } from "node:sqlite"
import { Damaged } from "./Failure.ts"
import { count, ended, last, live, number, optionalText, type Row, waiting } from "./Row.ts"

export interface Found {
  readonly rid: number
  readonly seq: number
  readonly epoch: number
  readonly owner: string | undefined
  readonly live: boolean
  /** With the columns that a list filters by. */
  readonly row: Row
}

export interface Find {
  /** Undefined if the Run is unknown; throws Damaged. */
  readonly run: (runId: string) => Found | undefined
  /** Throws Damaged if the journal has a Run that `runs` does not have. */
  readonly unknown: (runId: string) => undefined
}

export const make = (db: DatabaseSync): Find => {
  const find = db.prepare(
    `SELECT rid, run_id, seq, ${last}, epoch, owner, ${live}, status, agent, session, parent, waiting, wake_at FROM runs WHERE run_id = ?`
  )
  // One statement, one snapshot: another process may create the Run after it was not found.
  const orphaned = db.prepare(
    "SELECT 1 FROM journal WHERE run_id = $id AND NOT EXISTS (SELECT 1 FROM runs WHERE run_id = $id)"
  )
  const unknown = (runId: string): undefined => {
    if (orphaned.get({ $id: runId }) !== undefined) throw new Damaged({ path: "runs: missing", seq: 0 })
    return undefined
  }
  return {
    unknown,
    run: (runId) => {
      const row = find.get(runId)
      if (row === undefined) return unknown(runId)
      waiting(row)
      const seq = count(row, "seq", 1)
      ended(row)
      return {
        rid: number(row, "rid"),
        seq,
        epoch: count(row, "epoch", 0),
        owner: optionalText(row, "owner"),
        live: number(row, "live") === 1,
        row
      }
    }
  }
}
