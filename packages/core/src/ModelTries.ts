/**
 * Tries a model call until it succeeds or is not worth another try, and remembers what each try cost.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as AiError from "effect/ai/AiError"
import type * as Prompt from "effect/ai/Prompt"
import { wireToolkit } from "./AgentTool.ts"
import { type Attempt, limitsOf } from "./Attempt.ts"
import type { Reply } from "./Interceptor.ts"
import { ifFails } from "./Interruption.ts"
import * as ModelCall from "./ModelCall.ts"
import { failureOf } from "./ModelRetry.ts"
import * as Replies from "./Replies.ts"
import type { Try } from "./RunEvent.ts"
import * as Usage from "./Usage.ts"
import { defined } from "./Defined.ts"

export interface Call {
  readonly attempt: Attempt
  readonly prompt: Prompt.Prompt
  readonly turn: number
  readonly withTools: boolean
  /** Filled with one entry per try that ended, however it ended. */
  readonly tries: Array<Try>
}

/** The reply of the first try that gave one: trace interceptors around all, breaker and sanitizer around each. */
export const make = (call: Call): Effect.Effect<Reply, AiError.AiError> => {
  const { attempt } = call
  const { longestWait, schedule, table } = attempt.modelRetry
  const failure = (error: AiError.AiError) => failureOf(error, table, attempt.wall())
  const retried = ifFails(once(call), (again) =>
    Effect.retry(again, {
      while: (error) => {
        const { class: kind, retryAfterMs = 0 } = failure(error)
        return kind === "retry" && retryAfterMs <= Duration.toMillis(longestWait)
      },
      schedule: schedule.pipe(
        Schedule.setInputType<AiError.AiError>(),
        Schedule.modifyDelay(({ duration, input }) => {
          const { class: _, ...failed } = failure(input)
          const waitMs = failed.retryAfterMs ?? Duration.toMillis(duration)
          attempt.publish({ _tag: "TryFailed", turn: call.turn, try: call.tries.length, failure: failed, waitMs })
          return Effect.succeed(Duration.millis(waitMs))
        })
      )
    })
  )
  const traced = intercepted(call, (stage) => stage === "trace", retried)
  return Effect.catchDefect(traced, (defect) => Effect.fail(Replies.defect(defect)))
}

const intercepted = (
  { attempt, turn }: Call,
  applies: (stage: string) => boolean,
  effect: Effect.Effect<Reply, AiError.AiError>
): Effect.Effect<Reply, AiError.AiError> =>
  attempt.plugins.interceptors.reduceRight(
    (next, { stage, turn: wrap }) =>
      wrap === undefined || !applies(stage) ? next : wrap({ runId: attempt.runId, turn }, next),
    effect
  )

const once = (call: Call): Effect.Effect<Reply, AiError.AiError> =>
  Effect.suspend(() => {
    const { attempt, tries, turn } = call
    const { modelRetry, now, stoppable, wall } = attempt
    const at = now()
    const progress = ModelCall.noProgress()
    stoppable.phase = "model"
    if (tries.length > 0) attempt.publish({ _tag: "TryStarted", turn, try: tries.length + 1 })
    const made = Effect.catchDefect(ModelCall.make(request(call), progress), (defect) =>
      Effect.fail(Replies.defect(defect))
    )
    return intercepted(call, (stage) => stage !== "trace", made).pipe(
      Effect.onExit((exit) =>
        Effect.sync(() => {
          stoppable.phase = "retry"
          const failed = Replies.errorOf(exit)
          tries.push({
            at,
            endedAt: now(),
            usage: usageOf(call, progress, failed),
            ...defined({ firstPartAt: progress.firstPartAt }),
            ...(failed === undefined ? undefined : { failure: Replies.stored(failed, modelRetry.table, wall()) })
          })
        })
      )
    )
  })

const noTools = wireToolkit([])

const request = ({ attempt, prompt, tries, turn, withTools }: Call): ModelCall.Request => {
  const { agent, model, now, publish } = attempt
  return {
    model,
    prompt,
    toolkit: withTools ? agent.toolkit : noTools,
    stream: agent.stream,
    timeouts: agent.timeouts,
    maxRepeats: limitsOf(attempt).maxRepeats,
    turn,
    try: tries.length + 1,
    now,
    publish
  }
}

/** What was reported; else an estimate, if the model had begun to answer or may have read the request. */
const usageOf = ({ prompt }: Call, progress: ModelCall.Progress, failed: Replies.TryError | undefined): Usage.Usage => {
  const guess = () => Usage.estimate(Replies.lengthOf(prompt), progress.chars)
  const reported = Replies.usageOf(progress.parts)
  if (reported !== undefined) return Usage.fromReport(reported, guess)
  const inFlight = progress.chars > 0 || (failed !== undefined && Replies.wasInFlight(failed))
  return inFlight ? guess() : Usage.zero
}
