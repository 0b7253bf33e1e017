/**
 * The entry point of `npm run demo`. Ctrl-C interrupts the Run, kills the tests and removes the copy.
 */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { RunEvent } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import { demo } from "./Cli.ts"

// A terminal that is closed ends it like SIGTERM: what runs is interrupted and cleaned up.
process.on("SIGHUP", () => process.kill(process.pid, "SIGTERM"))

demo.pipe(
  Command.run({ version: `0.0.0 (journal format ${RunEvent.version})` }),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain
)
