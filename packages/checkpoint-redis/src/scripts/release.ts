/**
 * Lets a lease go.
 *
 * KEYS  1 head (hash), 2 events (stream, not touched).
 * ARGV  1 epoch.
 *
 * Guarantee: only the present epoch lets go. The epoch stays, so a late append of that owner is fenced once another claims.
 *
 * @since 0.1.0
 */
import * as Redis from "effect/persistence/Redis"
import type { RunKeys } from "../Keys.ts"

export interface Args {
  readonly keys: RunKeys
  readonly epoch: number
}

export const release = Redis.script(({ epoch, keys }: Args) => [...keys, epoch], {
  numberOfKeys: 2,
  lua: `
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return 0 end
redis.call('HDEL', KEYS[1], 'owner', 'until')
return 1`
}).withReturnType<number>()
