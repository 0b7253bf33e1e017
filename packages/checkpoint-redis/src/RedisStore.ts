/**
 * Keeps Runs in Redis 6.2 or later, or Valkey, without modules: an append is one Lua script on the keys of one Run.
 *
 * It keeps the contract of `CheckpointStore` (C1 to C5) as far as the server keeps what it has acknowledged: see the README
 * for what `appendonly`, failover and eviction can lose. It writes no time to live, and deletes nothing but by `remove`.
 *
 * @since 0.1.0
 */
import { CheckpointStore } from "@waystone/core"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Client from "./Client.ts"
import * as Command from "./Command.ts"
import * as Hints from "./Hints.ts"
import * as Keys from "./Keys.ts"
import { quietly } from "./Later.ts"
import * as Repair from "./Repair.ts"
import * as ServerCheck from "./ServerCheck.ts"
import * as Store from "./Store.ts"

export { ServerTooOld, ServerWeak } from "./ServerCheck.ts"

export interface Options {
  /** What all keys begin with: 1 to 64 of `A-Z a-z 0-9 . _ : -`. Stores with different prefixes do not see each other. Default `"waystone"`. */
  readonly prefix?: string
  /**
   * What to do at the start about a server that can lose Runs (`appendonly no`, an `allkeys-…` policy) or does not say:
   * log a warning, fail with `ServerWeak`, or not ask at all. Default `"warn"`.
   */
  readonly onWeakServer?: ServerCheck.OnWeakServer
  /** How long a command may take until it fails with `StoreUnavailable`. It may have taken effect. Default 5 seconds (SPEC 6). */
  readonly commandTimeout?: Duration.Input
}

/** The prefix has a character that keys cannot have. */
export class PrefixInvalid extends Schema.TaggedError<PrefixInvalid>()("PrefixInvalid", { prefix: Schema.String }) {
  override readonly message = `"${this.prefix.slice(0, 80)}" is no prefix: 1 to 64 of A-Z a-z 0-9 . _ : -`
}

/** Why a store could not be opened. */
export type OpenError = PrefixInvalid | ServerCheck.ServerTooOld | ServerCheck.ServerWeak | CheckpointStore.StoreError

const defaultTimeout: Duration.Input = "5 seconds"

/** A store on the Redis client of the context, which others may share. Makes one pass over the keys to repair its index. */
export const make = Effect.fnUntraced(function* (
  options: Options = {}
): Effect.fn.Return<CheckpointStore.CheckpointStore["Service"], OpenError, Redis.Redis | Scope.Scope> {
  const { commandTimeout = defaultTimeout, onWeakServer = "warn", prefix = "waystone" } = options
  if (!Keys.isPrefix(prefix)) return yield* new PrefixInvalid({ prefix })
  const redis = yield* Redis.Redis
  const deps = { redis, command: Command.make(Duration.fromInputUnsafe(commandTimeout)), keys: Keys.make(prefix) }
  yield* ServerCheck.check(deps, onWeakServer)
  const repair = yield* Repair.make(deps)
  yield* Effect.forkScoped(quietly("repairing the index", repair.pass))
  return Store.make({ ...deps, repair, watch: yield* Hints.make(redis, deps.keys.channel) })
})

/** `make` as a Layer. Bring any client: `NodeRedis.layer` of @effect/platform-node, or your own by `Redis.make`. */
export const layer = (options?: Options): Layer.Layer<CheckpointStore.CheckpointStore, OpenError, Redis.Redis> =>
  Layer.effect(CheckpointStore.CheckpointStore, make(options))

/**
 * A store with a client of its own, the NodeRedis of @effect/platform-node (which, and `redis`, must be installed). Fails
 * with `StoreUnavailable` if it cannot connect at the start; a connection that is lost later is made again.
 */
export const layerUrl = ({
  url,
  ...options
}: Options & { readonly url: Client.Url }): Layer.Layer<CheckpointStore.CheckpointStore, OpenError> =>
  Layer.provide(layer(options), Client.layer(url))
