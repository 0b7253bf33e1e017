/**
 * Says how a runner runs commands, checks it, and makes the environment that a command gets.
 *
 * Invariants
 *   N1  A command sees the variables that are named here, its own and ours, and no other one.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type Command, CommandOptionsInvalid } from "./Command.ts"

export interface Options {
  /** The names of the variables that commands get from this process. Default `defaultEnv`. */
  readonly env?: ReadonlyArray<string>
  /**
   * From SIGTERM to SIGKILL; 0 to 5 seconds. Default 500 ms: core waits 1 s for a handler that it interrupts, and what
   * is left of that is for SIGKILL.
   */
  readonly grace?: Duration.Input
  /**
   * What happens to processes that a command leaves when it exits by itself. `kill` (default), or `leave`: they stay,
   * and are named. A timeout and an interruption always kill.
   */
  readonly background?: "kill" | "leave"
}

/** What programs need to start and to find their files; no name here holds a key. HOME opens the files below it. */
export const defaultEnv: ReadonlyArray<string> = (
  "PATH HOME USER LOGNAME SHELL LANG LC_ALL LC_CTYPE TZ TMPDIR TEMP TMP " +
  // Windows programs do not start without these.
  "SystemRoot SystemDrive windir ComSpec PATHEXT USERPROFILE APPDATA LOCALAPPDATA"
).split(" ")

/** Commands print plainly and ask nobody. */
const plainly: Readonly<Record<string, string>> = { CI: "true", NO_COLOR: "1", TERM: "dumb" }

export interface Checked {
  readonly env: ReadonlyArray<string>
  readonly grace: Duration.Duration
  readonly background: "kill" | "leave"
}

export const check = Effect.fnUntraced(function* (options: Options): Effect.fn.Return<Checked, CommandOptionsInvalid> {
  const { background = "kill", env = defaultEnv, grace = "500 millis" } = options
  const wrong = env.find((name) => typeof name !== "string" || !/^[^=\0]+$/.test(name))
  if (wrong !== undefined) return yield* invalid("env", `${JSON.stringify(wrong)} is no name of a variable`)
  const duration = Option.getOrUndefined(Duration.fromInput(grace))
  if (duration === undefined || !(Duration.toMillis(duration) >= 0 && Duration.toMillis(duration) <= 5000)) {
    return yield* invalid("grace", "it must be a duration of 0 to 5 seconds")
  }
  if (background !== "kill" && background !== "leave")
    return yield* invalid("background", 'it must be "kill" or "leave"')
  return { env, grace: duration, background }
})

const invalid = (field: string, message: string) => new CommandOptionsInvalid({ field, message })

/** The environment of a command. */
export const environment = (
  names: ReadonlyArray<string>,
  own: Readonly<Record<string, string | undefined>>,
  command: Command
): Record<string, string> => ({
  ...Object.fromEntries(names.flatMap((name) => (own[name] === undefined ? [] : [[name, own[name]]]))),
  ...plainly,
  ...command.env
})
