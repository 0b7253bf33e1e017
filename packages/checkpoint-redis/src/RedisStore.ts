/**
 * Keeps Runs in Redis 6.2 or later, or Valkey, without modules: an append is one Lua script on the keys of one Run.
 *
 * It keeps the contract of `CheckpointStore` (C1 to C5) as far as the server keeps what it has acknowledged: see the README
 * for what `appendonly`, failover and eviction can lose. It writes no time to live, and deletes nothing but by `remove`.
 *
 * @since 0.1.0
 */
import { CheckpointStore } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import type * as Scope from "effect/Scope"
import * as Client from "./Client.ts"
import * as Command from "./Command.ts"
import * as Hints from "./Hints.ts"
import * as Keys from "./Keys.ts"
import { quietly } from "./Later.ts"
import * as Options from "./Options.ts"
import * as Rebuild from "./Rebuild.ts"
import * as Repair from "./Repair.ts"
import * as ServerCheck from "./ServerCheck.ts"
import * as Store from "./Store.ts"

export { OptionInvalid, type Options } from "./Options.ts"
export { ServerTooOld, ServerWeak } from "./ServerCheck.ts"

/** Why a store could not be opened. */
export type OpenError =
  | Options.OptionInvalid
  | ServerCheck.ServerTooOld
  | ServerCheck.ServerWeak
  | CheckpointStore.StoreError

/** A store on the Redis client of the context, which others may share. Makes one pass over the keys to repair its index. */
export const make = Effect.fnUntraced(function* (
  options: Options.Options = {}
): Effect.fn.Return<CheckpointStore.CheckpointStore["Service"], OpenError, Redis.Redis | Scope.Scope> {
  const { commandTimeout, onWeakServer, prefix } = yield* Options.settings(options)
  const redis = yield* Redis.Redis
  const deps = { redis, command: Command.make(commandTimeout), keys: Keys.make(prefix) }
  yield* ServerCheck.check(deps, onWeakServer)
  const repair = yield* Repair.make(deps)
  const rebuild = yield* Rebuild.make(deps)
  const pass = Effect.flatMap(rebuild([]), (built) => (built ? Effect.void : repair.pass))
  yield* Effect.forkScoped(quietly("repairing the index", pass))
  return Store.make({ ...deps, rebuild, repair, watch: yield* Hints.make(redis, deps.keys.channel) })
})

/** `make` as a Layer. Bring any client: `NodeRedis.layer` of @effect/platform-node, or your own by `Redis.make`. */
export const layer = (
  options?: Options.Options
): Layer.Layer<CheckpointStore.CheckpointStore, OpenError, Redis.Redis> =>
  Layer.effect(CheckpointStore.CheckpointStore, make(options))

/**
 * A store with a client of its own, the NodeRedis of @effect/platform-node (which, and `redis`, must be installed). Fails
 * with `OptionInvalid` if the URL is none (it is not shown), with `StoreUnavailable` if it cannot connect at the start; a
 * connection that is lost later is made again. The client logs nothing.
 */
export const layerUrl = ({
  url,
  ...options
}: Options.Options & { readonly url: Options.Url }): Layer.Layer<CheckpointStore.CheckpointStore, OpenError> =>
  // What is wrong with an option is said before anybody connects.
  Layer.unwrap(Effect.as(Options.settings(options), Layer.provide(layer(options), Client.layer(url))))
