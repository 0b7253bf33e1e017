/**
 * The demo: starts a Run of the repairer, shows it while it happens, and then looks for itself whether the project is
 * repaired.
 */
import { type Agent, Run } from "@waystone/core"
import * as Effect from "effect/Effect"
import type { PlatformError } from "effect/PlatformError"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import { repairer, task } from "./Agent.ts"
import * as Diff from "./Diff.ts"
import * as ProjectPath from "./ProjectPath.ts"
import type { Update, Verified } from "./Shown.ts"
import * as Tap from "./Tap.ts"
import * as TestRun from "./TestRun.ts"
import type { FileError } from "./ToolErrors.ts"
import { View } from "./View.ts"
import { Workspace } from "./Workspace.ts"

/** What it runs on. */
export type Services = Agent.Services<typeof repairer> | Workspace | View | ChildProcessSpawner

/** Runs it in the Workspace that is provided. */
export const run = Effect.fnUntraced(function* (
  runId: string
): Effect.fn.Return<Verified, PlatformError | FileError, Services> {
  const { root } = yield* Workspace
  const { show } = yield* View
  const before = yield* snapshot
  yield* show({ _tag: "Began", runId, folder: root })
  const objections: Array<string> = []
  yield* Run.stream(repairer, { runId, task }).pipe(
    Stream.runForEach((update) => {
      const objection = objectionTo(update)
      if (objection !== undefined) objections.push(objection)
      return show(update)
    })
  )
  const verified = yield* verify({ runId, before, objections })
  yield* show(verified)
  return verified
})

/** Only a Run that came to its end counts. */
const objectionTo = (update: Update): string | undefined => {
  if (update._tag === "Failed") return `The run failed: ${update.error.message}`
  if (update._tag !== "Ended" || update.outcome._tag === "Completed") return undefined
  const { outcome } = update
  const why = outcome._tag === "Stopped" ? ` (${outcome.reason._tag})` : ""
  return `The run did not complete: it is ${outcome._tag.toLowerCase()}${why}.`
}

const snapshot = Effect.gen(function* () {
  const { list, read } = yield* Workspace
  const files = yield* Effect.forEach(yield* list, (path) => Effect.map(read(path), (text) => [path, text] as const))
  return new Map(files)
})

interface Seen {
  readonly runId: string
  readonly before: ReadonlyMap<string, string>
  readonly objections: ReadonlyArray<string>
}

/** The tests decide, not the model; and they must be the tests that were there before. */
const verify = Effect.fnUntraced(function* ({ before, objections, runId }: Seen) {
  const { root } = yield* Workspace
  const changes = Diff.changes(before, yield* snapshot)
  const tests = yield* Effect.result(TestRun.run(root))
  const report = Result.isSuccess(tests) ? Tap.parse(tests.success.output) : undefined
  const all = [...objections, ...testObjections(tests), ...changedTests(changes)]
  const verified: Verified = { _tag: "Verified", runId, repaired: all.length === 0, objections: all, changes, report }
  return verified
})

const testObjections = (tests: Result.Result<TestRun.TestRun, { readonly message: string }>): ReadonlyArray<string> => {
  if (Result.isFailure(tests)) return [tests.failure.message]
  const { exitCode, output } = tests.success
  const report = Tap.parse(output)
  if (report.tests === 0) return ["There are no tests."]
  return exitCode === 0 && report.passed === report.tests ? [] : [`The tests do not pass: exit code ${exitCode}.`]
}

const changedTests = (changes: ReadonlyArray<Diff.Change>): ReadonlyArray<string> =>
  changes.filter(({ path }) => ProjectPath.isTest(path)).map(({ path }) => `A test was changed: ${path}.`)
