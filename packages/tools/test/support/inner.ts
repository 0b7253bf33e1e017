/** A Waystone that a command runs; its own command leaves its session and its environment. */
import { NodeServices } from "@effect/platform-node"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { CommandRunner } from "../../src/CommandRunner.ts"

process.on("SIGTERM", () => {}) // it does not clean up
const script = "setsid env -i /bin/sleep 301 & setsid sleep 301 & sleep 0.3; touch up; wait"
process.stdout.write("inner runs\n")
await CommandRunner.use(({ run }) =>
  run({ argv: ["/bin/sh", "-c", script], cwd: process.cwd(), timeout: "1 minute" })
).pipe(Effect.provide(Layer.provide(CommandRunner.layer(), NodeServices.layer)), Effect.runPromise)
