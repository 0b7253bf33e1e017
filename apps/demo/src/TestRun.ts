/**
 * Runs a project's tests in a child process: Node's own test runner, few environment variables, a time limit, bounded
 * output.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as ChildProcess from "effect/process/ChildProcess"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import { pathToFileURL } from "node:url"
import * as BoundedText from "./BoundedText.ts"
import { TestsUnavailable } from "./ToolErrors.ts"

/** Shorter than the 30 s that a tool call has, so that the model hears of it. */
const limit = Duration.seconds(20)
/** Less than the 16,000 units that a model is shown of a result. */
const maxOutput = 12_000

/** What a Node process needs to start; no keys, no NODE_OPTIONS, nothing of the test runner that may run us. */
const allowed = ["PATH", "LANG", "TMPDIR", "TEMP", "TMP", "SystemRoot"]

export interface TestRun {
  readonly exitCode: number
  /** TAP, the project folder's own path taken out of it. */
  readonly output: string
}

/** The variables of `env` that the child gets. */
export const environment = (env: Readonly<Record<string, string | undefined>>): Record<string, string> =>
  Object.fromEntries(allowed.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])))

/** Runs all tests of the project in `root`, a real path. */
export const run = (root: string): Effect.Effect<TestRun, TestsUnavailable, ChildProcessSpawner> => {
  const command = ChildProcess.make(process.execPath, ["--test", "--test-reporter=tap"], {
    cwd: root,
    env: environment(process.env),
    stdin: "ignore",
    forceKillAfter: "1 second"
  })
  const started = Effect.gen(function* () {
    const child = yield* command
    const output = yield* child.all.pipe(
      Stream.decodeText(),
      Stream.runFold(() => BoundedText.empty, BoundedText.add(maxOutput))
    )
    return { exitCode: yield* child.exitCode, output: relative(root, BoundedText.toText(output)) }
  })
  const overdue = new TestsUnavailable({ message: `the tests did not end within ${Duration.format(limit)}` })
  return Effect.scoped(started).pipe(
    Effect.catchTag("PlatformError", ({ reason }) =>
      Effect.fail(new TestsUnavailable({ message: `the tests could not be run: ${reason._tag}` }))
    ),
    Effect.timeoutOrElse({ duration: limit, orElse: () => Effect.fail(overdue) })
  )
}

/** Where the project lies is nothing to a reader, and differs with each run. */
const relative = (root: string, output: string): string =>
  output
    .replaceAll(`${pathToFileURL(root).href}/`, "")
    .replaceAll(`${root}/`, "")
    .replaceAll(`${root}\\`, "")
