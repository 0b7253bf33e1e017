/**
 * Brings a Redis client by URL: the NodeRedis of @effect/platform-node, loaded only when it is needed.
 *
 * The URL may hold a password, so it is checked before, and no error shows it. The client logs nothing of its own: each
 * command that fails says why, and a lost connection that no command meets is nobody's trouble.
 *
 * @since 0.1.0
 */
import { type CheckpointStore, RunError } from "@waystone/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as References from "effect/References"
import { meaning } from "./Command.ts"
import * as Options from "./Options.ts"

/** Connects when it is built, and fails at once if it cannot; a connection that is lost later is made again. */
export const layer = (url: Options.Url): Layer.Layer<Redis.Redis, Options.OptionInvalid | CheckpointStore.StoreError> =>
  Layer.effect(
    Redis.Redis,
    Effect.gen(function* () {
      const checked = yield* Options.urlOf(url)
      const NodeRedis = yield* imported
      // Without an offline queue: a command whose caller has given up must not run minutes later, after a reconnect.
      // RESP 2: an old server repeats the password in its error about HELLO, which RESP 3 begins with.
      const client = NodeRedis.layer({ url: checked, disableOfflineQueue: true, RESP: 2 })
      // Its listeners of errors log in the context that they are made in.
      const quiet = Effect.provideService(Layer.build(client), References.MinimumLogLevel, "None")
      const built = yield* Effect.mapError(quiet, (error) => meaning("", error))
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
