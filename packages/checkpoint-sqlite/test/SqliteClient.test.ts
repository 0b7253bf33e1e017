import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import * as SqliteClient from "../src/SqliteClient.ts"
import { failure, file, head, mode, store } from "./support/files.ts"

describe("SqliteClient", () => {
  it.live("reads the heads and keeps tables of its own beside the Runs", () =>
    Effect.gen(function* () {
      const path = yield* file
      const one = yield* store(path)
      yield* one.append({ runId: "r", epoch: 0, expectedSeq: 0, events: ["1"], head: head() })
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`CREATE TABLE notes (id INTEGER UNIQUE, at TEXT, done INTEGER, body BLOB)`
        const at = new Date(0)
        yield* sql`INSERT INTO notes (id, at, done, body) VALUES (1, ${at}, ${true}, ${new Uint8Array([1, 2])})`
        const rows = yield* sql`SELECT at, done, hex(body) AS body FROM notes`
        expect(rows).toEqual([expect.objectContaining({ at: at.toISOString(), done: 1, body: "0102" })])
        expect(yield* sql`SELECT run_id, seq FROM runs`.values).toEqual([["r", 1]])
        const added = sql`INSERT INTO notes (done) VALUES (0)`
        yield* Effect.ignore(sql.withTransaction(Effect.andThen(added, Effect.fail("no"))))
        yield* sql.withTransaction(added)
        expect(yield* sql`SELECT count(*) AS n FROM notes`.values).toEqual([[2]])
        const error = yield* failure(sql`INSERT INTO notes (id) VALUES (1)`)
        expect(error.reason._tag).toBe("UniqueViolation")
      }).pipe(Effect.provide(SqliteClient.layer({ file: path })))
      expect(yield* one.append({ runId: "r", epoch: 0, expectedSeq: 1, events: ["2"], head: head() })).toEqual({
        _tag: "Committed"
      })
    })
  )

  it.live("opens a new file as a store does, and refuses the same", () =>
    Effect.gen(function* () {
      const path = yield* file
      yield* Effect.provide(
        SqlClient.SqlClient.use((sql) => sql`CREATE TABLE mine (a)`),
        SqliteClient.layer({ file: path })
      )
      expect(mode(path)).toBe("600")
      expect(yield* (yield* store(path)).head("r")).toBeUndefined()
      const error = yield* failure(
        Effect.provide(
          SqlClient.SqlClient.use((sql) => sql`SELECT 1`),
          SqliteClient.layer({ file: ":memory:" })
        )
      )
      expect(error).toMatchObject({ _tag: "OptionInvalid", field: "file" })
    })
  )
})
