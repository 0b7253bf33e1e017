/** The peer of docs/write-a-store.md. */
import { CheckpointStore } from "@waystone/core"
import { CheckpointStoreSuite } from "@waystone/core/testing"
import { Effect, ManagedRuntime } from "effect"
import * as MyStore from "./guideStore.ts"

const [, , folder = ""] = process.argv
const runtime = ManagedRuntime.make(MyStore.layer(folder))
const store = await runtime.runPromise(CheckpointStore.CheckpointStore.use(Effect.succeed))

process.on("message", (order: CheckpointStoreSuite.Order) => {
  void runtime.runPromise(CheckpointStoreSuite.obey(store, order)).then((answer) => process.send?.(answer))
})
process.on("disconnect", () => process.exit(0))
process.send?.("ready")
