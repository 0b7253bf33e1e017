import { RunEvent } from "@waystone/core"
import { Console, Effect } from "effect"
import { NodeRuntime } from "@effect/platform-node"

NodeRuntime.runMain(
  Console.log(`waystone ${RunEvent.version} on node ${process.version}`, process.argv.slice(2)).pipe(Effect.asVoid)
)
