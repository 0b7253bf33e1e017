/**
 * Tells who watches a Run that somebody else wrote to it.
 *
 * Only appends without an epoch are told: an owner knows its own, and would read its head again after each of them. All
 * watchers of a process share one subscription, since a subscription is a connection of its own. A hint may be lost or come
 * twice; nothing depends on it but how soon a change is noticed.
 *
 * Invariants
 *   H1  A subscription that ends is made again for as long as somebody watches, and every watcher is told to look then: what
 *       was published in between is lost.
 *
 * @since 0.1.0
 */
import type { CheckpointStore } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as PubSub from "effect/PubSub"
import * as Queue from "effect/Queue"
import * as RcRef from "effect/RcRef"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type * as Redis from "effect/persistence/Redis"
import { shown } from "./Command.ts"

/** The subscription stays open so long after the last watcher has gone: the next Run need not connect again. */
const idleTime = "30 seconds"
/** Hints that wait for a slow watcher; it loses the oldest ones. */
const capacity = 1024
/** How long after its end a subscription is made again. Core polls meanwhile. */
const pause = "1 second"

export const make = (
  redis: Redis.Redis["Service"],
  channel: string
): Effect.Effect<(runId: string) => Stream.Stream<void, CheckpointStore.StoreError>, never, Scope.Scope> =>
  Effect.map(RcRef.make({ acquire: hub(redis, channel), idleTimeToLive: idleTime }), (shared) => (runId) => {
    const all = Stream.unwrap(Effect.map(RcRef.get(shared), (hub) => Stream.fromPubSub(hub)))
    return all.pipe(
      Stream.filter((message) => message === runId || message === everybody),
      Stream.map(() => undefined)
    )
  })

/** A message for the watchers of all Runs. No run id is empty. */
const everybody = ""

/**
 * Takes the messages of the channel, for as long as somebody watches. The first subscription is asked for before the hub is
 * given, so that what is published from then on is told.
 */
const hub = Effect.fnUntraced(function* (
  redis: Redis.Redis["Service"],
  channel: string
): Effect.fn.Return<PubSub.PubSub<string>, never, Scope.Scope> {
  const hub = yield* PubSub.sliding<string>(capacity)
  const pump = (queue: Queue.Dequeue<Redis.RedisMessage, Redis.RedisError>) =>
    Effect.forever(Effect.flatMap(Queue.take(queue), ({ message }) => PubSub.publish(hub, message)))
  const next = Effect.scoped(
    Effect.gen(function* () {
      const queue = yield* redis.subscribe(channel)
      yield* PubSub.publish(hub, everybody)
      return yield* pump(queue)
    })
  )
  const first = yield* redis.subscribe(channel)
  const ended = (error: Redis.RedisError) =>
    Effect.logDebug(`checkpoint-redis: the subscription has ended and is made again: ${shown(String(error.cause))}`)
  yield* Effect.forkScoped(
    Effect.catch(pump(first), ended).pipe(
      Effect.andThen(Effect.sleep(pause)),
      Effect.andThen(Effect.repeat(Effect.catch(next, ended), Schedule.spaced(pause)))
    )
  )
  return hub
})
