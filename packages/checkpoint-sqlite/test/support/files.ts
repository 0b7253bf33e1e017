/** Temp folders and second connections, for the tests of this package. */
import { createHash } from "node:crypto"
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { DatabaseSync, type SQLOutputValue } from "node:sqlite"
import type { CheckpointStore } from "@waystone/core"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import * as SqliteStore from "../../src/SqliteStore.ts"

/** A folder that is removed with the scope. */
export const folder: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "waystone-sqlite-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** A path in a folder of its own. */
export const file: Effect.Effect<string, never, Scope.Scope> = Effect.map(folder, (path) => join(path, "runs.db"))

/** A store over the file; fast, since no test can cut the power. */
export const store = (path: string, options: Partial<SqliteStore.Options> = {}) =>
  SqliteStore.make({ file: path, durability: "process", ...options })

/** A store over a file of its own. */
export const fresh = Effect.flatMap(file, store)

/** What another program sees in the file, on a connection of its own. */
export const rows = (path: string, sql: string): ReadonlyArray<Record<string, SQLOutputValue>> => {
  const db = new DatabaseSync(path)
  try {
    return db.prepare(sql).all()
  } finally {
    db.close()
  }
}

/** Changes the file behind the store's back. */
export const change = (path: string, ...statements: ReadonlyArray<string>): void => {
  const db = new DatabaseSync(path)
  try {
    for (const sql of statements) db.exec(sql)
  } finally {
    db.close()
  }
}

/** A digest of every file in the folder of that file, by name. */
export const bytes = (path: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(dirname(path))
      .toSorted()
      .map((name) => [
        name,
        createHash("sha256")
          .update(readFileSync(join(dirname(path), name)))
          .digest("hex")
      ])
  )

/** Permission bits, in octal. */
export const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8)

export const head = (fields: Partial<CheckpointStore.HeadRow> = {}): CheckpointStore.HeadRow => ({
  status: "running",
  agent: "a",
  waiting: [],
  updatedAt: 1,
  body: "{}",
  ...fields
})

/** Its failure; dies with the value if there is none. */
export const failure = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<E, never, R> =>
  Effect.flatMap(Effect.exit(effect), (exit) => {
    if (Exit.isSuccess(exit)) return Effect.die(new Error(`it succeeded: ${JSON.stringify(exit.value)}`))
    const failed = exit.cause.reasons.find(Cause.isFailReason)
    return failed === undefined ? Effect.die(new Error(Cause.pretty(exit.cause))) : Effect.succeed(failed.error)
  })
