/**
 * What a command is, what comes of it, and why it could not be run.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"

export interface Command {
  /** The program, looked up in the PATH of the command's environment, and its arguments. No shell reads them. */
  readonly argv: readonly [string, ...ReadonlyArray<string>]
  /** The folder that it starts in. It does not confine the command. */
  readonly cwd: string
  /** Added to the variables that the runner lets through. */
  readonly env?: Readonly<Record<string, string>>
  /** Longer than 0 and finite. When it is over the command is killed, and the result says `timed-out`. */
  readonly timeout: Duration.Input
  /** In UTF-16 units, head and tail of the output together. Default 12,000: core shows a model 16,000 of a result. */
  readonly maxOutput?: number
}

export interface Process {
  readonly pid: number
  /** The program's name and at most 80 characters of its arguments, without what looks like a key. */
  readonly command: string
}

export interface Finished {
  /** `killed`: a signal ended it, and it was not ours. */
  readonly status: "exited" | "killed" | "timed-out"
  /** Where `exited`. */
  readonly exitCode?: number
  /** Where `killed`: the name of the signal. */
  readonly signal?: string
  /** Standard output and standard error in order of arrival, without escape sequences; a marker where it was cut. */
  readonly output: string
  /** UTF-16 units that the marker stands for. */
  readonly cut: number
  /** From its start to the death of what it left. */
  readonly durationMs: number
  /** What it left and we killed; the first 32. */
  readonly killed: ReadonlyArray<Process>
  /** What it left and still runs: it may not be killed by us, or `background` is `leave`. */
  readonly leftRunning: ReadonlyArray<Process>
}

/** The command did not start: no such program, no such folder, or not a command at all. */
export class CommandUnavailable extends Schema.TaggedError<CommandUnavailable>()("CommandUnavailable", {
  program: Schema.String,
  message: Schema.String
}) {}

/** An option of a runner is wrong; `field` names it. */
export class CommandOptionsInvalid extends Schema.TaggedError<CommandOptionsInvalid>()("CommandOptionsInvalid", {
  field: Schema.String,
  message: Schema.String
}) {}
