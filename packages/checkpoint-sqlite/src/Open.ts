/**
 * Opens a file as a store's: makes it if there is none, checks it, brings it to the present schema, closes it at the end.
 *
 * Invariants
 *   O1  A file that is not ours, is damaged or is too new is left as it is, byte for byte (RI-131). A WAL
 *       that a dead process left beside it is SQLite's to write back, as with any program that opens the file.
 *   O2  Of processes that open a new file at once one makes the tables and all succeed: a migration is one transaction
 *       that looks at the version again when it holds the lock.
 *   O3  Nobody but the owner can read a file that was made here: mode 0600, and SQLite gives -wal and -shm the file's mode.
 *
 * @since 0.1.0
 */
import { type CheckpointStore, RunError } from "@waystone/core"
import { accessSync, closeSync, constants, existsSync, mkdirSync, openSync, statSync } from "node:fs"
import { dirname } from "node:path"
import type { DatabaseSync } from "node:sqlite"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Connection from "./Connection.ts"
import { Damaged } from "./Failure.ts"
import { type Options, settings, type Settings } from "./Options.ts"
import { number, type Row, text } from "./Row.ts"
import { Driver, unsafe } from "./SqliteDriver.ts"
import { FileTooNew, type OpenError, OptionInvalid } from "./SqliteError.ts"
import { applicationId, migrations, version } from "./Tables.ts"

/**
 * Small pages, since an append writes three of them whole. Measured with appends of 350 bytes: 1024 writes a third less
 * and keeps a quarter more, 4096 writes 1.8 times as much and keeps a tenth less.
 */
const pageSize = 2048

export const open = (options: Options): Effect.Effect<Connection.Connection, OpenError, Scope.Scope> =>
  Effect.gen(function* () {
    const checked = yield* settings(options)
    const driver = yield* Driver
    const attempt = Connection.attempting(checked)
    const folder = yield* attempt(undefined, () => makeFile(checked.file))
    if (folder !== undefined) return yield* folder
    const timeout = Math.min(checked.busyMillis, Connection.nativeWaitMillis)
    const db = yield* Effect.acquireRelease(
      attempt(undefined, () => driver.open(checked.file, { timeout })),
      close
    )
    return yield* Effect.onError(ready(db, checked), () => close(db))
  })

const ready = (db: DatabaseSync, checked: Settings): Effect.Effect<Connection.Connection, OpenError> =>
  Effect.gen(function* () {
    const attempt = Connection.attempting(checked)
    const refused = unsafe(
      yield* attempt(undefined, () => ask(db, "SELECT sqlite_version() AS version", "version", text))
    )
    if (refused !== undefined) return yield* refused
    if (checked.check) yield* attempt(undefined, () => quickCheck(db))
    yield* prepared(db, checked)
    yield* attempt(undefined, () => configure(db, checked))
    return Connection.make(db, checked)
  })

/** The last connection that closes writes the WAL into the file and removes it. */
const close = (db: DatabaseSync) =>
  Effect.sync(() => {
    if (db.isOpen) db.close()
  })

/**
 * SQLite would make the file with mode 0644. A file that exists is not even opened here: closing it again would drop the
 * locks that this process holds on it (https://sqlite.org/howtocorrupt.html, 2.2).
 */
const makeFile = (file: string): OptionInvalid | undefined => {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  if (!existsSync(file)) {
    try {
      closeSync(openSync(file, "wx", 0o600))
    } catch (cause) {
      if (!(cause instanceof Error && "code" in cause && cause.code === "EEXIST")) throw cause
    }
  }
  if (statSync(file).isDirectory()) return new OptionInvalid({ field: "file", detail: `names ${file}, a folder` })
  // SQLite opens what it may not write as read-only and says so at the first append only.
  accessSync(file, constants.R_OK | constants.W_OK)
  return undefined
}

/** Makes or migrates the tables (O1, O2). A file that has them is looked at once, and no more. */
const prepared = Effect.fnUntraced(function* (
  db: DatabaseSync,
  checked: Settings
): Effect.fn.Return<void, Refusal | CheckpointStore.StoreError> {
  const attempt = Connection.attempting(checked)
  const seen = yield* attempt(undefined, () => within(db, "BEGIN", () => look(db)))
  const refused = refusal(seen, checked.file)
  if (refused !== undefined) return yield* refused
  if (seen.version === version) return
  const migrating = Effect.flatMap(
    attempt(undefined, () => prepare(db, checked)),
    (other): Effect.Effect<void, Refusal> => (other === undefined ? Effect.void : Effect.fail(other))
  )
  if (seen.version === 0) return yield* migrating
  const appends = yield* attempt(undefined, () => appendsOf(db))
  yield* telling(migrating, checked.file, appends)
})

