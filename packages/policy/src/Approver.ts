/**
 * Lets somebody who is there answer at once, in the process that drives the Run: on a terminal, on a page.
 *
 * Every question is stored before it is shown, and every answer is given by `Run.answer`: whoever else answers first is
 * heard first, a process that dies at the question loses nothing, and who may not answer otherwise may not here.
 *
 * @since 0.1.0
 */
import { type Agent, CheckpointStore, type Outcome, Run, type RunError, type RunUpdate } from "@waystone/core"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"

/** A question that waits for an answer. */
export interface Question {
  readonly runId: string
  readonly waiting: Extract<Outcome.Waiting, { readonly digest: string }>
  /** Why the answer that was given to it does not count; missing the first time. */
  readonly problem?: string
}

/** What is answered. */
export type Decision =
  | { readonly _tag: "Approve"; readonly edited?: Schema.Json; readonly scope?: "call" | "run" }
  | { readonly _tag: "Deny"; readonly reason: string }

export class Approver extends Context.Service<
  Approver,
  {
    /** Who answers; recorded, and `mayAnswer` is asked about it. */
    readonly by: string
    /**
     * Asked one question after the other, those of sub-agents too; interrupted when somebody else has answered. None: the
     * question waits on, and so it does after ten answers that do not count.
     */
    readonly decide: (question: Question) => Effect.Effect<Option.Option<Decision>>
  }
>()("@waystone/policy/Approver") {}

/** How often it is looked whether somebody else has answered: well within the second that SPEC 6 gives. */
const pollEvery = "250 millis"

type Services<A> = Agent.Services<A> | CheckpointStore.CheckpointStore | Approver
type StartUpdate<A> = RunUpdate.RunUpdate<Agent.Output<A>, Run.StartError | Run.ResumeError>

/** As `Run.start`; what it comes to wait for is put to the Approver, and the Run goes on with the answers. */
export const start = <A extends Agent.Agent>(
  agent: A,
  input: Run.StartInput
): Effect.Effect<Outcome.Outcome<Agent.Output<A>>, Run.StartError | Run.ResumeError, Services<A>> =>
  attended(agent, input.runId, Run.start(agent, input))

/** As `Run.resume`. */
export const resume = <A extends Agent.Agent>(
  agent: A,
  input: Run.ResumeInput
): Effect.Effect<Outcome.Outcome<Agent.Output<A>>, Run.ResumeError, Services<A>> =>
  attended(agent, input.runId, Run.resume(agent, input))

const attended = <A extends Agent.Agent, E>(
  agent: A,
  runId: string,
  first: Effect.Effect<Outcome.Outcome<Agent.Output<A>>, E, Agent.Services<A>>
): Effect.Effect<Outcome.Outcome<Agent.Output<A>>, E | Run.ResumeError, Services<A>> =>
  Effect.gen(function* () {
    const left = new Set<string>()
    let outcome = yield* first
    while (outcome._tag === "Suspended" && (yield* attend(agent, runId, left)))
      outcome = yield* Run.resume(agent, { runId })
    return outcome
  })

/** As `Run.stream`; it ends once, when the Run has ended or waits for somebody else. */
export const stream = <A extends Agent.Agent>(
  agent: A,
  input: Run.StartInput
): Stream.Stream<StartUpdate<A>, never, Services<A>> => streamed(agent, input.runId, Run.stream(agent, input))

/** As `Run.streamResume`. */
export const streamResume = <A extends Agent.Agent>(
  agent: A,
  input: Run.ResumeInput
): Stream.Stream<StartUpdate<A>, never, Services<A>> => streamed(agent, input.runId, Run.streamResume(agent, input))

const streamed = <A extends Agent.Agent>(
  agent: A,
  runId: string,
  first: Stream.Stream<StartUpdate<A>, never, Agent.Services<A> | CheckpointStore.CheckpointStore>
): Stream.Stream<StartUpdate<A>, never, Services<A>> => {
  const left = new Set<string>()
  const on = (
    updates: Stream.Stream<StartUpdate<A>, never, Agent.Services<A> | CheckpointStore.CheckpointStore>
  ): Stream.Stream<StartUpdate<A>, never, Services<A>> =>
    Stream.flatMap(updates, (update): Stream.Stream<StartUpdate<A>, never, Services<A>> => {
      if (update._tag !== "Ended" || update.outcome._tag !== "Suspended") return Stream.succeed(update)
      return Stream.unwrap(
        Effect.match(attend(agent, runId, left), {
          onSuccess: (goesOn) => (goesOn ? on(Run.streamResume(agent, { runId })) : Stream.succeed(update)),
          onFailure: (error) => Stream.succeed<StartUpdate<A>>({ _tag: "Failed", error })
        })
      )
    })
  return on(first)
}

