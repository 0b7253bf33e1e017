/**
 * Puts a Run into sets of the index and takes it out of others.
 *
 * KEYS  sorted sets of the index: first those that the Run is put into, then those that it leaves.
 * ARGV  1 run id, 2 updatedAt, 3 number of sets to put it into, 4 the latest time at which it leaves a set.
 *
 * Guarantee: touches the index only, and takes no newer entry away, so writers may come in any order. What two of them
 * leave wrong is found against the head, which is right.
 *
 * @since 0.1.0
 */
import * as Redis from "effect/persistence/Redis"

export interface Args {
  readonly runId: string
  readonly updatedAt: number
  /** The sets that the Run belongs to. */
  readonly into: ReadonlyArray<string>
  /** Sets that it may still stand in. */
  readonly outOf: ReadonlyArray<string>
  /** It stays where it stands with a later time than this: somebody else put it there since. */
  readonly leftAt: number
}

export const place = Redis.script(
  ({ into, leftAt, outOf, runId, updatedAt }: Args) => [...into, ...outOf, runId, updatedAt, into.length, leftAt],
  {
    numberOfKeys: ({ into, outOf }: Args) => into.length + outOf.length,
    lua: `
for i, key in ipairs(KEYS) do
  if i <= tonumber(ARGV[3]) then
    redis.call('ZADD', key, ARGV[2], ARGV[1])
  else
    local score = redis.call('ZSCORE', key, ARGV[1])
    if score and tonumber(score) <= tonumber(ARGV[4]) then redis.call('ZREM', key, ARGV[1]) end
  end
end
return 1`
  }
).withReturnType<number>()
