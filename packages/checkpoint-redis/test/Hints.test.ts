import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Redis from "effect/persistence/Redis"
import * as Stream from "effect/Stream"
import * as Shared from "./support/shared.ts"
import { created, eventually, open, type Service } from "./support/stores.ts"

const { ask, available, freshPrefix, url } = await Shared.forFile("the tests of hints of checkpoint-redis")

describe.skipIf(!available)("watch", () => {
  it.live("tells of appends by others to that Run, and of no others", () =>
    Effect.gen(function* () {
      const prefix = freshPrefix()
      const store = yield* open(url, { prefix })
      const other = yield* open(url, { prefix })
      const watched = (runId: string) => store.watch?.(runId) ?? Stream.empty
      yield* store.append(created("r", { epoch: 1, lease: { owner: "o", ttlMillis: 60_000 } }))
      const hint = yield* Effect.forkChild(Stream.runHead(watched("r")))
      const none = yield* Effect.forkChild(Stream.runHead(watched("s")))
      yield* eventually(ask("PUBSUB", "NUMSUB", `{${prefix}}:changed`), (reply) => String(reply).endsWith(",1"))
      yield* Effect.sleep(100)
      yield* store.append(created("r", { epoch: 1, expectedSeq: 1 }))
      yield* Effect.sleep(100)
      expect(hint.pollUnsafe()).toBeUndefined()
      yield* other.append(created("r", { expectedSeq: 2 }))
      expect((yield* Fiber.join(hint))._tag).toBe("Some")
      yield* Effect.sleep(100)
      expect(none.pollUnsafe()).toBeUndefined()
      yield* Fiber.interrupt(none)
    })
  )

  it.live("H1 notices a subscription that has ended, makes it again, and tells every watcher to look", () =>
    Effect.gen(function* () {
      const prefix = freshPrefix()
      const [ends, refused] = [yield* Deferred.make<void>(), { left: 2, subscriptions: 0 }]
      // The first subscription ends when it is told to; then two are refused.
      const breaking = (redis: Service): Service => ({
        ...redis,
        subscribe: (channel) =>
          Effect.gen(function* () {
            const isFirst = refused.subscriptions++ === 0
            const broken = isFirst || refused.left-- > 0
            const queue = yield* Queue.unbounded<Redis.RedisMessage, Redis.RedisError>()
            if (broken) {
              const failed = Queue.fail(queue, new Redis.RedisError({ cause: new Error("Socket closed unexpectedly") }))
              yield* Effect.forkScoped(isFirst ? Effect.andThen(Deferred.await(ends), failed) : failed)
              return queue
            }
            return yield* redis.subscribe(channel)
          })
      })
      const store = yield* open(url, { prefix, wrap: breaking })
      const other = yield* open(url, { prefix })
      yield* store.append(created("r"))
      const hints: Array<string> = []
      const watch = (runId: string) =>
        Effect.forkChild(
          Stream.runForEach(store.watch?.(runId) ?? Stream.empty, () => Effect.sync(() => hints.push(runId)))
        )
      const watchers = [yield* watch("r"), yield* watch("s")]
      yield* Effect.sleep(100)
      expect(hints).toEqual([])
      yield* Deferred.succeed(ends, undefined)
      // What was written meanwhile is lost, so all of them look.
      yield* eventually(
        Effect.sync(() => new Set(hints).size),
        (size) => size === 2
      )
      yield* eventually(ask("PUBSUB", "NUMSUB", `{${prefix}}:changed`), (reply) => String(reply).endsWith(",1"))
      yield* Effect.sleep(100)
      hints.length = 0
      yield* other.append(created("r", { expectedSeq: 1 }))
      yield* eventually(
        Effect.sync(() => hints),
        (told) => told.length > 0
      )
      expect(new Set(hints)).toEqual(new Set(["r"]))
      for (const watcher of watchers) expect(watcher.pollUnsafe()).toBeUndefined()
    })
  )

  it.live("all watchers of a process share one connection", () =>
    Effect.gen(function* () {
      const store = yield* open(url, { prefix: freshPrefix() })
      const connections = Effect.map(
        ask("CLIENT", "LIST", "TYPE", "pubsub"),
        (list) => String(list).trim().split("\n").length
      )
      const before = yield* connections
      for (let i = 0; i < 50; i++) yield* Effect.forkChild(Stream.runDrain(store.watch?.(`r${i}`) ?? Stream.empty))
      yield* Effect.sleep(300)
      expect((yield* connections) - before).toBeLessThanOrEqual(1)
    })
  )
})