/**
 * Puts every approval that the Run waits for to the Approver. True if one of them is answered, by whomever, so that the
 * Run can go on. `left` are those that the Approver left alone; it is not asked about them again.
 */
const attend = Effect.fnUntraced(function* (
  agent: Agent.Agent,
  runId: string,
  left: Set<string>
): Effect.fn.Return<boolean, Run.ResumeError, CheckpointStore.CheckpointStore | Approver> {
  const { waiting } = yield* Run.get(runId)
  let answered = false
  for (const wait of waiting) {
    if (wait.kind !== "approval") continue
    const key = [...(wait.path ?? []), wait.id, wait.digest].join()
    if (left.has(key)) continue
    if (yield* put(agent, { runId, waiting: wait }, maxTries)) answered = true
    else left.add(key)
  }
  return answered
})

/** Answers to one question that may not count, before it is left to somebody else: what answers may be no person. */
const maxTries = 10

/** True if it is answered. */
const put = (
  agent: Agent.Agent,
  question: Question,
  tries: number
): Effect.Effect<boolean, Run.ResumeError, CheckpointStore.CheckpointStore | Approver> =>
  Effect.gen(function* () {
    const { by, decide } = yield* Approver
    const { runId, waiting } = question
    const elsewhere = Effect.as(over(runId, waiting), "elsewhere" as const)
    const decision = yield* Effect.raceFirst(decide(question), elsewhere)
    if (decision === "elsewhere") return true
    if (Option.isNone(decision)) return false
    const { digest, id: callId, path } = waiting
    const call = { runId, callId, ...(path === undefined ? undefined : { path }) }
    return yield* Run.answer(agent, { ...call, by, answer: { ...decision.value, digest } }).pipe(
      Effect.as(true),
      Effect.catchIf(isOver, () => Effect.succeed(true)),
      Effect.catchIf(isRefused, ({ message, reason }) => {
        const problem = reason._tag === "AnswerInvalid" ? reason.issues : message
        return tries > 1 ? put(agent, { ...question, problem }, tries - 1) : Effect.succeed(false)
      })
    )
  })

type AnswerError = Effect.Error<ReturnType<typeof Run.answer>>
type Over =
  | RunError.FatalFor<"AlreadyDecided">
  | RunError.FatalFor<"NotPending">
  | RunError.FatalFor<"DigestMismatch">
  | RunError.FatalFor<"ApprovalExpired">
  | RunError.FatalFor<"RunTerminal">
type Refused = RunError.FatalFor<"AnswerInvalid"> | RunError.FatalFor<"MayNotAnswer">

/** The question is not the one that was answered any more. */
const isOver = (error: AnswerError): error is Over =>
  ["AlreadyDecided", "NotPending", "DigestMismatch", "ApprovalExpired", "RunTerminal"].includes(error.reason._tag)

/** Another answer, or another person, is needed. */
const isRefused = (error: AnswerError): error is Refused =>
  error.reason._tag === "AnswerInvalid" || error.reason._tag === "MayNotAnswer"

/** Ends when that question is not open any more, or its time is over. */
const over = (
  runId: string,
  { digest, expiresAt = Number.POSITIVE_INFINITY, id, path }: Question["waiting"]
): Effect.Effect<void, Run.ResumeError, CheckpointStore.CheckpointStore> =>
  Effect.gen(function* () {
    const store = yield* CheckpointStore.CheckpointStore
    let seen: number | undefined
    while (true) {
      const entry = yield* Effect.option(store.head(runId)) // one that is away for a moment is asked again
      if (Option.isSome(entry) && entry.value !== undefined) {
        const { seq } = entry.value
        const now = entry.value.now ?? (yield* Clock.currentTimeMillis)
        if (now >= expiresAt) return
        if (seq !== seen) {
          const { waiting } = yield* Run.get(runId)
          if (!waiting.some((wait) => wait.id === id && wait.digest === digest && wait.path?.join() === path?.join()))
            return
          seen = seq
        }
      }
      yield* Effect.sleep(pollEvery)
    }
  })
