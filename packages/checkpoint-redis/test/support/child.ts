/** A process of its own with a store: `node child.ts <url> <prefix>`; obeys the store suite, over ipc. */
import { CheckpointStore } from "@waystone/core"
import { CheckpointStoreSuite } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as RedisStore from "../../src/RedisStore.ts"

const [, , url = "", prefix = ""] = process.argv
const runtime = ManagedRuntime.make(RedisStore.layerUrl({ url, prefix, onWeakServer: "ignore" }))
const say = (message: unknown) => process.send?.(message)

process.on("message", (order: CheckpointStoreSuite.Order) => {
  const obeyed = CheckpointStore.CheckpointStore.use((store) => CheckpointStoreSuite.obey(store, order))
  void runtime.runPromise(obeyed).then(say)
})
process.on("disconnect", () => process.exit(0))
await runtime.runPromise(CheckpointStore.CheckpointStore.use(() => Effect.void))
say("ready")
