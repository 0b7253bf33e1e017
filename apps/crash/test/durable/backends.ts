/**
 * The durable stores that every case runs on.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { statSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import type { SharedRedis } from "../../../../packages/checkpoint-redis/test/support/shared.ts"
import type { Store } from "../../src/Job.ts"
import { folder } from "../support.ts"

export interface Backend {
  readonly name: string
  /** An empty store. */
  readonly open: Effect.Effect<Opened, never, Scope.Scope>
}

export interface Opened {
  readonly store: Store
  /** What it takes, in bytes. */
  readonly size: Effect.Effect<number>
  /** The name of everything it keeps: rows, or keys. */
  readonly kept: Effect.Effect<ReadonlyArray<string>>
}

export const sqlite: Backend = {
  name: "SQLite",
  open: Effect.map(folder, (path) => {
    const file = join(path, "runs.db")
    return {
      store: { _tag: "Sqlite", file },
      size: Effect.map(query(file, "PRAGMA wal_checkpoint(TRUNCATE)"), () => statSync(file).size),
      kept: query(
        file,
        "SELECT run_id AS name FROM runs UNION ALL SELECT coalesce(runs.run_id, 'of no Run') FROM journal LEFT JOIN runs USING (rid)"
      )
    }
  })
}

/** On a connection of its own, as another program would. */
const query = (file: string, sql: string): Effect.Effect<ReadonlyArray<string>> =>
  Effect.sync(() => {
    const db = new DatabaseSync(file)
    try {
      return db
        .prepare(sql)
        .all()
        .map((row) => String(row["name"]))
    } finally {
      db.close()
    }
  })

export const redis = ({ ask, freshPrefix, url }: SharedRedis): Backend => ({
  name: "Redis",
  open: Effect.sync(() => {
    const prefix = freshPrefix()
    const keys = Effect.map(Effect.all([ask("KEYS", `${prefix}:{*`), ask("KEYS", `{${prefix}}:*`)]), (found) =>
      found.flatMap((some) => (Array.isArray(some) ? some.map(String) : []))
    )
    const sizeOf = (key: string) => Effect.map(ask("MEMORY", "USAGE", key, "SAMPLES", "0"), Number)
    return {
      store: { _tag: "Redis", url, prefix },
      size: Effect.map(Effect.flatMap(keys, Effect.forEach(sizeOf)), (sizes) => sizes.reduce((a, b) => a + b, 0)),
      kept: keys
    }
  })
})
