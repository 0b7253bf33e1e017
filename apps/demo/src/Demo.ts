/**
 * The demo: starts or resumes a Run of the repairer, or of a team, shows it while it happens, then looks for itself whether the project is
 * repaired, and whether the journal proves what the scenario is about.
 */
import { type Agent, type CheckpointStore, ModelInfo, Run } from "@waystone/core"
import { Approver, Sanitizer } from "@waystone/policy"
import type { CommandRunner, FileError, Folder } from "@waystone/tools"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { DemoAgent } from "./Agent.ts"
import { Rules } from "./approval/Rules.ts"
import { again } from "./model/Choice.ts"
import { Chosen } from "./model/Models.ts"
import * as Calls from "./Calls.ts"
import { Project } from "./Project.ts"
import * as ProjectPath from "./ProjectPath.ts"
import * as Rejected from "./Rejected.ts"
import * as Resting from "./Resting.ts"
import * as Running from "./Running.ts"
import * as RunTests from "./RunTests.ts"
import type { Scenario } from "./scenario/Scenario.ts"
import * as WriteRecord from "./scenario/WriteRecord.ts"
import type { Proof, Rests, Update, Verified } from "./Shown.ts"
import * as Snapshot from "./Snapshot.ts"
import * as Status from "./Status.ts"
import { Keeping } from "./Stores.ts"
import { type OutputClosed, View } from "./View.ts"

/** What it runs on. */
export type Services =
  | Agent.Services<DemoAgent>
  | CommandRunner.CommandRunner
  | Folder.Folder
  | Project
  | View
  | Approver.Approver
  | Rules

export type DemoError =
  | OutputClosed
  | FileError.FileError
  | FileError.BadPattern
  | FileError.FolderUnavailable
  | Run.EventsError

export interface Input {
  readonly agent: DemoAgent
  readonly runId: string
  /** What a new Run is to do; a Run that is there goes on with its own. */
  readonly begin: { readonly _tag: "Start"; readonly task: string } | Resumed
  readonly scenario: Scenario | undefined
}

interface Resumed {
  readonly _tag: "Resume"
  readonly task: string
  /** It had failed, and may be tried again. */
  readonly reopen: boolean
  /** Plugins that it may go on without. */
  readonly without: ReadonlyArray<string>
}

/** Runs it on the Project that is provided; true if everything is as it should be. */
export const run = Effect.fnUntraced(function* (input: Input): Effect.fn.Return<boolean, DemoError, Services> {
  const { begin, runId, scenario } = input
  const { folder, keep, original, source } = yield* Project
  const { show } = yield* View
  const resumed = begin._tag === "Resume"
  const model = yield* ModelInfo.ModelInfo
  const about = scenario === undefined ? undefined : { scenario: { name: scenario.name, says: scenario.says } }
  yield* show({
    _tag: "Began",
    runId,
    folder,
    source,
    task: begin.task,
    model,
    scripted: (yield* Chosen)._tag === "Offline",
    ...about,
    ...(resumed ? { resumed: yield* lastReply(runId) } : undefined)
  })
  const before = yield* original === undefined ? Snapshot.take : Snapshot.of(original)
  // Whatever happens from here on, only a Run that has ended loses its folder.
  yield* keep((yield* Keeping).durable)
  const { left, objections, rejected } = yield* driven(input, before)
  if (!rejected) yield* leave(runId)
  const found = yield* withoutSecrets(yield* left ? looked(before, objections) : verify(before, objections))
  const since = resumed && original === undefined ? { since: "resume" as const } : undefined
  const verified: Verified = { _tag: "Verified", runId, folder, source, model, ...since, ...found }
  yield* show(verified)
  const proof = scenario === undefined ? undefined : yield* prove(scenario, verified)
  if (proof !== undefined) yield* show(proof)
  return verified.repaired && proof?.proven !== false
})

