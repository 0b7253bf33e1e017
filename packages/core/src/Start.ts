/**
 * Starts and resumes Runs.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as LanguageModel from "effect/ai/LanguageModel"
import type { Agent, Output, Services } from "./Agent.ts"
import type { CheckpointStore } from "./CheckpointStore.ts"
import { canonical } from "./Digest.ts"
import { drive, type DriveError, type Hooks, silent } from "./Drive.ts"
import * as Input from "./Input.ts"
import type { ReadError } from "./Journal.ts"
import type { Outcome } from "./Outcome.ts"
import * as Outcomes from "./Outcomes.ts"
import * as Outside from "./Outside.ts"
import {
  type EncodeFailed,
  type Lift,
  lift,
  type RetryableFor,
  RunExists,
  type RunIdInvalid,
  type RunIsChild,
  type RunNotFound,
  StoreUnavailable,
  type ToolkitInvalid
} from "./RunError.ts"
import type { Content, Draft, Principal } from "./RunEvent.ts"
import { isTerminal } from "./RunHead.ts"
import type { RunState } from "./RunState.ts"
import * as Pending from "./Pending.ts"
import * as Plugin from "./Plugin.ts"
import * as Route from "./Route.ts"
import * as Stored from "./Stored.ts"
import * as Unattended from "./Unattended.ts"
import { defined } from "./Defined.ts"

export interface StartInput {
  /** 1 to 128 of `A-Z a-z 0-9 . _ : -`. The same id with the same agent and task is the same Run. */
  readonly runId: string
  readonly task: Input.Message
  /** On whose behalf; policies read it. */
  readonly principal?: Principal
  /** A key to list Runs by. */
  readonly session?: string
}

export interface ResumeInput {
  readonly runId: string
  /** Reopens a stopped or failed Run with other limits. */
  readonly limits?: Input.Reopened
  /** Reopens a stopped or failed Run with the limits it has. Default false. */
  readonly reopen?: boolean
  /** Names of plugins that it was started with and may go on without; journaled. */
  readonly without?: ReadonlyArray<string>
  /** Who resumes; recorded where it lifts a pause or reopens. Default "resume". */
  readonly by?: string
}

type Resting = RetryableFor<"ModelUnavailable" | "ModelTimeout">
type Driven = Lift<DriveError | Outcomes.Failure | ReadError | ToolkitInvalid | RunExists | RunIsChild> | Resting

/** How `start` can fail. */
export type StartError = Driven | Lift<EncodeFailed | RunIdInvalid>
/** How `resume` can fail. */
export type ResumeError = Driven | Lift<RunNotFound>

/**
 * Starts a Run and drives it until it ends or rests. Starting it again is safe: it goes on, or gives its stored Outcome.
 * Fails with RunExists for another agent or task, and with RunBusy while another owner drives it.
 */
export const start = <A extends Agent>(
  agent: A,
  input: StartInput,
  hooks: Hooks = silent
): Effect.Effect<Outcome<Output<A>>, StartError, Services<A>> => typed<A, StartError>(started(agent, input, hooks))

/** Goes on with a Run that rests, was interrupted, or whose owner died; lifts a pause. */
export const resume = <A extends Agent>(
  agent: A,
  input: ResumeInput,
  hooks: Hooks = silent
): Effect.Effect<Outcome<Output<A>>, ResumeError, Services<A>> => typed<A, ResumeError>(resumed(agent, input, hooks))

/** What a sweep does: the same, but a pause stays, since only a person lifts it. */
export const goOn = <A extends Agent>(
  agent: A,
  runId: string
): Effect.Effect<Outcome<Output<A>>, ResumeError, Services<A>> =>
  typed<A, ResumeError>(resumed(agent, { runId }, silent, true))

/** Stores a task as `accepted` and drives nothing; whoever resumes it drives it. The same again is a no-op. */
export const accept = (
  agent: Agent,
  input: StartInput
): Effect.Effect<void, Lift<ReadError | EncodeFailed | RunIdInvalid | RunExists | RunIsChild>, CheckpointStore> =>
  lift(
    Effect.gen(function* () {
      yield* Input.runId(input.runId)
      const task = yield* Input.content("task", input.task)
      const { runId } = input
      const seen = yield* Outside.find(runId)
      if (seen === undefined && (yield* Outside.create(runId, [accepted(agent, input, task)]))) return
      const gone = () => Effect.fail(new StoreUnavailable({ detail: `Run ${runId} was removed at the same time` }))
      const { head } = yield* Effect.catchTag(Outside.look(runId), "RunNotFound", gone)
      yield* Route.root(runId, head)
      yield* sameAs(agent, { runId, task }, yield* beginning(runId))
    })
  )

/** The one place where the services and the output that an agent's type promises meet the untyped loop. */
const typed = <A extends Agent, E>(
  effect: Effect.Effect<Outcome<unknown>, E, CheckpointStore | LanguageModel.LanguageModel>
): Effect.Effect<Outcome<Output<A>>, E, Services<A>> => effect as Effect.Effect<Outcome<Output<A>>, E, Services<A>>

