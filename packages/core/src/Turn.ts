/**
 * Makes one logical model call: window, prompt, tries, reply, events.
 *
 * Invariants
 *   M1  TurnStarted is committed before the model is asked, so a lost turn is counted and a superseded owner never pays.
 *   M2  No tool runs during a Turn, whatever stands in the prompt.
 *   M3  Every Turn ends with TurnCompleted or TurnFailed, unless its process dies or is interrupted.
 *   M4  Failed and aborted tries are paid for: their usage is in the event, estimated if it must be.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as AiError from "effect/ai/AiError"
import * as Prompt from "effect/ai/Prompt"
import type { Attempt } from "./Attempt.ts"
import { defined } from "./Defined.ts"
import { Halted } from "./Interruption.ts"
import type { Reply } from "./Interceptor.ts"
import type { JournalError } from "./Journal.ts"
import * as Messages from "./Messages.ts"
import { ModelSettings } from "./ModelInfo.ts"
import * as ModelTries from "./ModelTries.ts"
import type { StopReason } from "./Outcome.ts"
import * as Replies from "./Replies.ts"
import type { Failure, Of, Reservations, Try } from "./RunEvent.ts"
import * as Text from "./Text.ts"
import * as Usage from "./Usage.ts"

export interface Plan {
  /** The limit that asked for a final turn without tools. */
  readonly final?: StopReason
  readonly reservations?: Reservations
  readonly maxOutputTokens?: number
}

/** Calls the model once, tries included, and stages what came of it. */
export const perform = Effect.fnUntraced(function* (
  attempt: Attempt,
  plan: Plan
): Effect.fn.Return<void, JournalError> {
  const { agent, journal, modelInfo, stoppable } = attempt
  const turn = journal.state.head.turn + 1
  const settings = settingsOf(attempt, plan)
  const { model, provider, server } = modelInfo
  const started = {
    _tag: "TurnStarted",
    turn,
    stream: agent.stream,
    ...defined({ provider, model, server, reservations: plan.reservations, final: plan.final }),
    ...(Object.keys(settings).length === 0 ? undefined : { settings })
  } as const
  if (!(yield* journal.put(started, { commit: true }))) return
  const tries: Array<Try> = []
  const made = Effect.suspend(() =>
    ModelTries.make({ attempt, prompt: promptOf(attempt), turn, withTools: plan.final === undefined, tries })
  ).pipe(Effect.catchDefect((defect) => Effect.fail(Replies.defect(defect)))) // of the agent's window
  const answered = made.pipe(
    Effect.flatMap((reply) => completion(attempt, { turn, reply, tries })),
    Effect.flatMap((completed) =>
      plan.final === undefined ? withOutput(attempt, completed) : Effect.succeed(completed)
    )
  )
  const reply = Effect.provideService(answered, ModelSettings, settings)
  const paid = Effect.ignore(Effect.suspend(() => fail(attempt, { turn, error: "interrupted", tries })))
  const result = yield* Effect.result(Effect.onInterrupt(stoppable.run("model", reply), () => paid))
  if (Result.isSuccess(result)) {
    yield* journal.put(result.success)
  } else {
    const error = result.failure
    if (error._tag === "OwnershipLost") return yield* error
    yield* fail(attempt, { turn, error, tries })
  }
})

/** The instructions, what was summarised, the window, and what the model must hear about its last reply. */
const promptOf = ({ agent, journal }: Attempt): Prompt.Prompt => {
  const { feedback, history, summary } = journal.state
  const before: Array<Prompt.Message> = []
  const instructions = [agent.instructions, agent.output?.instructions ?? ""].filter((text) => text.trim() !== "")
  if (instructions.length > 0)
    before.push(Prompt.makeMessage("system", { content: Text.wellFormed(instructions.join("\n\n")) }))
  if (summary !== undefined) before.push(Messages.user(summary))
  const after = feedback === undefined ? [] : [Messages.user(feedback)]
  return Prompt.fromMessages(before.concat(agent.window(history), after)) // concat: a spread costs 20 ns a message
}

type Completed = Omit<Of<"TurnCompleted">, "at">

/** The event of a reply; a reply that cannot be stored fails the Turn. */
const completion = (
  attempt: Attempt,
  { reply, tries, turn }: { readonly turn: number; readonly reply: Reply; readonly tries: ReadonlyArray<Try> }
): Effect.Effect<Completed, AiError.AiError> =>
  Effect.suspend(() => {
    const completed: Completed = {
      _tag: "TurnCompleted",
      turn,
      ...Replies.read(reply),
      ...spent(attempt, tries),
      ...(tries.length > 1 ? { tries } : undefined)
    }
    const unreadable = Replies.unreadable(completed.reply)
    return unreadable === undefined ? Effect.succeed(completed) : Effect.fail(Replies.defect(unreadable))
  }).pipe(Effect.catchDefect((defect) => Effect.fail(Replies.defect(defect))))

/** What an answer comes to where it must match a schema; a refusal or a cut was found before (RI-150). */
const withOutput = ({ agent }: Attempt, completed: Completed): Effect.Effect<Completed> => {
  const { finish, rejected, reply } = completed
  const calls = reply.some((part) => part.type === "tool-call" && part.providerExecuted !== true)
  if (agent.output === undefined || rejected !== undefined || finish === "content-filter" || calls)
    return Effect.succeed(completed)
  return Effect.map(agent.output.read(Messages.textOf(reply)), (output) =>
    Result.isSuccess(output)
      ? { ...completed, output: output.success }
      : { ...completed, rejected: { kind: "output", feedback: output.failure } }
  )
}

const fail = (
  attempt: Attempt,
  {
    error,
    tries,
    turn
  }: {
    readonly turn: number
    readonly error: AiError.AiError | Halted | "interrupted"
    readonly tries: ReadonlyArray<Try>
  }
): Effect.Effect<boolean, JournalError> =>
  attempt.journal.put({
    _tag: "TurnFailed",
    turn,
    failure:
      error === "interrupted" || error instanceof Halted
        ? stopped(attempt, error)
        : Replies.stored(error, attempt.modelRetry.table, attempt.wall()),
    tries,
    ...spent(attempt, tries)
  })

const stopped = ({ journal }: Attempt, error: Halted | "interrupted"): Failure => ({
  tag: error === "interrupted" ? "Interrupted" : journal.state.head.cancelled === undefined ? "Deadline" : "Cancelled",
  message: "stopped while the model was answering",
  retryable: true
})

const spent = (attempt: Attempt, tries: ReadonlyArray<Try>) => {
  const usage = tries.reduce((sum, one) => Usage.add(sum, one.usage ?? Usage.zero), Usage.zero)
  const cost = Usage.total(usage) === 0 ? 0 : costOf(attempt, usage)
  return { usage, ...(Number.isFinite(cost) ? { costNanoUsd: Math.round(cost) } : undefined) }
}

/** NaN where the price is not known: a table with a bug must not lose a reply that was paid. */
const costOf = ({ modelInfo, prices }: Attempt, usage: Usage.Usage): number => {
  try {
    return prices.cost(modelInfo, usage) ?? Number.NaN
  } catch {
    return Number.NaN
  }
}

/** Settings that are set, the output bounded by what a guard allows. */
const settingsOf = ({ modelSettings }: Attempt, { maxOutputTokens }: Plan) => {
  const most = Math.min(modelSettings.maxOutputTokens ?? Infinity, maxOutputTokens ?? Infinity)
  return defined({ ...modelSettings, maxOutputTokens: most === Infinity ? undefined : most })
}
