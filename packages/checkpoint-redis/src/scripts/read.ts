/**
 * Reads a part of the events of a Run.
 *
 * KEYS  1 head (hash), 2 events (stream).
 * ARGV  1 the seq to read after, 2 the seq to read up to, 3 how many bytes are enough.
 * Gives the Run's seq and the appends that hold those events, as many as fit; or unknown, or corrupt.
 *
 * Guarantee: reads only, and blocks the server for a bounded time whatever the size of the events.
 *
 * @since 0.1.0
 */
import * as Redis from "effect/persistence/Redis"
import type { RunKeys } from "../Keys.ts"
import { checked } from "./checked.ts"

export interface Args {
  readonly keys: RunKeys
  readonly after: number
  readonly upTo: number
  /** After this many bytes of bodies the reply ends, with at least one append in it. */
  readonly maxBytes: number
}

/** One append as the stream has it; a field is null where it is missing. */
export type Row = readonly [id: string, epoch: string | null, lengths: string | null, bodies: string | null]

export type Reply =
  | readonly ["unknown"]
  | readonly ["events", seq: string, rows: ReadonlyArray<Row>]
  | readonly ["corrupt", path: string]

export const read = Redis.script(({ after, keys, maxBytes, upTo }: Args) => [...keys, after, upTo, maxBytes], {
  numberOfKeys: 2,
  lua: `${checked}
local known, damaged = headOf()
if damaged then return {'corrupt', damaged} end
if not known then return {'unknown'} end
local seq = known.seq
local upTo, most = math.min(tonumber(seq), tonumber(ARGV[2])), tonumber(ARGV[3])
local rows, bytes, from, count = {}, 0, '(' .. ARGV[1] .. '-0', 4
while true do
  local chunk = redis.call('XRANGE', KEYS[2], from, '+', 'COUNT', count)
  for _, entry in ipairs(chunk) do
    local fields = entry[2]
    rows[#rows + 1] = {entry[1], fields[2] or false, fields[4] or false, fields[6] or false}
    bytes = bytes + #(fields[6] or '')
    if tonumber(string.match(entry[1], '^%d+')) >= upTo or bytes >= most then return {'events', seq, rows} end
  end
  if #chunk < count then return {'events', seq, rows} end
  from = '(' .. chunk[#chunk][1]
  if bytes < 65536 then count = math.min(count * 2, 256) end
end`
}).withReturnType<Reply>()