/** Drives the Run and shows it while it happens; gives what speaks against its end. */
const driven = Effect.fnUntraced(function* ({ agent, begin, runId }: Input, before: Snapshot.Snapshot) {
  const { folder } = yield* Project
  const { show } = yield* View
  const { command, durable } = yield* Keeping
  const objections: Array<string> = []
  const choice = yield* Chosen
  const { flag: rules } = yield* Rules
  const goOn = (verb: string, asked = choice) => ({
    goOn: `${command(`${verb} ${runId}`)}${verb === "resume" ? again(asked) + rules : ""}`
  })
  const rests = (asks: boolean, wakeAt: number | undefined): Rests => {
    const more = wakeAt === undefined ? undefined : { wakeAt, atOnce: command(`fork ${runId}`) }
    return { _tag: "Rests", runId, asks, ...goOn(asks ? "show" : "resume"), ...more }
  }
  let left = false
  let rejected = false
  const running = yield* Running.make
  const updates: Stream.Stream<Update, never, Services | CheckpointStore.CheckpointStore> =
    begin._tag === "Start"
      ? Approver.stream(agent, { runId, task: begin.task, session: folder })
      : Approver.streamResume(agent, { runId, by: "user", reopen: begin.reopen, without: begin.without })
  const interrupted = Effect.gen(function* () {
    const more = (yield* pausedHere(runId)) ? goOn("resume") : undefined
    const changes = yield* withoutSecrets(Snapshot.changes(before, yield* Snapshot.take))
    yield* show({ _tag: "Interrupted", runId, changes, ...more })
  })
  yield* Stream.runForEach(updates, (update) => {
    const objection = objectionTo(update)
    if (objection !== undefined) objections.push(objection)
    running.note(update)
    left = isLeft(update)
    const advised = update._tag === "Failed" ? Rejected.advice(update, choice) : undefined
    if (advised !== undefined) {
      rejected = true
      const more = durable ? goOn("resume", advised.choice) : undefined
      return Effect.andThen(show(update), show({ _tag: "Rejected", runId, advice: advised.advice, ...more }))
    }
    if (!durable) return show(update)
    if (update._tag === "Failed" && Resting.is(update)) {
      return Effect.andThen(show(update), show(rests(false, Resting.wakeAt(update))))
    }
    if (update._tag === "Ended" && update.outcome._tag === "Suspended") {
      const { waiting } = update.outcome
      const asks = waiting.some(({ kind }) => kind !== "paused" && kind !== "retry")
      return Effect.andThen(show(update), show(rests(asks, Resting.until(waiting))))
    }
    return show(update)
  }).pipe(
    Effect.raceFirst(
      Effect.repeat(
        Effect.flatMap(running.long, (long) => Effect.forEach(long, show)),
        Schedule.spaced(Running.patience)
      ).pipe(Effect.andThen(Effect.never))
    ),
    Effect.tapError(() => pausedHere(runId)),
    Effect.onInterrupt(() => Effect.ignore(interrupted))
  )
  return { left: left || rejected, objections, rejected }
})

/** Files and tests are looked at here without the agent: what is shown of them has no secrets either. Only text changes. */
const withoutSecrets = <A>(found: A) => Effect.map(Sanitizer.Sanitizer, ({ json }) => json(found) as A)

/** A person left: the Run is paused, so that it can go on. False if nothing can. */
const pausedHere = Effect.fnUntraced(function* (runId: string) {
  const { durable } = yield* Keeping
  if (!durable) return false
  const paused = yield* Effect.result(Run.pause({ runId }))
  // It ended at this moment, or it never began.
  if (Result.isFailure(paused) && paused.failure._tag === "Fatal") yield* (yield* Project).keep(false)
  return Result.isSuccess(paused)
})

/** Nobody needs the temporary copy of a Run that has ended. If the store is away, nobody knows: then it stays. */
const leave = Effect.fnUntraced(function* (runId: string) {
  const { keep } = yield* Project
  const info = yield* Effect.result(Run.get(runId))
  const ended = Result.isSuccess(info)
    ? Status.hasEnded(info.success.status)
    : info.failure.reason._tag === "RunNotFound"
  if (ended) yield* keep(false)
})

/** Only a Run that came to its end counts. */
const objectionTo = (update: Update): string | undefined => {
  if (update._tag === "Failed")
    return `The run ${Resting.is(update) ? "rests" : "failed"} (${update.error.reason._tag}).`
  if (update._tag !== "Ended" || update.outcome._tag === "Completed") return undefined
  const { outcome } = update
  const why = outcome._tag === "Stopped" ? ` (${outcome.reason._tag})` : ""
  return `The run did not complete: it is ${outcome._tag.toLowerCase()}${why}.`
}

/** A person ended it or makes it wait, it rests, or another process drives it in this folder: nobody asks for its tests here. */
const isLeft = (update: Update): boolean =>
  update._tag === "Failed"
    ? update.error.reason._tag === "RunBusy" || Resting.is(update)
    : update._tag === "Ended" && (update.outcome._tag === "Cancelled" || update.outcome._tag === "Suspended")

/** Only what was changed. */
const looked = Effect.fnUntraced(function* (before: Snapshot.Snapshot, objections: ReadonlyArray<string>) {
  const after = yield* Snapshot.take
  const changes = Snapshot.changes(before, after)
  return {
    repaired: false,
    objections,
    changes,
    truncated: after.truncated,
    report: undefined,
    untested: true as const
  }
})

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

/** What the model asked for last. */
const lastReply = (runId: string) =>
  Effect.map(events(runId), (all) => {
    const calls = Calls.asked(all)
    const turn = calls.at(-1)?.callId.split(".")[0]
    return calls
      .filter(({ callId }) => callId.split(".")[0] === turn)
      .map(({ arguments: given, callId, name }) => ({ callId, name, arguments: given }))
  })

const events = (runId: string) =>
  Effect.map(Stream.runCollect(Run.events(runId, { follow: false })), (entries) => entries.map(({ event }) => event))

/** Only what is stored and what lies in the folder counts, not what was shown. */
const prove = Effect.fnUntraced(function* ({ name, prove }: Scenario, { changes, folder, repaired, runId }: Verified) {
  const below = yield* Run.list({ parent: runId })
  const others = yield* Effect.forEach(below, ({ runId }) => Effect.map(events(runId), (all) => [runId, all] as const))
  const seen = { changes, writes: yield* WriteRecord.read(folder), below: new Map(others) }
  const claims = prove(yield* events(runId), seen)
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
