/**
 * Puts a Run into sets of the index and takes it out of others.
 *
 * KEYS  sorted sets of the index: first those that the Run is put into, then those that it leaves; last the mark of the index.
 * ARGV  1 run id, 2 updatedAt, 3 number of sets to put it into, 4 the latest time at which it leaves a set.
 * Gives the keys that were of another type: they were deleted, since the index can be built anew.
 *
 * Guarantee: touches the index only, and takes no newer entry away, so writers may come in any order. What two of them
 * leave wrong is found against the head, which is right. The mark keeps the size of each set; that of a set that was lost
 * stays larger than the set, so that a list finds out.
 *
 * @since 0.1.0
 */
import * as Redis from "effect/persistence/Redis"
import { marked } from "./marked.ts"

export interface Args {
  readonly runId: string
  readonly updatedAt: number
  /** The sets that the Run belongs to. */
  readonly into: ReadonlyArray<string>
  /** Sets that it may still stand in. */
  readonly outOf: ReadonlyArray<string>
  /** It stays where it stands with a later time than this: somebody else put it there since. */
  readonly leftAt: number
  readonly mark: string
}

export const place = Redis.script(
  ({ into, leftAt, mark, outOf, runId, updatedAt }: Args) => [
    ...into,
    ...outOf,
    mark,
    runId,
    updatedAt,
    into.length,
    leftAt
  ],
  {
    numberOfKeys: ({ into, outOf }: Args) => into.length + outOf.length + 1,
    lua: `${marked}
local wrong = {}
local function deleted(key)
  redis.call('UNLINK', key)
  wrong[#wrong + 1] = key
end
if type(redis.pcall('HLEN', mark)) ~= 'number' then deleted(mark) end
for i = 1, #KEYS - 1 do
  local key, before = KEYS[i], sizeOf(KEYS[i])
  if not before then
    deleted(key)
    before = 0
  end
  if i <= tonumber(ARGV[3]) then
    redis.call('ZADD', key, ARGV[2], ARGV[1])
  else
    local score = redis.call('ZSCORE', key, ARGV[1])
    if score and tonumber(score) <= tonumber(ARGV[4]) then redis.call('ZREM', key, ARGV[1]) end
  end
  local size, was = redis.call('ZCARD', key), promised(key)
  local is = before < was and was + size - before or size
  if is > 0 and is ~= was then redis.call('HSET', mark, key, string.format('%.0f', is)) end
  if is <= 0 and was ~= 0 then redis.call('HDEL', mark, key) end
end
return wrong`
  }
).withReturnType<ReadonlyArray<string>>()
