/**
 * Opens the store that a job names, and loads no other: a worker that starts is not to wait for a client it does not need.
 */
import type { RedisStore } from "@waystone/checkpoint-redis"
import type { SqliteError } from "@waystone/checkpoint-sqlite"
import type { CheckpointStore } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Store } from "./Job.ts"

export const layer = (
  store: Store
): Layer.Layer<CheckpointStore.CheckpointStore, SqliteError.OpenError | RedisStore.OpenError> =>
  store._tag === "Sqlite"
    ? Layer.unwrap(
        Effect.map(
          Effect.promise(() => import("@waystone/checkpoint-sqlite/SqliteStore")),
          (SqliteStore) => SqliteStore.layer({ file: store.file, durability: "process" })
        )
      )
    : Layer.unwrap(
        Effect.map(
          Effect.promise(() => import("@waystone/checkpoint-redis/RedisStore")),
          (RedisStore) => RedisStore.layerUrl({ url: store.url, prefix: store.prefix, onWeakServer: "ignore" })
        )
      )
