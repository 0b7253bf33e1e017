/**
 * Tries a model call until it succeeds or is not worth another try, then asks the models to fall back to in the same
 * way, and remembers what each try cost.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as ExecutionPlan from "effect/ExecutionPlan"
import * as Schedule from "effect/Schedule"
import type * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import { wireToolkit } from "./AgentTool.ts"
import { type Attempt, limitsOf, type Model } from "./Attempt.ts"
import type { Reply } from "./Interceptor.ts"
import { ifFails } from "./Interruption.ts"
import * as ModelCall from "./ModelCall.ts"
import { type ModelInfo, ModelSettings } from "./ModelInfo.ts"
import { failureOf } from "./ModelRetry.ts"
import * as Replies from "./Replies.ts"
import type { Try } from "./RunEvent.ts"
import * as Usage from "./Usage.ts"
import * as Author from "./Author.ts"
import { defined } from "./Defined.ts"

export interface Call {
  readonly attempt: Attempt
  readonly prompt: Prompt.Prompt
  readonly turn: number
  readonly withTools: boolean
  /** A guard's limit on what the model may answer. */
  readonly maxOutputTokens: number | undefined
  /** After so many tries that cost something there is no other one. */
  readonly maxPaidTries: number | undefined
  readonly spending: Spending
}

/** Filled as tries end, however they end. */
export interface Spending {
  readonly tries: Array<Try>
  /** What each model used. */
  readonly paid: Map<ModelInfo, Usage.Usage>
}

/** The reply of the first try that gave one: trace interceptors around all, breaker and sanitizer around each. */
export const make = (call: Call): Effect.Effect<Reply, AiError.AiError> => {
  const { models } = call.attempt
  const tried = models.length === 1 ? retried(call, models[0]) : planned(call)
  const traced = intercepted(call, (stage) => stage === "trace", tried)
  return Effect.catchDefect(traced, (defect) => Effect.fail(Replies.defect(defect)))
}

/** One model after the other, for as long as failures are worth it. */
const planned = (call: Call): Effect.Effect<Reply, AiError.AiError> => {
  const { attempt, spending, turn } = call
  const [first, ...others] = attempt.models
  const failures: Array<AiError.AiError> = []
  const classified = (error: AiError.AiError) => failureOf(error, attempt.modelRetry.table, attempt.wall())
  const worthAnother = (error: AiError.AiError) =>
    mayPay(call) && ["retry", "elsewhere"].includes(classified(error).class)
  const provide = Context.empty()
  const plan = ExecutionPlan.make({ provide }, ...others.map(() => ({ provide, while: worthAnother })))
  const asked = Effect.flatMap(ExecutionPlan.CurrentMetadata, ({ stepIndex }) => {
    const before = failures.at(-1)
    if (before !== undefined) {
      const { class: _, ...failure } = classified(before)
      attempt.publish({ _tag: "TryFailed", turn, try: spending.tries.length, failure, waitMs: 0 })
    }
    return Effect.mapError(retried(call, attempt.models[stepIndex] ?? first), (error) => {
      failures.push(error)
      return error
    })
  })
  return Effect.mapError(Effect.withExecutionPlan(asked, plan), (last) => {
    const { class: kind, tag } = classified(last)
    // A model that answered decides; else it is worth coming back if one of them may be there again.
    if (kind === "refusal" || tag === "RepetitiveOutput") return last
    return failures.find((error) => classified(error).class === "retry") ?? failures[0] ?? last
  })
}

/** What was set aside covers another try. */
const mayPay = ({ maxPaidTries = Infinity, spending: { tries } }: Call): boolean =>
  tries.filter(({ usage }) => usage !== undefined && Usage.total(usage) > 0).length < maxPaidTries

