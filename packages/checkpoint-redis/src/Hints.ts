/**
 * Tells who watches a Run that somebody else wrote to it.
 *
 * Only appends without an epoch are told: an owner knows its own, and would read its head again after each of them. All
 * watchers of a process share one subscription, since a subscription is a connection of its own. A hint may be lost or come
 * twice; nothing depends on it but how soon a change is noticed.
 *
 * @since 0.1.0
 */
import { type CheckpointStore, RunError } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as PubSub from "effect/PubSub"
import * as Queue from "effect/Queue"
import * as RcRef from "effect/RcRef"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type * as Redis from "effect/persistence/Redis"
import { shown } from "./Command.ts"

/** The subscription stays open so long after the last watcher has gone: the next Run need not connect again. */
const idleTime = "30 seconds"
/** Hints that wait for a slow watcher; it loses the oldest ones. */
const capacity = 1024

export const make = (
  redis: Redis.Redis["Service"],
  channel: string
): Effect.Effect<(runId: string) => Stream.Stream<void, CheckpointStore.StoreError>, never, Scope.Scope> =>
  Effect.map(RcRef.make({ acquire: hub(redis, channel), idleTimeToLive: idleTime }), (shared) => (runId) => {
    const all = Stream.unwrap(Effect.map(RcRef.get(shared), (hub) => Stream.fromPubSub(hub)))
    return all.pipe(
      Stream.filter((message) => message === runId || message === lost),
      Stream.mapEffect((message) => (message === lost ? gone : Effect.void))
    )
  })

/** No run id is empty. */
const lost = ""
const gone = Effect.failSync(
  () => new RunError.StoreUnavailable({ detail: shown("the subscription to Redis has ended") })
)

/** Takes the messages of the channel, for as long as somebody watches. */
const hub = Effect.fnUntraced(function* (
  redis: Redis.Redis["Service"],
  channel: string
): Effect.fn.Return<PubSub.PubSub<string>, never, Scope.Scope> {
  const hub = yield* PubSub.sliding<string>(capacity)
  const queue = yield* redis.subscribe(channel)
  const pump = Effect.forever(Effect.flatMap(Queue.take(queue), ({ message }) => PubSub.publish(hub, message)))
  yield* Effect.forkScoped(Effect.catchCause(pump, () => PubSub.publish(hub, lost)))
  return hub
})
