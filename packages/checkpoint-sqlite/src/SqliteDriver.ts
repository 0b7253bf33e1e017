/**
 * Opens a connection to a SQLite file, and says which SQLite versions are safe.
 *
 * It is a `Context.Reference`, so nobody has to provide it; a test provides one that opens connections with faults.
 *
 * @since 0.1.0
 */
import { DatabaseSync } from "node:sqlite"
import * as Context from "effect/Context"
import { SqliteUnsafe } from "./SqliteError.ts"

export interface Driver {
  /** Opens or creates the file. `timeout`: how many ms a statement waits for another connection's lock. */
  readonly open: (file: string, options: { readonly timeout: number }) => DatabaseSync
}

/** Default: `node:sqlite`. */
export const Driver: Context.Reference<Driver> = Context.Reference("@waystone/checkpoint-sqlite/Driver", {
  defaultValue: (): Driver => ({ open: (file, options) => new DatabaseSync(file, options) })
})

/**
 * Why a version must not write a file that others write too; undefined if it may.
 *
 * Up to 3.51.2 a checkpoint that meets a reset of the WAL can skip committed pages: acknowledged appends are lost and the
 * file is damaged (https://sqlite.org/wal.html#walresetbug). 3.50.7 and 3.44.6 have the repair too.
 */
export const unsafe = (version: string): SqliteUnsafe | undefined => {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number)
  const repaired =
    major > 3 ||
    (major === 3 &&
      (minor > 51 || (minor === 51 && patch >= 3) || (minor === 50 && patch >= 7) || (minor === 44 && patch >= 6)))
  if (repaired) return undefined
  return new SqliteUnsafe({
    version,
    detail:
      "it can lose committed pages of a WAL file (https://sqlite.org/wal.html#walresetbug, repaired in 3.51.3). It is part of Node: use a newer Node, for example 24.21."
  })
}