/** About how many; the newest row is found at once. */
const appendsOf = (db: DatabaseSync): number =>
  ask(db, "SELECT ifnull(max(rowid), 0) AS appends FROM journal", "appends", number)

/** A migration holds the write lock for seconds where there are many appends, so it is not silent. */
const telling = <A, E>(migrating: Effect.Effect<A, E>, file: string, appends: number): Effect.Effect<A, E> =>
  Effect.gen(function* () {
    yield* Effect.logInfo(
      `${file} is brought to schema version ${version}: about ${appends} appends. Other processes wait or fail with StoreUnavailable until then.`
    )
    const [took, done] = yield* Effect.timed(migrating)
    yield* Effect.logInfo(`${file} has schema version ${version} now, after ${Duration.format(took)}.`)
    return done
  })

const prepare = (db: DatabaseSync, { file }: Settings): Refusal | undefined => {
  db.exec(`PRAGMA page_size = ${pageSize}`)
  return within(db, "BEGIN IMMEDIATE", () => {
    // Another process may have been first, and may be a newer version of this package.
    const present = look(db)
    const refused = refusal(present, file)
    if (refused === undefined && present.version < version) migrate(db, present.version)
    return refused
  })
}

type Refusal = OptionInvalid | FileTooNew | RunError.StoreCorrupt

const refusal = (seen: Seen, file: string): Refusal | undefined => {
  const { application, tables } = seen
  const empty = application === 0 && seen.version === 0 && tables === 0
  if (application !== applicationId && !empty) {
    const detail = `names ${file}, a SQLite file of another application. It was left as it is; choose another path.`
    return new OptionInvalid({ field: "file", detail })
  }
  // The mark and the version are written together.
  if (!empty && seen.version < 1) {
    return new RunError.StoreCorrupt({ store: file, detail: `its schema version (user_version) is ${seen.version}` })
  }
  return seen.version > version ? new FileTooNew({ file, version: seen.version, supported: version }) : undefined
}

const migrate = (db: DatabaseSync, from: number): void => {
  for (const statements of migrations.slice(from)) for (const sql of statements) db.exec(sql)
  db.exec(`PRAGMA application_id = ${applicationId}`)
  db.exec(`PRAGMA user_version = ${version}`)
}

/** What is read in one transaction is of one moment. */
const within = <A>(db: DatabaseSync, begin: "BEGIN" | "BEGIN IMMEDIATE", work: () => A): A => {
  db.exec(begin)
  try {
    const result = work()
    db.exec("COMMIT")
    return result
  } catch (cause) {
    if (db.isTransaction) db.exec("ROLLBACK")
    throw cause
  }
}

interface Seen {
  readonly application: number
  readonly version: number
  readonly tables: number
}

const look = (db: DatabaseSync): Seen => ({
  application: ask(db, "PRAGMA application_id", "application_id", number),
  version: ask(db, "PRAGMA user_version", "user_version", number),
  tables: ask(db, "SELECT count(*) AS tables FROM sqlite_schema", "tables", number)
})

/** Before anything is changed. */
const quickCheck = (db: DatabaseSync): void => {
  const found = ask(db, "PRAGMA quick_check(1)", "quick_check", text)
  if (found !== "ok") throw new Damaged({ path: found.slice(0, 500), seq: 0 })
}

const configure = (db: DatabaseSync, { file, synchronous }: Settings): void => {
  const mode = ask(db, "PRAGMA journal_mode = WAL", "journal_mode", text)
  if (mode !== "wal") {
    throw new RunError.StoreUnavailable({
      detail: `${file} cannot have a WAL (journal mode ${mode}): it must be on a disk of this machine, not on a network drive.`
    })
  }
  db.exec(`PRAGMA synchronous = ${synchronous}`)
}

/** One column of the first row. */
const ask = <A>(db: DatabaseSync, sql: string, column: string, read: (row: Row, column: string) => A): A =>
  read(db.prepare(sql).get() ?? {}, column)
