/**
 * Brings a Redis client by URL: the NodeRedis of @effect/platform-node, loaded only when it is needed.
 *
 * The URL may hold a password, so it is checked here, and no error shows it.
 *
 * @since 0.1.0
 */
import { type CheckpointStore, RunError } from "@waystone/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as Redacted from "effect/Redacted"
import { meaning } from "./Command.ts"

/** `redis://` or `rediss://` (TLS), with user, password and database: `redis://user:password@host:6379/0`. */
export type Url = string | Redacted.Redacted

/** Connects when it is built, and fails at once if it cannot; a connection that is lost later is made again. */
export const layer = (url: Url): Layer.Layer<Redis.Redis, CheckpointStore.StoreError> =>
  Layer.effect(
    Redis.Redis,
    Effect.gen(function* () {
      const checked = yield* parse(typeof url === "string" ? url : Redacted.value(url))
      const NodeRedis = yield* imported
      // Without an offline queue: a command whose caller has given up must not run minutes later, after a reconnect.
      // RESP 2: an old server repeats the password in its error about HELLO, which RESP 3 begins with.
      const client = NodeRedis.layer({ url: checked, disableOfflineQueue: true, RESP: 2 })
      const built = yield* Effect.mapError(Layer.build(client), (error) => meaning("", error))
      return Context.get(built, Redis.Redis)
    })
  )

/** It takes 240 ms: only programs that connect pay for it (FACTS 23). */
const imported = Effect.tryPromise({
  try: () => import("@effect/platform-node/NodeRedis"),
  catch: () =>
    new RunError.StoreUnavailable({
      detail: "layerUrl needs the packages @effect/platform-node and redis: install them"
    })
})

/** Everything that makes node-redis throw, since what it throws has the URL in it. */
const parse = (url: string): Effect.Effect<string, RunError.StoreUnavailable> =>
  Effect.suspend(() => {
    try {
      const { password, pathname, protocol, username } = new URL(url)
      decodeURIComponent(username + password)
      if (/^rediss?:$/.test(protocol) && /^\/?\d*$/.test(pathname)) return Effect.succeed(url)
    } catch {
      // said below
    }
    return Effect.fail(
      new RunError.StoreUnavailable({
        detail: "the URL is not of the form redis://user:password@host:6379/0 (or rediss://)"
      })
    )
  })
