/**
 * Appends events to a Run, creates it at seq 0, and replaces its head.
 *
 * KEYS  1 head (hash), 2 events (stream).
 * ARGV  1 epoch of the writer or 0, 2 expected seq, 3 number of events, 4 their lengths, 5 their bodies, 6 row of the head,
 *       7 updatedAt, 8 body of the head, 9 "1" if a lease comes along, 10 its owner, 11 its ttl in ms, 12 channel, 13 run id,
 *       14 owner that writes or "".
 * Gives committed (and moved if the row has changed or the time went back), conflict with the present seq, fenced, or
 * corrupt with what is damaged.
 *
 * Guarantee: compare-and-set on seq, epoch and owner; the events and their head are written together or not at all. Whatever can
 * fail comes before the first write, or is the first write: Redis takes nothing back when a script fails half-way. So XADD
 * comes first (no memory, read-only, a wrong type, an id that is not newer), HSET on a known hash second; PUBLISH may fail
 * for want of a permission, and is a hint. Nothing gets a time to live (RI-155).
 *
 * @since 0.1.0
 */
import * as Redis from "effect/persistence/Redis"
import type { RunKeys } from "../Keys.ts"
import { checked } from "./checked.ts"
import { clock } from "./clock.ts"

/** What an append writes, as strings. */
export interface Args {
  readonly keys: RunKeys
  readonly runId: string
  readonly epoch: number
  readonly owner: string | undefined
  readonly expectedSeq: number
  readonly count: number
  readonly lengths: string
  readonly bodies: string
  readonly row: string
  readonly updatedAt: number
  readonly body: string
  /** Taken only by an append that creates the Run. */
  readonly lease: { readonly owner: string; readonly ttlMillis: number } | undefined
  readonly channel: string
}

export type Reply =
  | readonly ["committed", "created" | "same"]
  | readonly ["committed", "moved", oldRow: string, oldUpdatedAt: string]
  | readonly ["conflict", seq: string]
  | readonly ["fenced"]
  | readonly ["corrupt", path: string]

export const append = Redis.script(
  (args: Args) => [
    ...args.keys,
    args.epoch,
    args.expectedSeq,
    args.count,
    args.lengths,
    args.bodies,
    args.row,
    args.updatedAt,
    args.body,
    args.lease === undefined ? "0" : "1",
    args.lease?.owner ?? "",
    args.lease?.ttlMillis ?? 0,
    args.channel,
    args.runId,
    args.owner ?? ""
  ],
  {
    numberOfKeys: 2,
    lua: `${checked}
local known, damaged = headOf(ARGV[6])
if damaged then return {'corrupt', damaged} end
local seq = known and known.seq or '0'
if known and ARGV[1] ~= '0' and (ARGV[1] ~= known.epoch or ARGV[14] ~= known.owner) then return {'fenced'} end
if seq ~= ARGV[2] then return {'conflict', seq} end
if known and not hasLast(seq) then return {'corrupt', 'events'} end
local last = string.format('%.0f', tonumber(seq) + tonumber(ARGV[3]))
local add = {'XADD', KEYS[2], last .. '-0', 'e', ARGV[1], 'n', ARGV[4], 'b', ARGV[5]}
if known then table.insert(add, 3, 'NOMKSTREAM') end
local added = redis.pcall(unpack(add))
if not added then return {'corrupt', 'events'} end
if type(added) == 'table' and added.err then
  if string.find(added.err, 'equal or smaller', 1, true) then return {'corrupt', 'events'} end
  return added
end
redis.call('HSET', KEYS[1], 'seq', last, 'row', ARGV[6], 'updatedAt', ARGV[7], 'body', ARGV[8])
if not known then
  redis.call('HSET', KEYS[1], 'epoch', ARGV[1])
  if ARGV[9] == '1' then
    ${clock}
    redis.call('HSET', KEYS[1], 'owner', ARGV[10], 'until', after(ARGV[11]))
  end
end
if ARGV[1] == '0' then redis.pcall('PUBLISH', ARGV[12], ARGV[13]) end
if not known then return {'committed', 'created'} end
if known.row == ARGV[6] and tonumber(ARGV[7]) >= tonumber(known.updatedAt) then return {'committed', 'same'} end
return {'committed', 'moved', known.row, known.updatedAt}`
  }
).withReturnType<Reply>()
