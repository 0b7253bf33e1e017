/**
 * Reads the head of a Run.
 *
 * KEYS  1 head (hash), 2 events (stream).
 * Gives the server's time in ms and the fields seq, epoch, owner, until, row, updatedAt and body; or unknown, or corrupt.
 *
 * Guarantee: reads only. A Run whose head is gone is not taken for an unknown one while its events are there (RI-072).
 *
 * @since 0.1.0
 */
import * as Redis from "effect/persistence/Redis"
import type { RunKeys } from "../Keys.ts"

/** The fields are null where they are missing. */
export type Reply =
  | readonly ["unknown"]
  | readonly ["head", now: string, ...fields: ReadonlyArray<string | null>]
  | readonly ["corrupt", path: string]

export const head = Redis.script((keys: RunKeys) => keys, {
  numberOfKeys: 2,
  lua: `
local known = redis.call('HMGET', KEYS[1], 'seq', 'epoch', 'owner', 'until', 'row', 'updatedAt', 'body')
if not known[1] then
  if redis.call('EXISTS', KEYS[1], KEYS[2]) > 0 then return {'corrupt', 'head'} end
  return {'unknown'}
end
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
return {'head', now, unpack(known)}`
}).withReturnType<Reply>()
