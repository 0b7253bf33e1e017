/**
 * Encodes a head as fields of a hash, and decodes them again or says which one is damaged.
 *
 * @since 0.1.0
 */
import { type CheckpointStore, RunError } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

/** What the index knows a Run by, but for `updatedAt`, which changes with every append. */
const Row = Schema.Struct({
  status: Schema.String,
  agent: Schema.String,
  session: Schema.optionalKey(Schema.String),
  parent: Schema.optionalKey(Schema.String),
  waiting: Schema.Array(Schema.String),
  wakeAt: Schema.optionalKey(Schema.Finite)
})
export type Row = typeof Row.Type

const decodeRow = Schema.decodeUnknownOption(Schema.fromJsonString(Row))

/** The same row is the same text. */
export const encode = ({ agent, parent, session, status, waiting, wakeAt }: Row): string =>
  JSON.stringify({ status, agent, session, parent, waiting, wakeAt })

/** Undefined if it is missing or damaged. */
export const decode = (row: string | null | undefined): Row | undefined => Option.getOrUndefined(decodeRow(row))

/** Decodes what `scripts/heads` gives of a Run. */
export const entry = (
  runId: string,
  nowText: string,
  fields: ReadonlyArray<string | null>
): Result.Result<CheckpointStore.Entry, RunError.CheckpointCorrupt> => {
  const [seqText, epochText, owner = null, until = null, rowText, updatedAtText, body] = fields
  const [seq, epoch, updatedAt] = [count(seqText), count(epochText), number(updatedAtText)]
  if (seq === undefined) return damage(runId, 0, "head.seq")
  if (epoch === undefined) return damage(runId, 0, "head.epoch")
  if (updatedAt === undefined) return damage(runId, 0, "head.updatedAt")
  const row = decode(rowText)
  if (row === undefined) return damage(runId, 0, "head.row")
  if (typeof body !== "string") return damage(runId, 0, "head.body")
  const ends = count(until)
  if (owner !== null && ends === undefined) return damage(runId, 0, "head.until")
  const live = owner !== null && ends !== undefined && ends > Number(nowText)
  return Result.succeed({
    ...row,
    updatedAt,
    body,
    runId,
    seq,
    epoch,
    live,
    ...(owner === null ? undefined : { owner })
  })
}

/** Nothing is repaired or deleted: it is left as it is. */
export const damage = (runId: string, seq: number, path: string): Result.Result<never, RunError.CheckpointCorrupt> =>
  Result.fail(new RunError.CheckpointCorrupt({ runId, seq, path }))

/** `damage` as a failure. */
export const damaged = (runId: string, seq: number, path: string): Effect.Effect<never, RunError.CheckpointCorrupt> =>
  Effect.fromResult(damage(runId, seq, path))

/** A finite number, or nothing. */
export const number = (text: string | null | undefined): number | undefined => {
  const value = typeof text === "string" && text !== "" ? Number(text) : Number.NaN
  return Number.isFinite(value) ? value : undefined
}

/** A whole number from 0, or nothing. */
export const count = (text: string | null | undefined): number | undefined => {
  const value = number(text)
  return value !== undefined && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}