const accepted = ({ name, version }: Agent, { principal, session }: StartInput, task: Content): Draft => ({
  _tag: "RunAccepted",
  agent: name,
  version,
  task,
  ...defined({ principal, session })
})

/** Its first event names its agent and its task for ever; the rest may be long. */
const beginning = (runId: string): Effect.Effect<RunState, ReadError, CheckpointStore> => Stored.load(runId, 1)

const sameAs = (
  agent: Agent,
  { runId, task }: { readonly runId: string; readonly task: Content },
  { head, task: known }: RunState
): Effect.Effect<void, RunExists> =>
  head.agent === agent.name && canonical(known) === canonical(task)
    ? Effect.void
    : Effect.fail(new RunExists({ runId }))

const started = (agent: Agent, input: StartInput, hooks: Hooks) =>
  Effect.gen(function* () {
    const { runId } = input
    yield* lift(Input.runId(runId))
    const task = yield* lift(Input.content("task", input.task))
    const seen = yield* lift(Outside.find(runId))
    if (seen !== undefined) yield* lift(Route.root(runId, seen.head))
    const same = (state: RunState) => sameAs(agent, { runId, task }, state)
    if (seen !== undefined && rests(seen, true)) {
      const state = yield* lift(Stored.load(runId, seen.entry.seq))
      yield* lift(same(state))
      if (yield* lift(isIdle(agent, runId, state))) return yield* lift(outcomeOf(agent, runId, state))
    }
    // Another task is another task, also while its owner is at work.
    if (seen?.entry.live === true) yield* lift(Effect.flatMap(beginning(runId), same))
    const before = (state: RunState) =>
      state.head.agent === "" ? Effect.succeed([accepted(agent, input, task)]) : Effect.as(same(state), [])
    return yield* driven(agent, { runId, before, without: [], ...hooks })
  })

const resumed = (agent: Agent, input: ResumeInput, hooks: Hooks, keepsPause = false) =>
  Effect.gen(function* () {
    const { by = "resume", limits, reopen = limits !== undefined, runId, without = [] } = input
    const seen = yield* lift(Outside.look(runId))
    yield* lift(Route.root(runId, seen.head))
    if (seen.head.agent !== agent.name) return yield* lift(Effect.fail(new RunExists({ runId })))
    const { status } = seen.head
    const reopens = reopen && (status === "stopped" || status === "failed")
    if (!reopens && rests(seen, false)) {
      const state = yield* lift(Stored.load(runId, seen.entry.seq))
      if (yield* lift(isIdle(agent, runId, state))) return yield* lift(outcomeOf(agent, runId, state))
    }
    const changes = limits === undefined ? undefined : { limits: yield* lift(Input.limits(agent, limits)) }
    const before = ({ head, outcome }: RunState): Effect.Effect<ReadonlyArray<Draft>> => {
      if (outcome !== undefined) return Effect.succeed(reopens ? [{ _tag: "RunReopened", by, ...changes }] : [])
      return Effect.succeed(head.paused === undefined || keepsPause ? [] : [{ _tag: "PauseLifted", by }])
    }
    return yield* driven(agent, { runId, before, without, ...hooks })
  })

/** True if there is nothing to drive: the Run ended, or what it waits for has not come. */
const rests = (seen: Outside.Seen, keepsPause: boolean): boolean => {
  const { head } = seen
  // A retry is due by the clock of who drives it, the time to answer is over by the store's.
  const now = head.retry === undefined ? Outside.storeTime(seen) : seen.now
  if (head.status !== "waiting") return isTerminal(head)
  if (head.cancelled !== undefined) return false // whoever cancelled it has not ended it
  if (head.paused !== undefined) return keepsPause
  // A fork that was never driven may hold a doubt that its tool can settle.
  return head.attempts > 0 && !(head.wakeAt !== undefined && head.wakeAt <= now)
}

/** False if it waits for what nobody is there any more to answer. */
const isIdle = (agent: Agent, runId: string, state: RunState) =>
  state.outcome !== undefined
    ? Effect.succeed(true)
    : Effect.map(Unattended.withdrawn(agent, runId, state), (drafts) => drafts.length === 0)

/** Where it waits for what its sub-agents ask, with what that is. */
const outcomeOf = (agent: Agent, runId: string, state: RunState) =>
  Effect.flatMap(Outcomes.of(runId, state, agent.output), (outcome) => Pending.told(runId, outcome))

const driven = (agent: Agent, input: Omit<Parameters<typeof drive>[0], "agent">) =>
  Effect.gen(function* () {
    const context = yield* Effect.context<never>()
    yield* lift(Input.agent(agent, context))
    yield* lift(Input.plugins(agent, Plugin.collect(context)))
    const { runId } = input
    const state = yield* lift(drive({ agent, ...input }))
    const resting = Outcomes.resting(runId, state)
    return yield* resting === undefined ? lift(outcomeOf(agent, runId, state)) : Effect.fail(resting)
  })
