/**
 * Reads a part of a set of the index.
 *
 * KEYS  1 a sorted set of the index.
 * ARGV  1 lowest score, 2 highest score, 3 how many to skip, 4 how many at most.
 * Gives run ids and scores by turns, the oldest first, then by id. A script, so that every client gets the same shape.
 *
 * Guarantee: reads only.
 *
 * @since 0.1.0
 */
import * as Redis from "effect/persistence/Redis"

export interface Args {
  readonly set: string
  readonly from: string
  readonly to: string
  readonly offset: number
  readonly count: number
}

export const range = Redis.script(({ count, from, offset, set, to }: Args) => [set, from, to, offset, count], {
  numberOfKeys: 1,
  lua: `return redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[1], ARGV[2], 'WITHSCORES', 'LIMIT', ARGV[3], ARGV[4])`
}).withReturnType<ReadonlyArray<string>>()
