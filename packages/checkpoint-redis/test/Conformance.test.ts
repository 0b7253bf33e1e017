import { CheckpointStore } from "@waystone/core"
import { AnswerLosingStore, CheckpointStoreSuite } from "@waystone/core/testing"
import { afterAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as RedisStore from "../src/RedisStore.ts"
import * as TestServer from "./support/server.ts"
import { open } from "./support/stores.ts"

const redis = await TestServer.shared("the conformance of checkpoint-redis")
const cluster = TestServer.canStart ? await TestServer.start("--cluster-enabled", "yes") : undefined
const prefix = TestServer.freshPrefix()
const url = redis?.url ?? ""
const options = { prefix, onWeakServer: "ignore" } as const
if (cluster !== undefined) await cluster.send("CLUSTER", "ADDSLOTSRANGE", "0", "16383")

afterAll(async () => {
  if (redis !== undefined) await TestServer.clean(redis, prefix)
  await redis?.stop()
  await cluster?.stop()
})

describe.skipIf(redis === undefined)("RedisStore", () => {
  CheckpointStoreSuite.register(it.live, {
    layer: RedisStore.layerUrl({ url, ...options }),
    capabilities: { reopen: open(url, options) }
  })
})

describe.skipIf(redis === undefined)("RedisStore that loses every second answer", () => {
  const losing = (store: CheckpointStore.CheckpointStore["Service"]) =>
    AnswerLosingStore.make(store, AnswerLosingStore.every(2))
  const layer = Layer.effect(CheckpointStore.CheckpointStore, Effect.map(open(url, options), losing))
  CheckpointStoreSuite.register(it.live, { layer })
})

describe.skipIf(cluster === undefined)(
  "RI-018 RedisStore on a server in cluster mode, which refuses keys of two slots",
  () => {
    CheckpointStoreSuite.register(it.live, { layer: RedisStore.layerUrl({ url: cluster?.url ?? "", ...options }) })
  }
)
