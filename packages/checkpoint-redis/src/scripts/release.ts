/**
 * Lets a lease go.
 *
 * KEYS  1 head (hash), 2 events (stream, not changed).
 * ARGV  1 epoch, 2 owner.
 * Gives done, no if the Run has another epoch or owner or is unknown, or corrupt.
 *
 * Guarantee: only the present owner lets go. The epoch stays, and a late append of that owner is fenced.
 *
 * @since 0.1.0
 */
import * as Redis from "effect/persistence/Redis"
import type { RunKeys } from "../Keys.ts"
import { checked } from "./checked.ts"

export interface Args {
  readonly keys: RunKeys
  readonly epoch: number
  readonly owner: string
}

export type Reply = readonly ["done"] | readonly ["no"] | readonly ["corrupt", path: string]

export const release = Redis.script(({ epoch, keys, owner }: Args) => [...keys, epoch, owner], {
  numberOfKeys: 2,
  lua: `${checked}
local known, damaged = headOf()
if damaged then return {'corrupt', damaged} end
if not known or known.epoch ~= ARGV[1] or known.owner ~= ARGV[2] then return {'no'} end
redis.call('HDEL', KEYS[1], 'owner', 'until')
return {'done'}`
}).withReturnType<Reply>()
