/** Stores on a server, and wrappers of the Redis service that fail on purpose. */
import type { CheckpointStore } from "@waystone/core"
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import type * as Scope from "effect/Scope"
import * as RedisStore from "../../src/RedisStore.ts"

export type Store = CheckpointStore.CheckpointStore["Service"]
export type Service = Redis.Redis["Service"]

/** A store as a process of its own would open it. */
export const open = (
  url: string,
  options: RedisStore.Options & { readonly wrap?: (redis: Service) => Service } = {}
): Effect.Effect<Store, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { wrap = (same: Service) => same, ...rest } = options
    // What is wrapped may not be able to build the index, and its commands are counted.
    if (options.wrap !== undefined) yield* Effect.scoped(Effect.flatMap(open(url, rest), built))
    const client = yield* Layer.build(NodeRedis.layer({ url, disableOfflineQueue: true, RESP: 2 }))
    const redis = wrap(Context.get(client, Redis.Redis))
    return yield* Effect.provideService(RedisStore.make({ onWeakServer: "ignore", ...rest }), Redis.Redis, redis)
  })

/** A list waits until the index is whole. */
export const built = (store: Store) => store.list({}, { limit: 1 })

/** What a wrapper sees of a command: the Lua text of a script, or the name and arguments of a plain one. */
export type Seen = string
export type Around = <A>(command: Effect.Effect<A, Redis.RedisError>, seen: Seen) => Effect.Effect<A, Redis.RedisError>

/** The same client; every command goes through `around`. */
export const around =
  (wrap: Around) =>
  (redis: Service): Service => ({
    ...redis,
    send: (command, ...args) => wrap(redis.send(command, ...args), [command, ...args].join(" ")),
    eval:
      (script) =>
      (...params) =>
        wrap(redis.eval(script)(...params), script.lua)
  })

/** Holds repairs back until `open` is set, so that a test knows when they run. */
export const gated = () => {
  const gate = { open: false }
  const wrap = around((command, seen) =>
    Effect.suspend(() => (seen.startsWith("SCAN") && !gate.open ? failing("held back") : command))
  )
  return { gate, wrap }
}

/** Asks again until it holds; what never does runs into the time limit of the test. */
export const eventually = <A, E>(effect: Effect.Effect<A, E>, holds: (a: A) => boolean): Effect.Effect<A, E> =>
  Effect.gen(function* () {
    for (;;) {
      const a = yield* effect
      if (holds(a)) return a
      yield* Effect.sleep(30)
    }
  })

export const isIndex = (seen: Seen): boolean => seen.includes("ZADD")
export const isAppend = (seen: Seen): boolean => seen.includes("XADD")

export const failing = (message: string): Effect.Effect<never, Redis.RedisError> =>
  Effect.failSync(() => new Redis.RedisError({ cause: new Error(message) }))

/** A head. */
export const head = (fields: Partial<CheckpointStore.HeadRow> = {}): CheckpointStore.HeadRow => ({
  status: "running",
  agent: "test",
  waiting: [],
  updatedAt: 1,
  body: "{}",
  ...fields
})

/** An append of one event that creates a Run without an owner. */
export const created = (
  runId: string,
  { epoch = 0, ...fields }: Partial<CheckpointStore.Written> & { readonly epoch?: number } = {}
): CheckpointStore.Append => ({
  runId,
  expectedSeq: 0,
  events: ["{}"],
  head: head(),
  ...fields,
  ...(epoch === 0 ? { epoch } : { epoch, owner: fields.lease?.owner ?? "o" })
})

export const ids = (entries: ReadonlyArray<CheckpointStore.Entry>): ReadonlyArray<string> =>
  entries.map(({ runId }) => runId)

/** What lists ask of the server: scripts and commands that they send, and heads that these read. */
export interface Asked {
  trips: number
  heads: number
}

/** Counts what is asked; held-back repairs are not. */
export const counting =
  (asked: Asked) =>
  (redis: Service): Service => ({
    ...redis,
    send: (command, ...args) => {
      if (command === "SCAN") return failing("held back")
      asked.trips++
      return redis.send(command, ...args)
    },
    eval:
      (script) =>
      (...params) => {
        asked.trips++
        if (script.lua.includes("redis.pcall('HMGET', KEYS[i]")) asked.heads += script.numberOfKeys(...params) / 2
        return redis.eval(script)(...params)
      }
  })
