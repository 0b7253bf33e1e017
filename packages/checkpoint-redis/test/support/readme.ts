/** The code of README.md, compiled: Readme.test.ts compares both and runs it. */
import { Agent, CheckpointStore, Run } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import { RedisStore } from "@waystone/checkpoint-redis"
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { Effect, Layer } from "effect"

const Model = ScriptedModel.layer([ScriptedModel.text("Hello to you!")])

const agent = Agent.make("greeter", { instructions: "Greet the user." })

const Live = Layer.mergeAll(
  RedisStore.layerUrl({ url: process.env.REDIS_URL ?? "redis://localhost:6379" }),
  Model // any LanguageModel of effect/ai
)

const program = Run.start(agent, { runId: "greeting-1", task: "Hello!" }).pipe(Effect.provide(Live))

const Shared = RedisStore.layer({ prefix: "my-app" }).pipe(
  Layer.provideMerge(
    NodeRedis.layer({ url: process.env.REDIS_URL ?? "redis://localhost:6379", disableOfflineQueue: true })
  )
)

export const first = (): Promise<unknown> => Effect.runPromise(program)

const list = CheckpointStore.CheckpointStore.use((store) => store.list({}, { limit: 10 }))
export const listed = (): Promise<unknown> => Effect.runPromise(Effect.provide(list, Shared))
