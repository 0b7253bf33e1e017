/**
 * Runs one command to its end and leaves nothing behind.
 *
 * Put your sandbox behind this service: whatever starts commands for an agent asks it, and nothing else. The layer here
 * does not confine a command: it runs with all rights of this process. What it promises is that a command ends in time,
 * cannot fill the memory, sees no keys, and that on Linux every process that it left is dead or named in its result
 * (`ProcessTable` says how they are found, and what is not found). On macOS only the process group is ended, on Windows
 * the tree of a command that is out of time; neither was tested.
 *
 * - Standard input is empty (RI-093); the command has a process group and a session of its own.
 * - The exit of the command completes it, never the end of its output (RI-137). Output is read for 200 ms more.
 * - A timeout is a result. `run` ends at most timeout + grace + 2 seconds after its start.
 * - An interruption ends the command's processes in the same way, before `run` ends.
 * - The environment is a list of names (`defaultEnv`) and what the command brings; CI, NO_COLOR and TERM=dumb are set.
 *
 * @example
 * const program = CommandRunner.CommandRunner.use((runner) =>
 *   runner.run({ argv: ["git", "status"], cwd: ".", timeout: "10 seconds" })
 * ).pipe(Effect.provide(CommandRunner.CommandRunner.layer().pipe(Layer.provide(NodeServices.layer))))
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import type { Command, CommandOptionsInvalid, CommandUnavailable, Finished } from "./Command.ts"
import type { Options } from "./CommandOptions.ts"
import * as CommandRun from "./CommandRun.ts"

export { type Command, CommandOptionsInvalid, CommandUnavailable, type Finished, type Process } from "./Command.ts"
export { defaultEnv, type Options } from "./CommandOptions.ts"

export class CommandRunner extends Context.Service<
  CommandRunner,
  {
    /** Runs it. A non-zero exit code, a signal and a timeout are results; fails only if it could not be started. */
    readonly run: (command: Command) => Effect.Effect<Finished, CommandUnavailable>
  }
>()("@waystone/tools/CommandRunner") {
  /** Runs commands as children of this process, unconfined. Fails if an option is wrong, and names it. */
  static readonly layer = (
    options: Options = {}
  ): Layer.Layer<CommandRunner, CommandOptionsInvalid, ChildProcessSpawner> =>
    Layer.effect(
      CommandRunner,
      Effect.map(CommandRun.make(options), (run) => ({ run }))
    )
}