/** One model, with core's retries. */
const retried = (call: Call, model: Model): Effect.Effect<Reply, AiError.AiError> => {
  const { attempt, spending } = call
  const { longestWait, schedule, table } = attempt.modelRetry
  const failure = (error: AiError.AiError) => failureOf(error, table, attempt.wall())
  const isWorthIt = ({ class: kind, retryAfterMs = 0 }: ReturnType<typeof failure>) =>
    kind === "retry" && retryAfterMs <= Duration.toMillis(longestWait) && mayPay(call)
  return ifFails(once(call, model), (again) =>
    Effect.retry(again, {
      while: (error) => isWorthIt(failure(error)),
      schedule: schedule.pipe(
        Schedule.setInputType<AiError.AiError>(),
        Schedule.modifyDelay(({ duration, input }) => {
          const worth = failure(input)
          const { class: _, ...failed } = worth
          const waitMs = failed.retryAfterMs ?? Duration.toMillis(duration)
          // The schedule steps before `while` is asked.
          if (isWorthIt(worth))
            attempt.publish({ _tag: "TryFailed", turn: call.turn, try: spending.tries.length, failure: failed, waitMs })
          return Effect.succeed(Duration.millis(waitMs))
        })
      )
    })
  )
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

const once = (call: Call, { info, model, settings }: Model): Effect.Effect<Reply, AiError.AiError> =>
  Effect.suspend(() => {
    const { attempt, spending, turn } = call
    const { paid, tries } = spending
    const { modelRetry, now, stoppable, wall } = attempt
    const at = now()
    const progress = ModelCall.noProgress()
    stoppable.phase = "model"
    if (tries.length > 0) attempt.publish({ _tag: "TryStarted", turn, try: tries.length + 1 })
    const messages = Author.readable(call.prompt.content, info)
    const prompt = messages === call.prompt.content ? call.prompt : Prompt.fromMessages(messages)
    const made = Effect.catchDefect(ModelCall.make(request(call, model, prompt), progress), (defect) =>
      Effect.fail(Replies.defect(defect))
    ).pipe(Effect.provideService(ModelSettings, bounded(settings, call.maxOutputTokens)))
    return intercepted(call, (stage) => stage !== "trace", made).pipe(
      Effect.tap(({ parts }) => Effect.sync(() => held(call) && said(call, parts))),
      Effect.onExit((exit) =>
        Effect.sync(() => {
          stoppable.phase = "retry"
          const failed = Replies.errorOf(exit)
          const usage = usageOf(prompt, progress, failed)
          paid.set(info, Usage.add(paid.get(info) ?? Usage.zero, usage))
          tries.push({
            at,
            endedAt: now(),
            usage,
            ...differing(info, attempt.models[0].info),
            ...defined({ firstPartAt: progress.firstPartAt }),
            ...(failed === undefined ? undefined : { failure: Replies.stored(failed, modelRetry.table, wall()) })
          })
        })
      )
    )
  })

/** An interceptor wants to see the text before anybody else. */
const held = ({ attempt }: Call): boolean =>
  attempt.plugins.interceptors.some(({ holdsDeltas }) => holdsDeltas === true)

/** What was held back, as it is now. */
const said = ({ attempt: { agent, publish }, spending, turn }: Call, parts: Reply["parts"]): void => {
  const about = { turn, try: spending.tries.length + 1 }
  if (agent.stream) for (const part of parts) ModelCall.publish(publish, about, part)
}

/** Who was asked, where it is not the one that TurnStarted names. */
const differing = (asked: ModelInfo, first: ModelInfo): Pick<Try, "provider" | "model" | "server"> =>
  asked === first
    ? {}
    : defined({
        provider: asked.provider === first.provider ? undefined : (asked.provider ?? "unknown"),
        model: asked.model === first.model ? undefined : (asked.model ?? "unknown"),
        server: asked.server === first.server ? undefined : (asked.server ?? "unknown")
      })

const noTools = wireToolkit([])

const request = (call: Call, model: LanguageModel.LanguageModel, prompt: Prompt.Prompt): ModelCall.Request => {
  const { attempt, spending, turn, withTools } = call
  const { agent, now, publish } = attempt
  return {
    model,
    prompt,
    toolkit: withTools ? agent.toolkit : noTools,
    stream: agent.stream,
    timeouts: agent.timeouts,
    maxRepeats: limitsOf(attempt).maxRepeats,
    turn,
    try: spending.tries.length + 1,
    now,
    publish: held(call) ? () => undefined : publish
  }
}

/** What was reported; else an estimate, if the model had begun to answer or may have read the request. */
const usageOf = (
  prompt: Prompt.Prompt,
  progress: ModelCall.Progress,
  failed: Replies.TryError | undefined
): Usage.Usage => {
  const guess = () => Usage.estimate(Replies.lengthOf(prompt), progress.chars)
  const told = failed === undefined || failed === "stopped" ? undefined : Replies.usageOfError(failed)
  const reported = Replies.usageOf(progress.parts) ?? told
  if (reported !== undefined) return Usage.fromReport(reported, guess)
  const inFlight = progress.chars > 0 || (failed !== undefined && Replies.wasInFlight(failed))
  return inFlight ? guess() : Usage.zero
}

/** The settings that are set, the output bounded by `maxOutputTokens`. */
export const bounded = (settings: ModelSettings, maxOutputTokens: number | undefined) => {
  const most = Math.min(settings.maxOutputTokens ?? Infinity, maxOutputTokens ?? Infinity)
  return defined({ ...settings, maxOutputTokens: most === Infinity ? undefined : most })
}
