/**
 * Makes a lease last longer.
 *
 * KEYS  1 head (hash), 2 events (stream, not changed).
 * ARGV  1 epoch, 2 owner, 3 ttl in ms.
 * Gives done, no if the Run has another epoch or owner or is unknown, or corrupt.
 *
 * Guarantee: only the present owner renews, and the lease then ends ttl after the server's TIME (C4).
 *
 * @since 0.1.0
 */
import * as Redis from "effect/persistence/Redis"
import type { RunKeys } from "../Keys.ts"
import { checked } from "./checked.ts"
import { clock } from "./clock.ts"

export interface Args {
  readonly keys: RunKeys
  readonly epoch: number
  readonly owner: string
  readonly ttlMillis: number
}

export type Reply = readonly ["done"] | readonly ["no"] | readonly ["corrupt", path: string]

export const renew = Redis.script(({ epoch, keys, owner, ttlMillis }: Args) => [...keys, epoch, owner, ttlMillis], {
  numberOfKeys: 2,
  lua: `${checked}
local known, damaged = headOf()
if damaged then return {'corrupt', damaged} end
if not known or known.epoch ~= ARGV[1] or known.owner ~= ARGV[2] then return {'no'} end
${clock}
redis.call('HSET', KEYS[1], 'until', after(ARGV[3]))
return {'done'}`
}).withReturnType<Reply>()
