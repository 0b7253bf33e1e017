/**
 * Runs one command: checks it, starts it with its marks, waits for its exit, ends what it left, reports.
 *
 * Invariants
 *   C1  The exit of the command completes it, not the end of its output (RI-137).
 *   C2  Whether it exits, is out of time or is interrupted: no process that it left outlives `run` unnamed.
 *   C3  `run` ends at most timeout + grace + 2 seconds after its start.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as ChildProcess from "effect/process/ChildProcess"
import { type ChildProcessHandle, ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import { randomInt, randomUUID } from "node:crypto"
import * as BoundedText from "./BoundedText.ts"
import { type Command, type CommandOptionsInvalid, CommandUnavailable, type Finished } from "./Command.ts"
import * as CommandOptions from "./CommandOptions.ts"
import * as CommandOutput from "./CommandOutput.ts"
import * as Processes from "./Processes.ts"
import * as ProcessTable from "./ProcessTable.ts"
import * as Program from "./Program.ts"

export interface Options extends CommandOptions.Options {
  /** What is started in the place of a command: a sandbox, say, that starts the command. */
  readonly wrap?: (command: Command) => Command["argv"]
  /** What it wrote to its descriptor 3, asked where it exited with 1: true if it could not start the command. */
  readonly isUnstarted?: (report: string) => boolean
}

export type Run = (command: Command) => Effect.Effect<Finished, CommandUnavailable>

/** Less than the 16,000 units that a model is shown of a result. */
const defaultMaxOutput = 12_000
/** How long output is still read after the exit, and after the death of what was left. */
const drain = Duration.millis(200)
/** How long the spawner's own clean-up is waited for; it would give zombies of the group a second. */
const closing = Duration.millis(100)

/** A runner with these options. The scope holds what reads the output of processes that were left running. */
export const make = Effect.fnUntraced(function* (
  options: Options = {}
): Effect.fn.Return<Run, CommandOptionsInvalid, ChildProcessSpawner | Scope.Scope> {
  const checked = yield* CommandOptions.check(options)
  const runner: Runner = {
    ...checked,
    wrap: options.wrap ?? (({ argv }) => argv),
    isUnstarted: options.isUnstarted,
    spawner: yield* ChildProcessSpawner,
    scope: yield* Effect.scope,
    limited: ProcessTable.exists() && ProcessTable.isUnlimited()
  }
  return (command) => run(runner, command)
})

interface Runner extends CommandOptions.Checked {
  readonly wrap: (command: Command) => Command["argv"]
  readonly isUnstarted: Options["isUnstarted"]
  readonly spawner: ChildProcessSpawner["Service"]
  readonly scope: Scope.Scope
  /** Commands get the limit that marks them. */
  readonly limited: boolean
}

const run = Effect.fnUntraced(function* (runner: Runner, command: Command) {
  const startedAt = yield* Clock.currentTimeMillis
  const { env, timeout } = yield* checkedCommand(runner, command)
  const whole = Effect.uninterruptibleMask(
    Effect.fnUntraced(function* (restore) {
      const scope = yield* Scope.make()
      const running = yield* Scope.provide(start(runner, command, env), scope).pipe(
        Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
      )
      const exit = yield* Effect.exit(restore(ending(running, timeout)))
      const left = yield* leave(runner, running, exit)
      if (Exit.isSuccess(exit)) yield* running.read(drain)
      yield* close(running, scope)
      if (Exit.isFailure(exit)) return yield* Effect.failCause(exit.cause)
      const report = exit.value.exitCode === 1 ? running.report() : undefined
      if (report !== undefined && runner.isUnstarted?.(report) === true) return yield* unstarted(command)
      const kept = running.output.kept()
      const durationMs = (yield* Clock.currentTimeMillis) - startedAt
      return { ...exit.value, output: BoundedText.toText(kept), cut: kept.cut, durationMs, ...left }
    })
  )
  return yield* whole
})

/** What may be said against a command before it starts, and what it starts with. */
const checkedCommand = Effect.fnUntraced(function* (runner: Runner, command: Command) {
  // Callers without types exist, and a command often comes from a file or from a model.
  if (!isCommand(command)) return yield* new CommandUnavailable({ program: "", message: notCommand })
  const { argv, cwd, maxOutput = defaultMaxOutput, timeout } = command
  const refused = (message: string) => new CommandUnavailable({ program: argv[0], message })
  const duration = Option.getOrUndefined(Duration.fromInput(timeout))
  if (duration === undefined || !Duration.isFinite(duration) || Duration.toMillis(duration) <= 0) {
    return yield* refused("its timeout must be a finite duration longer than 0")
  }
  if (!Number.isSafeInteger(maxOutput) || maxOutput < 0) return yield* refused("its maxOutput must be 0 or more")
  const env = CommandOptions.environment(runner.env, process.env, command)
  const refusal = yield* Program.refusal({ argv, cwd, env })
  if (refusal !== undefined) return yield* refused(refusal)
  return { env, timeout: duration }
})

const unstarted = ({ argv }: Command): CommandUnavailable =>
  new CommandUnavailable({
    program: argv[0],
    message: "the sandbox could not start it: the program, or the folder to start in, is not there"
  })

const Text = Schema.Record(Schema.String, Schema.String)
const isCommand = Schema.is(
  Schema.Struct({
    argv: Schema.NonEmptyArray(Schema.String),
    cwd: Schema.String,
    env: Schema.optional(Text),
    timeout: Schema.Unknown
  })
)
const notCommand = "it must have an argv of at least one text, a cwd, a timeout, and an env of texts if any"

