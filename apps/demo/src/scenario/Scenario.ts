/**
 * The situations that `--scenario` puts the agent in, and what its journal must then prove.
 *
 * What goes wrong is done to the services that the agent runs on; agent, loop and tools are the same as ever.
 */
import type { CommandRunner, Folder } from "@waystone/tools"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as AiError from "effect/ai/AiError"
import {
  type Claim,
  completed,
  ended,
  type Events,
  everyCallHasOneResult,
  requests,
  type Seen,
  tries,
  turns
} from "./Claims.ts"
import * as Calls from "../Calls.ts"
import * as CrashProof from "./CrashProof.ts"
import type { Disturbance } from "../model/OfflineModel.ts"
import { RunTests, TestRun } from "../RunTests.ts"
import * as TeamProof from "./TeamProof.ts"
import * as WriteRecord from "./WriteRecord.ts"

export interface Scenario {
  readonly name: (typeof names)[number]
  /** What is about to happen, in a sentence. */
  readonly says: string
  /** A planner and its workers do it, on a project with two bugs. */
  readonly team?: true
  /** How long the model may take to begin its reply. */
  readonly firstPart?: Duration.Input
  /** What the model does at its n-th request, counted from 1, instead of answering. */
  readonly disturb?: (request: number) => Disturbance | undefined
  readonly folder?: (folder: Folder.Folder["Service"]) => Effect.Effect<Folder.Folder["Service"]>
  readonly runner?: (
    runner: CommandRunner.CommandRunner["Service"]
  ) => Effect.Effect<CommandRunner.CommandRunner["Service"]>
  readonly prove: (events: Events, seen?: Seen) => ReadonlyArray<Claim>
}

export const names = ["normal", "tool-failure", "rate-limit", "timeout", "crash", "team"] as const

export const get = (name: Scenario["name"]): Scenario => scenarios[name]

const normal: Scenario = {
  name: "normal",
  says: "nothing goes wrong",
  prove: (events) => [
    everyCallHasOneResult(events),
    { claim: "no call failed", holds: completed(events).every(({ isFailure }) => !isFailure) },
    { claim: "no request was made twice", holds: turns(events).every((turn) => tries(turn).length <= 1) },
    ended(events)
  ]
}

