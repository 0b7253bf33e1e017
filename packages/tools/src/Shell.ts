/**
 * Gives an agent a shell.
 *
 * **The shell is not confined to the folder.** `cwd` is only where it starts: a command reads, writes and sends whatever
 * this process may. Put `Bubblewrap` or a CommandRunner of your own behind it. The tool is Destructive, so core asks a
 * person before each call.
 *
 * Invariants
 *   S1  A command that fails is a result; only one that could not be started is a failure.
 *
 * @since 0.1.0
 */
import { ToolOptions } from "@waystone/core"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { CommandRunner, CommandUnavailable, type Finished } from "./CommandRunner.ts"

/** In UTF-16 units; what is longer belongs into a file. */
const maxCommand = 16_384
/** In seconds. */
const maxTimeout = 600
const defaultTimeout = 120
/** What a runner may need beyond the timeout: the largest grace, 5 s, and its 2 s, rounded up. */
const killTime = 10

const Process = Schema.Struct({ pid: Schema.Int, command: Schema.String })

const Result = Schema.Struct({
  status: Schema.Literals(["exited", "killed", "timed-out"]),
  exit_code: Schema.optionalKey(Schema.Int),
  signal: Schema.optionalKey(Schema.String),
  output: Schema.String,
  /** Characters that are missing in the middle of the output. */
  output_cut: Schema.optionalKey(Schema.Int),
  duration_ms: Schema.Int,
  killed: Schema.Array(Process),
  left_running: Schema.Array(Process)
})

/** Not confined to any folder; Destructive, OpenWorld, neither Readonly nor Idempotent, never beside another call. */
export const tool = Tool.make("shell", {
  description:
    "Run a shell command and wait for its end. Standard input is empty. Processes that it leaves in the background are " +
    "ended with it. A failing command is a result: look at exit_code",
  parameters: Schema.Struct({
    command: Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(maxCommand)),
    timeout_seconds: Schema.optionalKey(
      Schema.Finite.check(Schema.isBetween({ minimum: 1, maximum: maxTimeout })).annotate({
        description: `The command is killed after so many seconds. Default ${defaultTimeout}`
      })
    )
  }),
  success: Result,
  failure: CommandUnavailable
})
  .annotate(Tool.Readonly, false)
  .annotate(Tool.Destructive, true)
  .annotate(Tool.Idempotent, false)
  .annotate(Tool.OpenWorld, true)
  .annotate(ToolOptions.Timeout, Duration.seconds(maxTimeout + killTime))
  .annotate(ToolOptions.Sequential, true)

export const toolkit = Toolkit.make(tool)

export interface Options {
  /** The folder that each command starts in. It confines nothing. */
  readonly cwd: string
  /** The shell, which gets the command as one more argument. Default `/bin/sh -c`, on Windows `cmd.exe /d /s /c`. */
  readonly shell?: readonly [string, ...ReadonlyArray<string>]
}

/** The handler of the tool. */
export const layer = ({
  cwd,
  shell = defaultShell()
}: Options): Layer.Layer<Tool.HandlersFor<typeof toolkit.tools>, never, CommandRunner> =>
  toolkit.toLayer(
    Effect.map(CommandRunner, ({ run }) => ({
      shell: ({ command, timeout_seconds: seconds = defaultTimeout }) =>
        Effect.map(run({ argv: [...shell, command], cwd, timeout: Duration.seconds(seconds) }), resultOf)
    }))
  )

const defaultShell = (): readonly [string, ...ReadonlyArray<string>] =>
  process.platform === "win32" ? ["cmd.exe", "/d", "/s", "/c"] : ["/bin/sh", "-c"]

const resultOf = ({ cut, durationMs, exitCode, killed, leftRunning, output, signal, status }: Finished) => ({
  status,
  ...(exitCode === undefined ? {} : { exit_code: exitCode }),
  ...(signal === undefined ? {} : { signal }),
  output,
  ...(cut === 0 ? {} : { output_cut: cut }),
  duration_ms: durationMs,
  killed,
  left_running: leftRunning
})
