/**
 * The demo: starts a Run of the repairer, shows it while it happens, then looks for itself whether the project is
 * repaired, and whether the journal proves what the scenario is about.
 */
import { type Agent, Run } from "@waystone/core"
import type { CommandRunner, FileError, Folder } from "@waystone/tools"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { Repairer } from "./Agent.ts"
import { Project } from "./Project.ts"
import * as ProjectPath from "./ProjectPath.ts"
import * as Running from "./Running.ts"
import * as RunTests from "./RunTests.ts"
import type { Scenario } from "./Scenario.ts"
import type { Proof, Update, Verified } from "./Shown.ts"
import * as Snapshot from "./Snapshot.ts"
import { type OutputClosed, View } from "./View.ts"

/** What it runs on. */
export type Services = Agent.Services<Repairer> | CommandRunner.CommandRunner | Folder.Folder | Project | View

export type DemoError = OutputClosed | FileError.FileError | FileError.BadPattern | Run.EventsError

export interface Input {
  readonly agent: Repairer
  readonly runId: string
  readonly task: string
  readonly scenario: Scenario | undefined
}

/** Runs it on the Project that is provided; true if everything is as it should be. */
export const run = Effect.fnUntraced(function* ({
  agent,
  runId,
  scenario,
  task
}: Input): Effect.fn.Return<boolean, DemoError, Services> {
  const { folder, source } = yield* Project
  const { show } = yield* View
  const about = scenario === undefined ? undefined : { scenario: { name: scenario.name, says: scenario.says } }
  yield* show({ _tag: "Began", runId, folder, source, task, ...about })
  const before = yield* Snapshot.take
  const objections: Array<string> = []
  const running = yield* Running.make
  yield* Run.stream(agent, { runId, task }).pipe(
    Stream.runForEach((update) => {
      const objection = objectionTo(update)
      if (objection !== undefined) objections.push(objection)
      running.note(update)
      return show(update)
    }),
    Effect.raceFirst(
      Effect.repeat(
        Effect.flatMap(running.long, (long) => Effect.forEach(long, show)),
        Schedule.spaced(Running.patience)
      ).pipe(Effect.andThen(Effect.never))
    ),
    Effect.onInterrupt(() =>
      Effect.flatMap(Snapshot.take, (after) =>
        show({ _tag: "Interrupted", runId, changes: Snapshot.changes(before, after) })
      ).pipe(Effect.ignore)
    )
  )
  const verified: Verified = { _tag: "Verified", runId, folder, source, ...(yield* verify(before, objections)) }
  yield* show(verified)
  const proof = scenario === undefined ? undefined : yield* prove(scenario, verified)
  if (proof !== undefined) yield* show(proof)
  return verified.repaired && proof?.proven !== false
})

/** Only a Run that came to its end counts. */
const objectionTo = (update: Update): string | undefined => {
  if (update._tag === "Failed") return `The run failed: ${update.error.message}`
  if (update._tag !== "Ended" || update.outcome._tag === "Completed") return undefined
  const { outcome } = update
  const why = outcome._tag === "Stopped" ? ` (${outcome.reason._tag})` : ""
  return `The run did not complete: it is ${outcome._tag.toLowerCase()}${why}.`
}

/** The tests decide, not the model; and they must be the tests that were there before. */
const verify = Effect.fnUntraced(function* (before: Snapshot.Snapshot, objections: ReadonlyArray<string>) {
  const after = yield* Snapshot.take
  const changes = Snapshot.changes(before, after)
  const tests = yield* Effect.result(RunTests.run)
  const all = [...objections, ...testObjections(tests), ...changedTests(changes)]
  return {
    repaired: all.length === 0,
    objections: all,
    changes,
    truncated: after.truncated,
    report: Result.isSuccess(tests) ? tests.success.report : undefined
  }
})

const testObjections = (tests: Result.Result<RunTests.TestRun, RunTests.TestsUnavailable>): ReadonlyArray<string> => {
  if (Result.isFailure(tests)) return [`The tests could not be run: ${tests.failure.message}.`]
  const { exit_code: code, report, status } = tests.success
  if (status === "timed-out") return ["The tests did not come to an end."]
  if (report === undefined && code === 0) return ["No test was reported by Node's test runner."]
  if (report?.tests === 0) return ["There are no tests."]
  return code === 0 && report?.failed === 0 ? [] : [`The tests do not pass: exit code ${code ?? "unknown"}.`]
}

const changedTests = (changes: ReadonlyArray<Snapshot.Change>): ReadonlyArray<string> =>
  changes.filter(({ path }) => ProjectPath.isTest(path)).map(({ path }) => `A test was changed: ${path}.`)

/** Only what is stored counts, not what was shown. */
const prove = Effect.fnUntraced(function* ({ name, prove }: Scenario, { repaired, runId }: Verified) {
  const entries = yield* Stream.runCollect(Run.events(runId))
  const claims = prove(entries.map(({ event }) => event))
  const all = [...claims, { claim: "the project is repaired", holds: repaired }]
  const failed = all.filter(({ holds }) => !holds)
  const proof: Proof = {
    _tag: "Proof",
    scenario: name,
    proven: failed.length === 0,
    line: (failed.length === 0 ? all : failed).map(({ claim }) => claim).join("; ")
  }
  return proof
})
