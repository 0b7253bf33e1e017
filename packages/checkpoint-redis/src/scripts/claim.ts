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
import { checked } from "./checked.ts"
import { clock } from "./clock.ts"

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
    lua: `${checked}
local known, damaged = headOf()
if damaged then return {'corrupt', damaged} end
if not known then return {'unknown'} end
${clock}
if known.owner and tonumber(known.ends) > now and ARGV[3] ~= known.epoch then return {'busy', known.epoch, known.owner} end
if not hasLast(known.seq) then return {'corrupt', 'events'} end
local epoch = redis.call('HINCRBY', KEYS[1], 'epoch', 1)
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'until', after(ARGV[2]))
return {'claimed', epoch, known.seq, known.owner or false}`
  }
).withReturnType<Reply>()
