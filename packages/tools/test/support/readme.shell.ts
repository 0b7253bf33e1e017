/** The code of README.md, compiled: ReadmeShell.test.ts compares both and runs it. */
import { NodeServices } from "@effect/platform-node"
import { Bubblewrap, CommandRunner, Shell } from "@waystone/tools"
import { Agent } from "@waystone/core"
import { Effect, Layer } from "effect"

export const parts = (folder: string) => {
  const agent = Agent.make("builder", { instructions: "Build the project.", tools: [Shell.toolkit] })

  const Sandboxed = Bubblewrap.layer({ writable: [folder] }) // or CommandRunner.CommandRunner.layer(): not confined
  const Live = Shell.layer({ cwd: folder }).pipe(Layer.provide(Sandboxed), Layer.provide(NodeServices.layer))

  const program = CommandRunner.CommandRunner.use(({ run }) =>
    run({ argv: ["/bin/sh", "-c", "sleep 60 & echo built"], cwd: folder, timeout: "10 seconds" })
  ).pipe(Effect.provide(CommandRunner.CommandRunner.layer().pipe(Layer.provide(NodeServices.layer))))

  return { agent, Live, program }
}
