import { CheckpointStore } from "@waystone/core"
import { AnswerLosingStore, CheckpointStoreSuite } from "@waystone/core/testing"
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
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

/** `support/child.ts`, as scripts/bundle.setup.ts bundles it. */
const child = new URL("../node_modules/.cache/child/child.mjs", import.meta.url)

/** A process with a store of its own on the server. */
const peer = Effect.acquireRelease(
  Effect.promise(async () => {
    const started = fork(child, [url, prefix])
    await once(started, "message")
    return started
  }),
  (started) => Effect.sync(() => started.kill("SIGKILL"))
).pipe(
  Effect.map((process): CheckpointStoreSuite.Peer => ({
    ask: (order) => Effect.promise(() => asked(process, order)),
    kill: Effect.promise(async () => {
      const gone = once(process, "exit")
      process.kill("SIGKILL")
      await gone
    })
  }))
)

const asked = async (
  process: ChildProcess,
  order: CheckpointStoreSuite.Order
): Promise<CheckpointStoreSuite.Answer> => {
  const answer = once(process, "message")
  process.send(order)
  return (await answer)[0]
}

/** Keys that bear the id of the Run, and places of it in the index. */
const leftovers = (runId: string) =>
  Effect.promise(async () => {
    if (redis === undefined) return 0
    const keys = await TestServer.keysOf(redis, prefix)
    const sets = keys.filter((key) => key.startsWith("{") && !key.endsWith(":index:mark"))
    const scores = await Promise.all(sets.map((key) => redis.send("ZSCORE", key, runId)))
    return keys.filter((key) => key.includes(runId)).length + scores.filter((score) => score !== null).length
  })

/** The head has lost what lists ask for. */
const damage = (runId: string) =>
  Effect.promise(async () => {
    const key = `${prefix}:{${runId}}:head`
    await redis?.send("HSET", key, "row", "{")
    return Effect.promise(async () =>
      JSON.stringify(await redis?.send("HMGET", key, "seq", "epoch", "row", "updatedAt", "body"))
    )
  })

afterAll(async () => {
  if (redis !== undefined) await TestServer.clean(redis, prefix)
  await redis?.stop()
  await cluster?.stop()
})

describe.skipIf(redis === undefined)("RedisStore", () => {
  CheckpointStoreSuite.register(it.live, {
    layer: RedisStore.layerUrl({ url, ...options }),
    capabilities: { reopen: open(url, options), leftovers, damage, peer, watch: true }
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
