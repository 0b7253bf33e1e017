/**
 * Keeps Runs in one SQLite file that any number of processes of one machine share.
 *
 * An append that was answered survives what `durability` says. Nothing is ever deleted, renamed or repaired on an error.
 * Statements run on the event loop's thread: an append takes 0.1 ms, and one fsync more with `power-loss`.
 *
 * @since 0.1.0
 */
import { CheckpointStore } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Find from "./Find.ts"
import * as Journal from "./Journal.ts"
import * as Leases from "./Leases.ts"
import * as Lists from "./Lists.ts"
import { open } from "./Open.ts"
import type { Options } from "./Options.ts"
import type { OpenError } from "./SqliteError.ts"

export type { Options } from "./Options.ts"

/** A store over the file, on a connection of its own that is closed with the scope. */
export const make = (
  options: Options
): Effect.Effect<CheckpointStore.CheckpointStore["Service"], OpenError, Scope.Scope> =>
  Effect.flatMap(open(options), (connection) =>
    // Preparing the statements looks at the tables, so it can find damage.
    connection.attempt(undefined, () => {
      const find = Find.make(connection.db)
      return CheckpointStore.CheckpointStore.of({
        ...Journal.make(connection, find),
        ...Leases.make(connection, find),
        ...Lists.make(connection)
      })
    })
  )

/**
 * Provides a store over the file.
 *
 * Fails with OptionInvalid (which names the option), SqliteUnsafe (this Node's SQLite can damage files), FileTooNew,
 * StoreCorrupt (no SQLite file, or a damaged one), StoreUnavailable (no access, no room, locked for too long).
 *
 * @example
 * SqliteStore.layer({ file: "data/runs.db" })
 */
export const layer = (options: Options): Layer.Layer<CheckpointStore.CheckpointStore, OpenError> =>
  Layer.effect(CheckpointStore.CheckpointStore, make(options))
