/**
 * Lets a lease go.
 *
 * KEYS  1 head (hash), 2 events (stream, not changed).
 * ARGV  1 epoch.
 * Gives done, no if the Run has another epoch or is unknown, or corrupt.
 *
 * Guarantee: only the present epoch lets go. The epoch stays, so a late append of that owner is fenced once another claims.
 *
 * @since 0.1.0
 */
import * as Redis from "effect/persistence/Redis"
import type { RunKeys } from "../Keys.ts"
import { checked } from "./checked.ts"

export interface Args {
  readonly keys: RunKeys
  readonly epoch: number
}

export type Reply = readonly ["done"] | readonly ["no"] | readonly ["corrupt", path: string]

export const release = Redis.script(({ epoch, keys }: Args) => [...keys, epoch], {
  numberOfKeys: 2,
  lua: `${checked}
local known, damaged = headOf()
if damaged then return {'corrupt', damaged} end
if not known or known.epoch ~= ARGV[1] then return {'no'} end
redis.call('HDEL', KEYS[1], 'owner', 'until')
return {'done'}`
}).withReturnType<Reply>()
