/**
 * Runs the project's own tests, for the agent as a tool and for the demo itself.
 *
 * It runs the `test` script of package.json, or Node's test runner where there is none that can be read, and asks Node's runner for TAP,
 * which it reads. What another runner prints is given as it is.
 */
import { CommandRunner, Folder } from "@waystone/tools"
import { ToolOptions } from "@waystone/core"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { delimiter, dirname } from "node:path"
import { pathToFileURL } from "node:url"
import * as Tap from "./Tap.ts"

/** The longest time that the tests may be given. */
export const maxLimit = Duration.minutes(30)

/** How long the tests may take. Default 2 min. */
export const Limit: Context.Reference<Duration.Duration> = Context.Reference("demo/RunTests/Limit", {
  defaultValue: () => Duration.minutes(2)
})

/** As much as a report needs; the model gets less. In UTF-16 units. */
const maxReport = 1_000_000
/** Less than the 16,000 units that a model is shown of a result. */
const maxOutput = 10_000

/** The tests could not be started. */
export class TestsUnavailable extends Schema.TaggedError<TestsUnavailable>()("TestsUnavailable", {
  message: Schema.String
}) {}

export const TestRun = Schema.Struct({
  status: Schema.Literals(["exited", "killed", "timed-out"]),
  exit_code: Schema.optionalKey(Schema.Int),
  /** What Node's test runner reported; missing where another one ran, or none. */
  report: Schema.optionalKey(Tap.Report),
  /** What was printed, beside the report. The project folder's own path is taken out. */
  output: Schema.String,
  /** Processes that the tests left and that could not be ended. */
  left_running: Schema.Array(Schema.String)
})
export type TestRun = typeof TestRun.Type

/** What begins with `-` would be an option of the runner. */
const File = Schema.String.check(Schema.isPattern(/^[^-\0][^\0]*$/))

/**
 * Idempotent: it runs the project's code, so it is not Readonly, but running the tests of a working copy once more does
 * no harm. A Run that died meanwhile runs them again; as an unsafe tool it would ask a person first.
 */
export const RunTests = Tool.make("run_tests", {
  description: "Run the project's tests, or those of some files alone. Failing tests are a result, not an error",
  parameters: Schema.Struct({
    files: Schema.optionalKey(
      Schema.Array(File).check(Schema.isMinLength(1)).annotate({ description: "Test files; default all" })
    )
  }),
  success: TestRun,
  failure: TestsUnavailable
})
  .annotate(Tool.Idempotent, true)
  .annotate(Tool.Destructive, false)
  .annotate(Tool.OpenWorld, false)
  .annotate(ToolOptions.Timeout, Duration.sum(maxLimit, Duration.seconds(10)))

export const toolkit = Toolkit.make(RunTests)

export const layer = toolkit.toLayer(
  Effect.gen(function* () {
    const context = yield* Effect.context<CommandRunner.CommandRunner | Folder.Folder>()
    return toolkit.of({ run_tests: ({ files }) => Effect.provideContext(only(files ?? []), context) })
  })
)

/** All tests of the project, once. */
export const run: Ran = Effect.suspend(() => only([]))

type Ran = Effect.Effect<TestRun, TestsUnavailable, CommandRunner.CommandRunner | Folder.Folder>

/** The tests of these files, as the script of the project runs them; all where none is named. */
const only = (files: ReadonlyArray<string>): Ran =>
  Effect.gen(function* () {
    const { root } = yield* Folder.Folder
    const runner = yield* CommandRunner.CommandRunner
    const script = yield* testScript
    const { exitCode, leftRunning, output, status } = yield* runner.run({
      argv: [process.execPath, ...arguments_(script, files)],
      cwd: root,
      env: { PATH: [dirname(process.execPath), process.env["PATH"] ?? ""].join(delimiter), ...options(script) },
      timeout: yield* Limit,
      maxOutput: maxReport
    })
    const text = relative(root, output)
    const report = Tap.parse(text)
    return {
      status,
      ...(exitCode === undefined ? undefined : { exit_code: exitCode }),
      output: Tap.bounded(report === undefined ? text : Tap.printed(text), maxOutput),
      ...(report === undefined ? undefined : { report }),
      left_running: leftRunning.map(({ command, pid }) => `${pid} ${command}`)
    }
  }).pipe(Effect.catchTag("CommandUnavailable", ({ message }) => Effect.fail(new TestsUnavailable({ message }))))

const arguments_ = (script: string | undefined, files: ReadonlyArray<string>): ReadonlyArray<string> =>
  script === undefined ? ["--test", ...files] : ["--run", "test", ...(files.length === 0 ? [] : ["--", ...files])]

/** `--test-reporter` of the script's own leaves no room for another one. */
const options = (script: string | undefined): Readonly<Record<string, string>> =>
  script?.includes("--test-reporter") === true ? {} : { NODE_OPTIONS: "--test-reporter=tap" }

const Manifest = Schema.fromJsonString(Schema.Struct({ scripts: Schema.Struct({ test: Schema.String }) }))

const testScript = Folder.Folder.use(({ read }) =>
  read("package.json").pipe(
    Effect.flatMap(Schema.decodeUnknownEffect(Manifest)),
    Effect.map(({ scripts }): string | undefined => scripts.test),
    Effect.orElseSucceed(() => undefined)
  )
)

/** Where the project lies is nothing to a reader, and differs with each run. */
const relative = (root: string, output: string): string =>
  output
    .replaceAll(`${pathToFileURL(root).href}/`, "")
    .replaceAll(`${root}/`, "")
    .replaceAll(`${root}\\`, "")
