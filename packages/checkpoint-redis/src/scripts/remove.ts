/**
 * Removes a Run.
 *
 * KEYS  1 head (hash), 2 events (stream).
 * ARGV  1 expected seq, or "damaged" for a Run whose head cannot be read.
 * Gives removed with what the index knows the Run by ("" where that is damaged), kept if the Run is not at that seq or can be
 * read, or corrupt.
 *
 * Guarantee: compare-and-delete; both keys of the Run go in one step, or neither.
 *
 * @since 0.1.0
 */
import * as Redis from "effect/persistence/Redis"
import type { RunKeys } from "../Keys.ts"
import { checked } from "./checked.ts"

export interface Args {
  readonly keys: RunKeys
  readonly expectedSeq: number | "damaged"
}

export type Reply =
  | readonly ["removed", row: string, updatedAt: string]
  | readonly ["kept"]
  | readonly ["corrupt", path: string]

export const remove = Redis.script(({ expectedSeq, keys }: Args) => [...keys, expectedSeq], {
  numberOfKeys: 2,
  lua: `${checked}
if ARGV[1] == 'damaged' then
  -- A key of another type makes headOf fail.
  local read, known, damaged = pcall(headOf)
  if read and not damaged then return {'kept'} end
  local row, updatedAt = redis.pcall('HGET', KEYS[1], 'row'), redis.pcall('HGET', KEYS[1], 'updatedAt')
  redis.call('UNLINK', KEYS[1], KEYS[2])
  return {'removed', isText(row) and row or '', isText(updatedAt) and updatedAt or ''}
end
local known, damaged = headOf()
if damaged then return {'corrupt', damaged} end
if not known or known.seq ~= ARGV[1] then return {'kept'} end
redis.call('UNLINK', KEYS[1], KEYS[2])
return {'removed', known.row, known.updatedAt}`
}).withReturnType<Reply>()
