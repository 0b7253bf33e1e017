/**
 * Reads the heads of Runs.
 *
 * KEYS  for each Run: head (hash), events (stream).
 * ARGV  1 how many bytes of bodies are enough.
 * Gives the server's time in ms, and for each Run, in that order, the fields seq, epoch, owner, until, row, updatedAt and body;
 * or unknown, or corrupt. It ends early, with at least one of them, when there are bytes enough.
 *
 * Guarantee: reads only, and blocks the server for a bounded time. A Run whose head is gone is not taken for an unknown one
 * while its events are there, and a damaged one does not keep the others from being read (RI-072).
 *
 * @since 0.1.0
 */
import * as Redis from "effect/persistence/Redis"
import type { RunKeys } from "../Keys.ts"
import { clock } from "./clock.ts"

export interface Args {
  readonly runs: ReadonlyArray<RunKeys>
  readonly maxBytes: number
}

/** The fields are null where they are missing. */
export type Head =
  | readonly ["unknown"]
  | readonly ["head", ...fields: ReadonlyArray<string | null>]
  | readonly ["corrupt", path: string]

export type Reply = readonly [now: string, ...heads: ReadonlyArray<Head>]

export const heads = Redis.script(({ maxBytes, runs }: Args) => [...runs.flat(), maxBytes], {
  numberOfKeys: ({ runs }: Args) => runs.length * 2,
  lua: `${clock}
local reply, bytes = {after(0)}, 0
for i = 1, #KEYS, 2 do
  local known = redis.pcall('HMGET', KEYS[i], 'seq', 'epoch', 'owner', 'until', 'row', 'updatedAt', 'body')
  if known.err then
    if not string.find(known.err, 'WRONGTYPE', 1, true) then return known end
    reply[#reply + 1] = {'corrupt', 'the type of a key'}
  elseif known[1] then
    reply[#reply + 1] = {'head', unpack(known)}
    bytes = bytes + #(known[7] or '')
  elseif redis.call('EXISTS', KEYS[i], KEYS[i + 1]) > 0 then
    reply[#reply + 1] = {'corrupt', 'head'}
  else
    reply[#reply + 1] = {'unknown'}
  end
  if bytes >= tonumber(ARGV[1]) then break end
end
return reply`
}).withReturnType<Reply>()
