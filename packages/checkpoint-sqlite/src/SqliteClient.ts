/**
 * An `effect/sql` client over a store's file, for applications that keep tables of their own beside the Runs.
 *
 * It has a connection of its own and opens the file with the same checks as the store. The store does not use it: raw
 * statements cost half. Leave the tables `runs` and `journal`, `user_version` and `application_id` alone.
 *
 * @since 0.1.0
 */
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as SqlClient from "effect/sql/SqlClient"
import type { Connection } from "effect/sql/SqlConnection"
import * as SqlError from "effect/sql/SqlError"
import * as Statement from "effect/sql/Statement"
import { open } from "./Open.ts"
import type { Options } from "./Options.ts"
import type { OpenError } from "./SqliteError.ts"

export type { Options } from "./Options.ts"

/** Prepared statements that are kept. */
const cacheSize = 256

export const make = (
  options: Options
): Effect.Effect<SqlClient.SqlClient, OpenError, Scope.Scope | Reactivity.Reactivity> =>
  Effect.gen(function* () {
    const { db } = yield* open(options)
    const connection = connectionOf(db)
    const semaphore = yield* Semaphore.make(1)
    return yield* SqlClient.make({
      acquirer: semaphore.withPermits(1)(Effect.succeed(connection)),
      borrower: (use) => semaphore.withPermits(1)(use(connection)),
      // A transaction holds the connection until its scope ends.
      transactionAcquirer: Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          const scope = yield* Effect.scope
          yield* restore(semaphore.take(1))
          yield* Scope.addFinalizer(scope, semaphore.release(1))
          return connection
        })
      ),
      compiler: Statement.makeCompilerSqlite(),
      driver: "node-sqlite",
      // A transaction that reads first and writes later would fail at once when another process wrote in between.
      beginTransaction: "BEGIN IMMEDIATE",
      prepareTransactionControls: true,
      isTransaction: () => db.isTransaction,
      spanAttributes: [["db.system.name", "sqlite"]]
    })
  })

/** Provides the client. Fails like `SqliteStore.layer`. */
export const layer = (options: Options): Layer.Layer<SqlClient.SqlClient, OpenError> =>
  Layer.effect(SqlClient.SqlClient, make(options)).pipe(Layer.provide(Reactivity.layer))

const connectionOf = (db: DatabaseSync): Connection => {
  const prepare = preparing(db)
  const ask = <A>(sql: string, how: (statement: StatementSync) => A) =>
    Effect.suspend(() => {
      try {
        return Effect.succeed(how(prepare(sql)))
      } catch (cause) {
        return Effect.fail(sqlError(cause))
      }
    })
  const rows = (sql: string, params: ReadonlyArray<unknown>) =>
    ask(sql, (statement) => statement.all(...params.map(bindable)))
  const values = (sql: string, params: ReadonlyArray<unknown>) =>
    Effect.map(
      ask(sql, (statement) => {
        statement.setReturnArrays(true)
        try {
          return statement.all(...params.map(bindable))
        } finally {
          statement.setReturnArrays(false)
        }
      }),
      (found) => found.map((row) => Object.values(row))
    )
  const execute: Connection["execute"] = (sql, params, transform) =>
    transform === undefined ? rows(sql, params) : Effect.map(rows(sql, params), transform)
  return {
    execute,
    executeUnprepared: execute,
    executeRaw: (sql, params) =>
      ask(sql, (statement) =>
        statement.columns().length > 0 ? statement.all(...params.map(bindable)) : statement.run(...params.map(bindable))
      ),
    executeValues: values,
    executeValuesUnprepared: values,
    executeStream: (sql, params, transform) =>
      Stream.unwrap(Effect.map(execute(sql, params, transform), (found) => Stream.fromIterable(found)))
  }
}

/** Keeps the newest statements. */
const preparing = (db: DatabaseSync) => {
  const kept = new Map<string, StatementSync>()
  return (sql: string): StatementSync => {
    const known = kept.get(sql)
    if (known !== undefined) return known
    const oldest = kept.keys().next()
    if (kept.size >= cacheSize && oldest.done !== true) kept.delete(oldest.value)
    const statement = db.prepare(sql)
    kept.set(sql, statement)
    return statement
  }
}

const bindable = (value: unknown): SQLInputValue => {
  if (value === undefined || value === null) return null
  if (typeof value === "string" || typeof value === "number" || typeof value === "bigint") return value
  if (typeof value === "boolean") return value ? 1 : 0
  if (value instanceof Date) return value.toISOString()
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
  throw new TypeError(`SQLite cannot hold a parameter of type ${typeof value}`)
}

/** `node:sqlite` names SQLite's code `errcode`; effect looks for `errno`. */
const sqlError = (cause: unknown) => {
  const known = cause instanceof Error && "errcode" in cause ? Object.assign(cause, { errno: cause.errcode }) : cause
  const message = cause instanceof Error ? cause.message : "SQLite failed"
  return new SqlError.SqlError({ reason: SqlError.classifySqliteError(known, { message, operation: "execute" }) })
}
