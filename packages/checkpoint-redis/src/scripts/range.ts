/**
 * Reads the next part of some sets of the index, and leaves out what other sets say does not belong.
 *
 * KEYS  sorted sets of the index: first those that are read, then groups of others; last the mark of the index.
 * ARGV  1 how many are read, 2 and 3 score and run id to go on after ("" from the start), 4 highest score, 5 how many run ids
 *       of each set are enough, 6 how many of each set are looked at, at most; then the size of each group.
 * Gives for each set that is read: 1 if there is no more, the last score and run id looked at, and run ids and scores by turns,
 * the oldest first, then by id, of those that stand in at least one set of every group. Nil if one of the sets was lost, or the
 * index was never built whole.
 *
 * Guarantee: reads only, and blocks the server for a bounded time however large the sets are. Where many have the same score,
 * the place to go on is found by halves.
 *
 * @since 0.1.0
 */
import * as Redis from "effect/persistence/Redis"
import { marked } from "./marked.ts"

export interface Args {
  readonly sets: ReadonlyArray<string>
  /** Of each, a Run must stand in at least one. */
  readonly groups: ReadonlyArray<ReadonlyArray<string>>
  readonly after: { readonly runId: string; readonly updatedAt: number } | undefined
  readonly to: string
  readonly count: number
  readonly scanned: number
  readonly mark: string
}

/** One set. The last score and run id are null where nothing was looked at. */
export type Part = readonly [over: number, score: string | null, runId: string | null, found: ReadonlyArray<string>]

export const range = Redis.script(
  ({ after, count, groups, mark, scanned, sets, to }: Args) => [
    ...sets,
    ...groups.flat(),
    mark,
    sets.length,
    after?.updatedAt ?? "",
    after?.runId ?? "",
    to,
    count,
    scanned,
    ...groups.map(({ length }) => length)
  ],
  {
    numberOfKeys: ({ groups, sets }: Args) => sets.length + groups.flat().length + 1,
    lua: `${marked}
if not isWhole() then return nil end
local sets, score, after, to = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local enough, most = tonumber(ARGV[5]), tonumber(ARGV[6])
-- By bytes, as a sorted set does; Lua's own order may be that of the server's language.
local function isAfter(id)
  for i = 1, math.min(#id, #after) do
    local a, b = string.byte(id, i), string.byte(after, i)
    if a ~= b then return a > b end
  end
  return #id > #after
end
local function rankAfter(key)
  if score == '' then return 0 end
  local low, high = redis.call('ZCOUNT', key, '-inf', '(' .. score), redis.call('ZCOUNT', key, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if isAfter(redis.call('ZRANGE', key, middle, middle)[1]) then high = middle else low = middle + 1 end
  end
  return low
end
local function belongs(id)
  local at = sets
  for group = 7, #ARGV do
    local size, found = tonumber(ARGV[group]), false
    for i = at + 1, at + size do
      if redis.call('ZSCORE', KEYS[i], id) then found = true break end
    end
    if not found then return false end
    at = at + size
  end
  return true
end
local parts = {}
for i = 1, sets do
  local rank, ends = rankAfter(KEYS[i]), redis.call('ZCOUNT', KEYS[i], '-inf', to)
  local part, found, looked = {0, false, false}, {}, 0
  while rank < ends and #found < enough * 2 and looked < most do
    local chunk = redis.call('ZRANGE', KEYS[i], rank, math.min(rank + math.min(enough, most - looked), ends) - 1, 'WITHSCORES')
    for j = 1, #chunk, 2 do
      if #found == enough * 2 then break end
      rank, looked, part[2], part[3] = rank + 1, looked + 1, chunk[j + 1], chunk[j]
      if belongs(chunk[j]) then
        found[#found + 1] = chunk[j]
        found[#found + 1] = chunk[j + 1]
      end
    end
  end
  if rank >= ends then part[1] = 1 end
  part[4] = found
  parts[i] = part
end
return parts`
  }
).withReturnType<ReadonlyArray<Part> | null>()
