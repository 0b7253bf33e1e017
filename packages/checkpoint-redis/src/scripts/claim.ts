/**
 * Takes the lease of a Run.
 *
 * KEYS  1 head (hash), 2 events (stream).
 * ARGV  1 owner, 2 ttl in ms, 3 the epoch that is taken over or "".
 * Gives claimed with the new epoch, busy with whose it is, unknown (and creates nothing), or corrupt.
 *
 * Guarantee: one of many claims at once wins, and each raises the epoch. The lease ends by the server's TIME (C4). A live
 * lease is taken only by a claim that names its present epoch.
 *
 * @since 0.1.0
 */
import * as Redis from "effect/persistence/Redis"
import type { RunKeys } from "../Keys.ts"

export interface Args {
  readonly keys: RunKeys
  readonly owner: string
  readonly ttlMillis: number
  readonly takeover: number | undefined
}

export type Reply =
  | readonly ["unknown"]
  | readonly ["claimed", epoch: number, seq: string, previous: string | null]
  | readonly ["busy", epoch: string, owner: string]
  | readonly ["corrupt", path: string]

export const claim = Redis.script(
  ({ keys, owner, takeover, ttlMillis }: Args) => [...keys, owner, ttlMillis, takeover ?? ""],
  {
    numberOfKeys: 2,
    lua: `
local known = redis.call('HMGET', KEYS[1], 'seq', 'epoch', 'owner', 'until')
if not known[1] then
  if redis.call('EXISTS', KEYS[2]) == 1 then return {'corrupt', 'head'} end
  return {'unknown'}
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if known[3] and tonumber(known[4]) > now and ARGV[3] ~= known[2] then return {'busy', known[2], known[3]} end
local epoch = redis.call('HINCRBY', KEYS[1], 'epoch', 1)
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'until', string.format('%.0f', now + tonumber(ARGV[2])))
return {'claimed', epoch, known[1], known[3]}`
  }
).withReturnType<Reply>()
