/**
 * The entry point of `npm run demo`. Ctrl-C pauses the Run and kills the tests; a copy that
 * nobody can go on with is removed.
 */
// One by one: the barrel loads every HTTP client, socket and cluster module, which takes longer than all the rest.
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { RunEvent } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import { demo } from "./Cli.ts"
import * as Logs from "./Logs.ts"

// A terminal that is closed ends it like SIGTERM: what runs is interrupted and cleaned up.
process.on("SIGHUP", () => process.kill(process.pid, "SIGTERM"))

demo.pipe(
  Command.run({ version: `0.0.0 (journal format ${RunEvent.version})` }),
  Effect.provide([NodeServices.layer, Logs.layer]),
  NodeRuntime.runMain
)
