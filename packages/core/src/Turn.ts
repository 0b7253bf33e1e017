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
import type { Attempt } from "./Attempt.ts"
import { defined } from "./Defined.ts"
import { Halted } from "./Interruption.ts"
import type { Reply } from "./Interceptor.ts"
import type { JournalError } from "./Journal.ts"
import * as Messages from "./Messages.ts"
import type { ModelInfo, Prices } from "./ModelInfo.ts"
import * as ModelTries from "./ModelTries.ts"
import type { Spending } from "./ModelTries.ts"
import type { StopReason } from "./Outcome.ts"
import * as Replies from "./Replies.ts"
import { promptOf } from "./Request.ts"
import type { Failure, Of, Reservations } from "./RunEvent.ts"
import * as Usage from "./Usage.ts"

export interface Plan {
  /** The limit that asked for a final turn without tools. */
  readonly final?: StopReason
  readonly reservations?: Reservations
  readonly maxOutputTokens?: number
  readonly maxPaidTries?: number
}

/** Calls the model once, tries included, and stages what came of it. */
export const perform = Effect.fnUntraced(function* (
  attempt: Attempt,
  plan: Plan
): Effect.fn.Return<void, JournalError> {
  const { agent, journal, models, stoppable } = attempt
  const turn = journal.state.head.turn + 1
  const { model, provider, server } = models[0].info
  const settings = ModelTries.bounded(models[0].settings, plan.maxOutputTokens)
  const started = {
    _tag: "TurnStarted",
    turn,
    stream: agent.stream,
    ...defined({ provider, model, server, reservations: plan.reservations, final: plan.final }),
    ...(Object.keys(settings).length === 0 ? undefined : { settings })
  } as const
  if (!(yield* journal.put(started, { commit: true }))) return
  const spending: Spending = { tries: [], paid: new Map() }
  const { maxOutputTokens, maxPaidTries } = plan
  const made = Effect.suspend(() =>
    ModelTries.make({
      attempt,
      prompt: promptOf(attempt),
      turn,
      withTools: plan.final === undefined,
      maxOutputTokens,
      maxPaidTries,
      spending
    })
  ).pipe(Effect.catchDefect((defect) => Effect.fail(Replies.defect(defect)))) // of the agent's window
  const answered = made.pipe(
    Effect.flatMap((reply) => completion(attempt, { turn, reply, spending })),
    Effect.flatMap((completed) =>
      plan.final === undefined ? withOutput(attempt, completed) : Effect.succeed(completed)
    )
  )
  const paid = Effect.ignore(Effect.suspend(() => fail(attempt, { turn, error: "interrupted", spending })))
  const result = yield* Effect.result(Effect.onInterrupt(stoppable.run("model", answered), () => paid))
  if (Result.isSuccess(result)) {
    yield* journal.put(result.success)
  } else {
    const error = result.failure
    if (error._tag === "OwnershipLost") return yield* error
    yield* fail(attempt, { turn, error, spending })
  }
})

type Completed = Omit<Of<"TurnCompleted">, "at">

/** The event of a reply; a reply that cannot be stored fails the Turn. */
const completion = (
  attempt: Attempt,
  { reply, spending, turn }: { readonly turn: number; readonly reply: Reply; readonly spending: Spending }
): Effect.Effect<Completed, AiError.AiError> =>
  Effect.suspend(() => {
    const completed: Completed = {
      _tag: "TurnCompleted",
      turn,
      ...Replies.read(reply),
      ...spent(attempt, spending),
      ...(spending.tries.length > 1 ? { tries: spending.tries } : undefined)
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
    spending,
    turn
  }: { readonly turn: number; readonly error: AiError.AiError | Halted | "interrupted"; readonly spending: Spending }
): Effect.Effect<boolean, JournalError> =>
  attempt.journal.put({
    _tag: "TurnFailed",
    turn,
    failure:
      error === "interrupted" || error instanceof Halted
        ? stopped(attempt, error)
        : Replies.stored(error, attempt.modelRetry.table, attempt.wall()),
    tries: spending.tries,
    ...spent(attempt, spending)
  })

const stopped = ({ journal }: Attempt, error: Halted | "interrupted"): Failure => ({
  tag: error === "interrupted" ? "Interrupted" : journal.state.head.cancelled === undefined ? "Deadline" : "Cancelled",
  message: "stopped while the model was answering",
  retryable: true
})

const spent = ({ prices }: Attempt, { paid }: Spending) => {
  let usage = Usage.zero
  let cost = 0
  for (const [info, used] of paid) {
    usage = Usage.add(usage, used)
    if (Usage.total(used) > 0) cost += costOf(prices, info, used)
  }
  return { usage, ...(Number.isFinite(cost) ? { costNanoUsd: Math.round(cost) } : undefined) }
}

/** NaN where the price is not known: a table with a bug must not lose a reply that was paid. */
const costOf = (prices: Prices, info: ModelInfo, usage: Usage.Usage): number => {
  try {
    return prices.cost(info, usage) ?? Number.NaN
  } catch {
    return Number.NaN
  }
}
