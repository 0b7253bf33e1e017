/**
 * Makes a lease last longer.
 *
 * KEYS  1 head (hash), 2 events (stream, not touched).
 * ARGV  1 epoch, 2 ttl in ms.
 * Gives 1, or 0 if the Run has another epoch or is unknown.
 *
 * Guarantee: only the present epoch renews, and the lease then ends ttl after the server's TIME (C4).
 *
 * @since 0.1.0
 */
import * as Redis from "effect/persistence/Redis"
import type { RunKeys } from "../Keys.ts"

export interface Args {
  readonly keys: RunKeys
  readonly epoch: number
  readonly ttlMillis: number
}

export const renew = Redis.script(({ epoch, keys, ttlMillis }: Args) => [...keys, epoch, ttlMillis], {
  numberOfKeys: 2,
  lua: `
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return 0 end
local time = redis.call('TIME')
local ends = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[2])
redis.call('HSET', KEYS[1], 'until', string.format('%.0f', ends))
return 1`
}).withReturnType<number>()
