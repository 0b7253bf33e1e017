/**
 * Reads typed values from rows; a value of another type is damage, never `null` or a guess (RI-106).
 *
 * @since 0.1.0
 */
import type { CheckpointStore } from "@waystone/core"
import type { SQLOutputValue } from "node:sqlite"
import { Damaged } from "./Failure.ts"

export type Row = Readonly<Record<string, SQLOutputValue>>

export const text = (row: Row, column: string): string => {
  const value = row[column]
  return typeof value === "string" ? value : damaged(row, column)
}

/** A finite number. */
export const number = (row: Row, column: string): number => {
  const value = row[column]
  if (typeof value === "number") return Number.isFinite(value) ? value : damaged(row, column)
  // Statements that read big integers give all of them as such.
  const small = typeof value === "bigint" ? Number(value) : Number.NaN
  return Number.isSafeInteger(small) ? small : damaged(row, column)
}

/** A whole number from `least`. */
export const count = (row: Row, column: string, least: number): number => {
  const value = number(row, column)
  return Number.isSafeInteger(value) && value >= least ? value : damaged(row, column)
}

export const optionalText = (row: Row, column: string): string | undefined =>
  row[column] === null ? undefined : text(row, column)

export const optionalNumber = (row: Row, column: string): number | undefined =>
  row[column] === null ? undefined : number(row, column)

/** Epoch ms by SQLite's clock: the machine's, whatever the caller's Clock says (C4). */
export const now = "unixepoch('subsec') * 1000"

/** Whether somebody holds the Run: 1 or 0. */
export const live = `owner IS NOT NULL AND until > ${now} AS live`

/** The seq that the journal of a row of `runs` ends at. */
export const last = "(SELECT max(journal.seq) FROM journal WHERE journal.rid = runs.rid) AS last"

/** Throws Damaged if the journal does not end where the head says. */
export const ended = (row: Row): void => {
  if (row["last"] !== row["seq"]) damaged(row, "seq")
}

/** The columns of an `Entry`. */
export const entryColumns = `run_id, seq, ${last}, epoch, owner, ${live},
  status, agent, session, parent, waiting, wake_at, updated_at, head`

/** Throws Damaged, also if the journal does not end where the head says. */
export const entry = (row: Row): CheckpointStore.Entry => {
  const seq = count(row, "seq", 1)
  ended(row)
  const owner = optionalText(row, "owner")
  const session = optionalText(row, "session")
  const parent = optionalText(row, "parent")
  const wakeAt = optionalNumber(row, "wake_at")
  return {
    runId: text(row, "run_id"),
    seq,
    epoch: count(row, "epoch", 0),
    live: number(row, "live") === 1,
    status: text(row, "status"),
    agent: text(row, "agent"),
    waiting: waiting(row),
    updatedAt: number(row, "updated_at"),
    body: text(row, "head"),
    ...(owner === undefined ? undefined : { owner }),
    ...(session === undefined ? undefined : { session }),
    ...(parent === undefined ? undefined : { parent }),
    ...(wakeAt === undefined ? undefined : { wakeAt })
  }
}

/** The kinds of the open waits. */
export const waiting = (row: Row): ReadonlyArray<string> => {
  const kinds = parsed(text(row, "waiting"))
  return Array.isArray(kinds) && kinds.every((kind) => typeof kind === "string") ? kinds : damaged(row, "waiting")
}

const parsed = (json: string): unknown => {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

/** A list has no Run of its own, so the row says whose it is. */
const damaged = (row: Row, column: string): never => {
  const path = `runs.${column}`
  const runId = row["run_id"]
  throw new Damaged(typeof runId === "string" ? { path, seq: 0, runId } : { path, seq: 0 })
}