interface Running {
  readonly handle: ChildProcessHandle
  readonly processes: Processes.Processes
  readonly output: CommandOutput.CommandOutput
  /** All of what came over descriptor 3; undefined while more can come. */
  readonly report: () => string | undefined
  /** Waits until all output is read, at most so long. */
  readonly read: (time: Duration.Duration) => Effect.Effect<void>
}

const start = Effect.fnUntraced(function* (
  runner: Runner,
  command: Command,
  env: Record<string, string>
): Effect.fn.Return<Running, CommandUnavailable, Scope.Scope> {
  const id = randomUUID()
  const blocks = ProcessTable.blocks(randomInt(2 ** 42) / 2 ** 42)
  // A Waystone that a command runs marks its own commands with both ids, so that the outer one finds them too.
  const ids = [process.env[ProcessTable.variable], id].filter((one) => one !== undefined).join(":")
  const argv = runner.wrap(command)
  const [program, ...rest] = runner.limited ? ["/bin/sh", "-c", limiting, "sh", String(blocks), ...argv] : argv
  const child = ChildProcess.make(program, rest, {
    cwd: command.cwd,
    env: { ...env, [ProcessTable.variable]: ids },
    stdin: "ignore",
    // The spawner signals the group as soon as a command exits with an error, before we can say what it left, and even
    // if that may stay: so with one that is ignored unless asked for. Ours follow.
    killSignal: "SIGURG",
    ...(runner.isUnstarted === undefined ? {} : { additionalFds: { fd3: { type: "output" } } })
  })
  const refused = (code: string) =>
    new CommandUnavailable({ program: command.argv[0], message: `it could not be started: ${code}` })
  const handle = yield* runner.spawner.spawn(child).pipe(
    // In our own words: the system's name paths.
    Effect.mapError(({ reason }) => refused(reason._tag)),
    // Some of the system's errors (E2BIG: the arguments are too long) are thrown by Node's spawn itself.
    Effect.catchDefect((defect) => Effect.fail(refused(codeOf(defect))))
  )
  const processes = Processes.of(handle, command.argv[0], ProcessTable.marks(id, blocks))
  const output = CommandOutput.make(command.maxOutput ?? defaultMaxOutput)
  // What was left running must not stop because nobody reads what it prints.
  const scope = runner.background === "leave" ? runner.scope : yield* Effect.scope
  const reported = CommandOutput.make(maxReport)
  let ended = false
  const pipes = [reader(handle.stdout, output.open()), reader(handle.stderr, output.open())]
  if (runner.isUnstarted !== undefined) {
    const all = reader(handle.getOutputFd(3), reported.open())
    pipes.push(
      Effect.andThen(
        all,
        Effect.sync(() => void (ended = true))
      )
    )
  }
  const readers = yield* Effect.forEach(pipes, (pipe) => Effect.forkIn(pipe, scope))
  const read = (time: Duration.Duration) =>
    Effect.asVoid(Effect.timeoutOption(Effect.forEach(readers, Fiber.await, { discard: true }), time))
  const report = () => (ended ? BoundedText.toText(reported.kept()) : undefined)
  return { handle, processes, output, report, read }
})

/** `exec` keeps the pid. Where the limit cannot be set, the command runs without this mark. */
const limiting = 'ulimit -f "$1" 2>/dev/null || :; shift; exec "$@"'

/** In UTF-16 units; a sandbox says a few hundred. */
const maxReport = 4_000

const reader = (bytes: ChildProcessHandle["stdout"], pipe: CommandOutput.Pipe): Effect.Effect<void> =>
  Stream.runForEach(bytes, (chunk) => Effect.sync(() => pipe.add(chunk))).pipe(
    Effect.ignore, // a pipe that breaks has said what it had to say
    Effect.ensuring(Effect.sync(pipe.end))
  )

const codeOf = (defect: unknown): string => {
  const code = Predicate.hasProperty(defect, "code") ? defect.code : undefined
  return typeof code === "string" ? code : "Unknown"
}

type Ending = Pick<Finished, "status" | "exitCode" | "signal">

const ending = ({ handle, read }: Running, timeout: Duration.Duration): Effect.Effect<Ending> =>
  Effect.match(handle.exitCode, {
    onSuccess: (exitCode): Ending => ({ status: "exited", exitCode }),
    onFailure: (error): Ending => ({ status: "killed", ...signalOf(error) })
  }).pipe(
    Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.succeed<Ending>({ status: "timed-out" }) }),
    // What the command started may be about to end by itself, as the last of a pipe does.
    Effect.tap(({ status }) => (status === "timed-out" ? Effect.void : read(drain)))
  )

/** The spawner tells the signal in words only. */
const signalOf = ({ cause }: PlatformError): Pick<Finished, "signal"> => {
  const signal = /\bSIG[A-Z0-9]+\b/.exec(cause instanceof Error ? cause.message : "")?.[0]
  return signal === undefined ? {} : { signal }
}

/** Ends the processes that are left, unless they may stay. */
const leave = (
  { background, grace }: Runner,
  { processes }: Running,
  exit: Exit.Exit<Ending>
): Effect.Effect<Processes.Ended> =>
  background === "leave" && Exit.isSuccess(exit) && exit.value.status !== "timed-out"
    ? Effect.map(processes.alive, (leftRunning) => ({ killed: [], leftRunning }))
    : processes.end(grace)

/** Nothing of ours is left to the spawner; that it still cleans up is no reason to wait. */
const close = Effect.fnUntraced(function* ({ handle }: Running, scope: Scope.Closeable) {
  yield* Effect.ignore(handle.unref)
  const closed = yield* Effect.forkDetach(Scope.close(scope, Exit.void))
  yield* Effect.timeoutOption(Fiber.await(closed), closing)
})
