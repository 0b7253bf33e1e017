/** Another process on the same folder: `node peer.ts <folder>`. It obeys the suite's orders until it is killed. */
import { CheckpointStoreSuite } from "@waystone/core/testing"
import { FolderStore } from "@waystone/example-plugin-store"
import { Effect } from "effect"

const [, , folder = ""] = process.argv
const store = await Effect.runPromise(FolderStore.make(folder))

process.on("message", (order: CheckpointStoreSuite.Order) => {
  void Effect.runPromise(CheckpointStoreSuite.obey(store, order)).then((answer) => process.send?.(answer))
})
process.on("disconnect", () => process.exit(0))
process.send?.("ready")
