/**
 * Begins to build the index anew, says that it goes on, and ends it.
 *
 * `begin`   KEYS  sets that must be whole, then the mark. ARGV  1 who builds, 2 for how many ms others leave it to that one.
 *           Gives whole if nothing is to be done, busy if another one builds, or, with the keys that were of another type, lost if
 *           the index was whole before, else begun.
 * `going`   KEYS  the mark. ARGV  1 who builds, 2 for how many ms more, or "" if all Runs are in the index.
 *           Gives 1, or 0 if another one builds since.
 *
 * Guarantee: touches the index only. Until the end no list takes it for whole, and a builder that died is followed by another.
 * Whether the builder has seen the Runs of all servers, no script can tell.
 *
 * @since 0.1.0
 */
import * as Redis from "effect/persistence/Redis"
import { clock } from "./clock.ts"
import { marked, version } from "./marked.ts"

export interface Begin {
  readonly sets: ReadonlyArray<string>
  readonly mark: string
  readonly builder: string
  readonly ttlMillis: number
}

export type Begun =
  | readonly ["whole"]
  | readonly ["busy"]
  | readonly ["begun" | "lost", ...wrong: ReadonlyArray<string>]

export const begin = Redis.script(({ builder, mark, sets, ttlMillis }: Begin) => [...sets, mark, builder, ttlMillis], {
  numberOfKeys: ({ sets }: Begin) => sets.length + 1,
  lua: `${marked}
${clock}
if isWhole() then return {'whole'} end
local reply = {redis.pcall('HGET', mark, 'version') == '${version}' and 'lost' or 'begun'}
local held = redis.pcall('HMGET', mark, 'builder', 'until')
if held.err then reply[2] = mark end
if held[1] and held[1] ~= ARGV[1] and tonumber(held[2] or '0') > now then return {'busy'} end
redis.call('UNLINK', mark)
redis.call('HSET', mark, 'builder', ARGV[1], 'until', after(ARGV[2]))
for i = 1, #KEYS - 1 do
  if not sizeOf(KEYS[i]) then
    redis.call('UNLINK', KEYS[i])
    reply[#reply + 1] = KEYS[i]
  end
end
return reply`
}).withReturnType<Begun>()

export interface Going {
  readonly mark: string
  readonly builder: string
  /** Undefined at the end. */
  readonly ttlMillis: number | undefined
}

export const going = Redis.script(({ builder, mark, ttlMillis }: Going) => [mark, builder, ttlMillis ?? ""], {
  numberOfKeys: 1,
  lua: `
local mark = KEYS[1]
${clock}
if redis.pcall('HGET', mark, 'builder') ~= ARGV[1] then return 0 end
if ARGV[2] == '' then
  redis.call('HSET', mark, 'version', '${version}')
  redis.call('HDEL', mark, 'builder', 'until')
else
  redis.call('HSET', mark, 'until', after(ARGV[2]))
end
return 1`
}).withReturnType<0 | 1>()
