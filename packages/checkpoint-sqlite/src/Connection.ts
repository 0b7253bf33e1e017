/**
 * One open connection: runs a piece of synchronous work as an Effect, alone or in a transaction.
 *
 * Invariants
 *   Q1  A transaction is IMMEDIATE: it holds the write lock before it reads, so what it compares is what it changes.
 *   Q2  A transaction that throws has no effect.
 *   Q3  Work that meets another connection's lock is done again, whole, until the busy time is over. SQLite itself waits
 *       only a little each time, since that blocks the event loop, and with it the renewal of leases.
 *
 * @since 0.1.0
 */
import { type CheckpointStore, RunError } from "@waystone/core"
import type { DatabaseSync } from "node:sqlite"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { type Failed, failureOf } from "./Failure.ts"
import { standardBusyMillis, type Settings } from "./Options.ts"

/** How long SQLite waits for a lock, ms. A commit takes 0.1 to 30 ms, so this is enough for most. */
export const nativeWaitMillis = 50
/** How long the event loop is free between two tries, ms. */
const pauseMillis = 10

type StoreError = CheckpointStore.StoreError

export interface Connection {
  readonly db: DatabaseSync
  /** Does synchronous work that concerns this Run (undefined: the whole file). */
  readonly attempt: <A>(runId: string | undefined, work: () => A) => Effect.Effect<A, StoreError>
  /** Does it in a transaction (Q1, Q2). */
  readonly transaction: <A>(runId: string, work: () => A) => Effect.Effect<A, StoreError>
}

export const make = (db: DatabaseSync, settings: Settings): Connection => {
  const begin = db.prepare("BEGIN IMMEDIATE")
  const commit = db.prepare("COMMIT")
  const rollback = db.prepare("ROLLBACK")
  const attempt = attempting(settings)
  const whole = <A>(work: () => A): A => {
    begin.run()
    try {
      const result = work()
      commit.run()
      return result
    } catch (cause) {
      // SQLite ends a transaction itself after some errors, a full disk for one.
      if (db.isTransaction) rollback.run()
      throw cause
    }
  }
  return { db, attempt, transaction: (runId, work) => attempt(runId, () => whole(work)) }
}

/** The same for work before there is a connection. */
export const attempting =
  ({ busyMillis, file }: Settings) =>
  <A>(runId: string | undefined, work: () => A): Effect.Effect<A, StoreError> => {
    const once: Effect.Effect<A, Failed> = Effect.suspend(() => {
      try {
        return Effect.succeed(work())
      } catch (cause) {
        const failure = failureOf(cause, { file, runId })
        return failure === undefined ? Effect.die(cause) : Effect.fail(failure)
      }
    })
    return Effect.catchTag(once, "Busy", () => again(once, { busyMillis, file }))
  }

/** Tries are timed, since they take longer on a busy machine, and counted, so that it ends whatever the caller's Clock says. */
const again = <A>(once: Effect.Effect<A, Failed>, { busyMillis, file }: Pick<Settings, "busyMillis" | "file">) =>
  Effect.retry(once, {
    schedule: Schedule.upTo(Schedule.jittered(Schedule.spaced(pauseMillis)), {
      duration: Math.max(0, busyMillis - nativeWaitMillis),
      times: Math.floor(busyMillis / (nativeWaitMillis + pauseMillis))
    }),
    while: (failure) => failure._tag === "Busy"
  }).pipe(
    Effect.catchTag("Busy", () =>
      Effect.fail(
        new RunError.StoreUnavailable({
          detail: `${file} was locked by another process for ${busyMillis} ms. Find who holds it (a backup, a shell, a debugger?)${busyMillis < standardBusyMillis ? `, or raise busyTimeout (default ${standardBusyMillis} ms)` : ""}.`
        })
      )
    )
  )
