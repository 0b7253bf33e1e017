/** Drives a Run until its model hangs: `node worker.ts <folder> <outbox>`. Its parent kills it there. */
import { NodeFileSystem } from "@effect/platform-node"
import { ProcessOwner, Run } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import { FolderStore } from "@waystone/example-plugin-store"
import { Effect, Layer } from "effect"
import { mailer, outbox } from "./agent.ts"

const [, , folder = "", file = ""] = process.argv
const { call, hang } = ScriptedModel
const model = ScriptedModel.layer([call("send_mail", { to: "ann" }), hang])
const live = Layer.mergeAll(
  model,
  outbox(file),
  FolderStore.layer(folder),
  Layer.provide(ProcessOwner.layer, NodeFileSystem.layer)
)

// A hanging fiber alone keeps no process alive.
setInterval(() => undefined, 60_000)
await Effect.runPromise(Run.start(mailer, { runId: "killed", task: "Write to Ann." }).pipe(Effect.provide(live)))
