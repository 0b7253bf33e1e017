/**
 * Says why a file cannot be opened as a store; a damaged file is `StoreCorrupt` of core, as it is later on.
 *
 * Each names what to do. None of them changes a byte of the file.
 *
 * @since 0.1.0
 */
import type { CheckpointStore } from "@waystone/core"
import * as Schema from "effect/Schema"

/** An option is out of range, or the file is not one for a store. */
export class OptionInvalid extends Schema.TaggedError<OptionInvalid>()("OptionInvalid", {
  field: Schema.String,
  detail: Schema.String
}) {
  override readonly message = `SqliteStore option "${this.field}" ${this.detail}`
}

/** This Node brings a SQLite that can damage a file that several connections write (RI-130). */
export class SqliteUnsafe extends Schema.TaggedError<SqliteUnsafe>()("SqliteUnsafe", {
  version: Schema.String,
  detail: Schema.String
}) {
  override readonly message = `SQLite ${this.version} must not be used: ${this.detail}`
}

/** A newer version of this package made or migrated the file. */
export class FileTooNew extends Schema.TaggedError<FileTooNew>()("FileTooNew", {
  file: Schema.String,
  version: Schema.Int,
  supported: Schema.Int
}) {
  override readonly message = `${this.file} has schema version ${this.version}, and this @waystone/checkpoint-sqlite knows versions up to ${this.supported}. Upgrade the package; the file was left as it is.`
}

/** All that opening a store can fail with. */
export type OpenError = OptionInvalid | SqliteUnsafe | FileTooNew | CheckpointStore.StoreError