const toolFailure: Scenario = {
  name: "tool-failure",
  says: "the first edit hits a broken disk: the tool crashes with an exception",
  folder: (folder) =>
    onlyOnce((once) => ({
      ...folder,
      update: (path, change) =>
        once(Effect.die(new Error(`EIO: i/o error, write '${folder.root}/${path}'`)), folder.update(path, change))
    })),
  prove: (events) => {
    const [crashed, ...later] = completed(events).filter(({ name }) => name === "edit_file")
    const told = JSON.stringify(crashed?.result ?? null)
    const again = later.find(
      ({ callId }) => crashed !== undefined && asks(events, callId) === asks(events, crashed.callId)
    )
    return [
      { claim: "the crash is an error result for that one call", holds: crashed?.isFailure === true },
      { claim: "it says what happened", holds: told.includes("EIO") },
      { claim: "and names no path and no stack", holds: !/['"\s(](?:\/|[A-Za-z]:\\)\S|\bat .+:\d+/.test(told) },
      { claim: "the model saw it and made the same call again, which worked", holds: again?.isFailure === false },
      everyCallHasOneResult(events),
      ended(events)
    ]
  }
}

const wait = Duration.seconds(2)
const wordsBeforeOverload = 4

const rateLimit: Scenario = {
  name: "rate-limit",
  says: "the second model call is refused with 429 and Retry-After: 2, and its second try breaks off in the middle",
  disturb: (request) => {
    if (request === 2) return { _tag: "Fail", error: failure(new AiError.RateLimitError({ retryAfter: wait })) }
    if (request !== 3) return undefined
    const error = failure(new AiError.InternalProviderError({ description: "overloaded" }))
    return { _tag: "BreakOff", words: wordsBeforeOverload, error }
  },
  prove: (events) => {
    const turn = turns(events).find((one) => one.turn === 2)
    const [first, second, third] = turn === undefined ? [] : tries(turn)
    const waited = (second?.at ?? 0) - (first?.endedAt ?? 0)
    const text = turn?.reply.map((part) => (part.type === "text" ? part.text : "")).join("") ?? ""
    const start = text.split(" ").slice(0, wordsBeforeOverload).join(" ")
    return [
      { claim: `the wait that was asked for was kept (${waited} ms)`, holds: waited >= Duration.toMillis(wait) },
      { claim: "the third try answered", holds: third !== undefined && third.failure === undefined },
      { claim: "no text of the broken try is left", holds: start !== "" && text.split(start).length === 2 },
      { claim: "exactly two requests more than turns", holds: requests(events) === turns(events).length + 2 },
      everyCallHasOneResult(events),
      ended(events)
    ]
  }
}

const timeout: Scenario = {
  name: "timeout",
  says: "the second model call never answers (limit 2 s), and the first test run never ends (limit 2 s)",
  firstPart: "2 seconds",
  disturb: (request) => (request === 2 ? { _tag: "Hang" } : undefined),
  runner: (runner) =>
    onlyOnce((once) => ({
      run: (command) =>
        once(
          runner.run({
            ...command,
            argv: [process.execPath, "-e", "setInterval(() => {}, 1000)"],
            timeout: "2 seconds"
          }),
          runner.run(command)
        )
    })),
  prove: (events) => {
    const turn = turns(events).find((one) => one.turn === 2)
    const [silent, second] = turn === undefined ? [] : tries(turn)
    const [hung, ...others] = completed(events)
      .filter(({ name }) => name === RunTests.name)
      .map(({ result }) => Option.getOrUndefined(decodeTestRun(result)))
    return [
      { claim: "the silent request was ended and made again", holds: silent?.failure?.tag === "ModelTimeout" },
      { claim: "the second try answered", holds: second !== undefined && second.failure === undefined },
      { claim: "the tests that hung were killed", holds: hung?.status === "timed-out" },
      { claim: "no process of theirs is left", holds: hung?.left_running.length === 0 },
      { claim: "the model was told and ran them again", holds: others.some((run) => run?.status === "exited") },
      everyCallHasOneResult(events),
      ended(events)
    ]
  }
}

/** The process that dies. Another one resumes the Run, as `survivor`, and proves it. */
const crash: Scenario = {
  name: "crash",
  says: "the process kills itself (SIGKILL) inside the first edit, when the file is written and its result is not recorded; another one resumes",
  folder: (folder) => Effect.succeed(WriteRecord.recorded(folder, dies)),
  prove: CrashProof.prove(undefined)
}

const team: Scenario = {
  name: "team",
  says: "a planner lets two workers repair two bugs at the same time",
  team: true,
  prove: (events, seen = { changes: [], writes: [] }) => TeamProof.prove(events, seen)
}

/** `--scenario team --crash`: the process that dies, as soon as both workers have written a file. */
export const teamCrash: Scenario = {
  ...team,
  says: `${team.says}, and the process kills itself (SIGKILL) inside an edit of each, when both files are written and no result is recorded; another one resumes`,
  folder: (folder) =>
    Effect.map(Ref.make(0), (written) => {
      const after = Effect.flatMap(
        Ref.updateAndGet(written, (n) => n + 1),
        (n) => (n < 2 ? Effect.never : dies)
      )
      return WriteRecord.recorded(folder, after)
    }),
  prove: (events, seen = { changes: [], writes: [] }) => TeamProof.proveCrash(undefined)(events, seen)
}

/** The process that goes on after `death`: what it writes is recorded as well. */
export const survivor = (scenario: Scenario, death: CrashProof.Death): Scenario => ({
  ...scenario,
  folder: (folder) => Effect.succeed(WriteRecord.recorded(folder)),
  prove: (events, seen = { changes: [], writes: [] }) =>
    (scenario.team === true ? TeamProof.proveCrash(death) : CrashProof.prove(death))(events, seen)
})

/** Ends this process as a power cut would: nothing is flushed, no finalizer runs. */
const dies = Effect.andThen(
  Effect.sync(() => process.kill(process.pid, "SIGKILL")),
  Effect.never
)

const scenarios: { readonly [Name in Scenario["name"]]: Scenario } = {
  normal,
  "tool-failure": toolFailure,
  "rate-limit": rateLimit,
  timeout,
  crash,
  team
}

const failure = (reason: AiError.AiErrorReason): AiError.AiError =>
  AiError.make({ module: "demo", method: "OfflineModel", reason })

type Once = <A, E, R>(first: Effect.Effect<A, E, R>, after: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Gives `make` a function that takes its first argument once, and its second ever after. */
const onlyOnce = <A>(make: (once: Once) => A): Effect.Effect<A> =>
  Effect.map(Ref.make(false), (done) =>
    make((first, after) => Effect.flatMap(Ref.getAndSet(done, true), (was) => (was ? after : first)))
  )

const decodeTestRun = Schema.decodeUnknownOption(TestRun)

/** The arguments of a call, as the model wrote them. */
const asks = (events: Events, callId: string): string =>
  JSON.stringify(Calls.asked(events).find((call) => call.callId === callId)?.arguments ?? null)
