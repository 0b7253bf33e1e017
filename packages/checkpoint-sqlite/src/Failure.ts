/**
 * Says what a thrown value of `node:sqlite` means: busy, unavailable, corrupt, or a bug of ours.
 *
 * Only SQLite's own verdict (SQLITE_CORRUPT, SQLITE_NOTADB, tables that our statements do not fit: the file) or a row that
 * cannot be one of ours (its Run) is corruption; a full disk or a lock never is (RI-131).
 *
 * @since 0.1.0
 */
import { type CheckpointStore, RunError } from "@waystone/core"
import * as Data from "effect/Data"

/** Primary result codes, https://sqlite.org/rescode.html. */
const code = {
  error: 1,
  internal: 2,
  busy: 5,
  locked: 6,
  noMemory: 7,
  readonly: 8,
  io: 10,
  corrupt: 11,
  full: 13,
  cantOpen: 14,
  protocol: 15,
  tooBig: 18,
  constraint: 19,
  notDb: 26
}

/** A row that this package never writes. `path` says where, `seq` which event, 0 if it is none, `runId` whose it is if it says so. */
export class Damaged extends Data.TaggedError("Damaged")<{
  readonly path: string
  readonly seq: number
  readonly runId?: string
}> {}

/** Another connection holds the lock that is needed. */
export class Busy extends Data.TaggedError("Busy")<{}> {}

/** Where something failed. Without a `runId` it concerns the whole file. */
export interface Place {
  readonly file: string
  readonly runId: string | undefined
}

export type Failed = Busy | CheckpointStore.StoreError

/** Undefined if it is none of SQLite's or the file system's failures: then it is a bug. */
export const failureOf = (cause: unknown, { file, runId }: Place): Failed | undefined => {
  if (cause instanceof Damaged) return damage(cause, { file, runId })
  if (cause instanceof RunError.StoreUnavailable) return cause
  if (!(cause instanceof Error)) return undefined
  const unavailable = (what: string) => new RunError.StoreUnavailable({ detail: `${file}: ${what}` })
  if ("errcode" in cause && typeof cause.errcode === "number") {
    const primary = cause.errcode & 0xff
    if (primary === code.busy || primary === code.locked) return new Busy()
    const said = `${cause.message} (SQLite code ${cause.errcode})`
    if (cause.errcode === byTrigger) return unavailable(`a trigger that is not ours refused it: ${said}. Drop it.`)
    if (primary === code.constraint) return damage(new Damaged({ path: disagree, seq: 0 }), { file, runId })
    if (fileIsWrong.has(primary) || (primary === code.error && !oursToRepair.test(cause.message))) {
      return new RunError.StoreCorrupt({ store: file, detail: said })
    }
    const advice = advices.get(primary)
    return advice === undefined ? undefined : unavailable(`${said}. ${advice}`)
  }
  if (!("code" in cause) || typeof cause.code !== "string") return undefined
  if (cause.code === "ERR_OUT_OF_RANGE") return damage(new Damaged({ path: cause.message, seq: 0 }), { file, runId })
  if (cause.code === "ERR_INVALID_STATE") return unavailable("the store is closed: its scope has ended.")
  if ("syscall" in cause) return unavailable(`${cause.code} in ${String(cause.syscall)}. ${accessAdvice}`)
  return undefined
}

/** Of the Run whose row it is, or else of the file. */
const damage = ({ path, runId: own, seq }: Damaged, { file, runId = own }: Place): Failed =>
  runId === undefined
    ? new RunError.StoreCorrupt({ store: file, detail: path })
    : new RunError.CheckpointCorrupt({ runId, seq, path })

const fileIsWrong: ReadonlySet<number> = new Set([code.corrupt, code.notDb, code.internal])

/** SQLITE_CONSTRAINT_TRIGGER: `RAISE` in a trigger, and we make none. */
const byTrigger = 1811

/** What is added never breaks a constraint of tables that agree with each other. SQL is not for whoever reads the error. */
const disagree = "runs and journal: they do not agree"

/**
 * The statements are fixed and tested, so when SQLite cannot prepare or run one (no such table, no such column, malformed
 * JSON, unsupported file format), somebody changed the file. These alone say that the statement is wrong.
 */
const oursToRepair = /syntax error|transaction|incomplete input|too many|wrong number of arguments|no such function/

const accessAdvice = "Check that this user may read and write the file, its -wal and -shm files and its folder."

const advices: ReadonlyMap<number, string> = new Map([
  [code.full, "The disk or the quota is full: make room and come back. Nothing was half written."],
  [code.readonly, accessAdvice],
  [code.cantOpen, accessAdvice],
  [code.io, "The disk failed to read or write. Look at the system's log; the file was left as it is."],
  [code.noMemory, "There is not enough memory."],
  [code.protocol, "Too many processes opened the file at once: come back."],
  [code.tooBig, "An append is larger than SQLite can hold (1 GB)."]
])
