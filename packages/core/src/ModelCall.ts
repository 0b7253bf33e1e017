/**
 * Makes one request to the model, within its time limits, and never runs a tool.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import type { Timeouts } from "./Agent.ts"
import type { WireToolkit } from "./AgentTool.ts"
import { maxReply } from "./Calls.ts"
import { beside, within } from "./Interruption.ts"
import type { Reply } from "./Interceptor.ts"
import * as Repetition from "./Repetition.ts"
import type { Delta } from "./RunUpdate.ts"
import type { SteadyTime } from "./SteadyTime.ts"
import { defined } from "./Defined.ts"

export interface Request {
  readonly model: LanguageModel.LanguageModel
  readonly prompt: Prompt.Prompt
  readonly toolkit: WireToolkit
  readonly stream: boolean
  readonly timeouts: Timeouts
  readonly maxRepeats: number | undefined
  readonly turn: number
  readonly try: number
  readonly now: SteadyTime
  readonly publish: (delta: Delta) => void
}

/** What has arrived so far: it is there when a try fails or is stopped, so that its tokens are counted (RI-101). */
export interface Progress {
  readonly parts: Array<Response.AnyPart>
  chars: number
  firstPartAt?: number
  lastPartAt?: number
}

export const noProgress = (): Progress => ({ parts: [], chars: 0 })

/** Failures that effect/ai has no reason for; ModelRetry's table knows them by these names. */
export type Signal = "Timeout" | "StreamCut" | "StreamError" | "Repetition"

const signal = (name: Signal, description: string, type?: string): AiError.AiError =>
  AiError.make({
    module: "Waystone",
    method: "turn",
    reason: new AiError.UnknownError({ description, metadata: { waystone: { signal: name, ...defined({ type }) } } })
  })

/** One try. */
export const make = (request: Request, progress: Progress): Effect.Effect<Reply, AiError.AiError> =>
  request.stream ? streamed(request, progress) : whole(request, progress)

const options = ({ prompt, toolkit }: Request) => ({
  prompt,
  toolkit,
  disableToolCallResolution: true as const,
  toolCallValidation: "deferred" as const
})

const whole = (request: Request, progress: Progress): Effect.Effect<Reply, AiError.AiError> => {
  const { request: limit } = request.timeouts
  const late = Effect.failSync(() => signal("Timeout", `no reply within ${Duration.format(limit)}`))
  return Effect.flatMap(within(request.model.generateText(options(request)), limit, late), ({ content }) => {
    const now = request.now()
    for (const part of content) take(progress, part, now)
    return finished(progress)
  })
}

const streamed = (request: Request, progress: Progress): Effect.Effect<Reply, AiError.AiError> =>
  Effect.suspend(() => {
    const startedAt = request.now()
    const repeats = request.maxRepeats === undefined ? () => false : Repetition.detector(request.maxRepeats)
    const consume = request.model.streamText(options(request)).pipe(
      Stream.takeUntil(() => progress.chars > maxReply),
      Stream.runForEachArray((parts) => {
        for (const part of parts) {
          if (part.type === "error") return Effect.fail(errorOf(part.error))
          publish(request.publish, { turn: request.turn, try: request.try }, part)
          take(progress, part, request.now())
          if ((part.type === "text-delta" || part.type === "reasoning-delta") && repeats(part.delta))
            return Effect.fail(signal("Repetition", `the reply said the same ${request.maxRepeats} times in a row`))
        }
        return Effect.void
      })
    )
    return Effect.flatMap(beside(consume, watch(request, progress, startedAt)), () => finished(progress))
  })

/** The reply, if it came to an end; one that is too long counts as cut off, whatever its finish part says. */
const finished = ({ chars, firstPartAt, parts }: Progress): Effect.Effect<Reply, AiError.AiError> => {
  const finish = parts.findLast((part) => part.type === "finish")
  const cut = chars > maxReply
  if (finish === undefined && !cut) return Effect.fail(signal("StreamCut", "the reply ended without a finish part"))
  if (finish?.reason === "error") return Effect.fail(signal("StreamCut", "the reply ended with an error"))
  return Effect.succeed({ parts: cut ? parts.filter((part) => part !== finish) : parts, ...defined({ firstPartAt }) })
}

/** Fails when nothing that says something has come for too long. */
const watch = Effect.fnUntraced(function* (
  { now: time, timeouts: { firstPart, idle, total } }: Request,
  progress: Progress,
  startedAt: number
): Effect.fn.Return<never, AiError.AiError> {
  while (true) {
    const now = time()
    const [limit, name] = progress.lastPartAt === undefined ? [firstPart, "no first part"] : [idle, "no further part"]
    const silentUntil = (progress.lastPartAt ?? startedAt) + Duration.toMillis(limit)
    const end = startedAt + Duration.toMillis(total)
    if (now >= end) return yield* signal("Timeout", `no whole reply within ${Duration.format(total)}`)
    if (now >= silentUntil) return yield* signal("Timeout", `${name} within ${Duration.format(limit)}`)
    yield* Effect.sleep(Math.min(silentUntil, end) - now)
  }
})

const take = (progress: Progress, part: Response.AnyPart, now: number): void => {
  progress.parts.push(part)
  if (!saysSomething(part)) return
  progress.chars += "delta" in part ? part.delta.length : "text" in part ? part.text.length : 0
  progress.firstPartAt ??= now
  progress.lastPartAt = now
}

/** Starts, ends and empty deltas keep a connection alive without saying anything. */
const saysSomething = (part: Response.AnyPart): boolean => {
  if ("delta" in part) return part.delta !== ""
  return !part.type.endsWith("-start") && !part.type.endsWith("-end") && part.type !== "response-metadata"
}

/** Shows a piece of text to whoever reads along. */
export const publish = (
  to: Request["publish"],
  about: { readonly turn: number; readonly try: number },
  part: Response.AnyPart
): void => {
  if (part.type === "text-delta") to({ _tag: "TextDelta", ...about, text: part.delta })
  if (part.type === "reasoning-delta") to({ _tag: "ReasoningDelta", ...about, text: part.delta })
}

/** An error that arrives as a part of a stream that was opened well (RI-065). */
const errorOf = (error: unknown): AiError.AiError => {
  if (AiError.isAiError(error)) return error
  const type = typeof error === "object" && error !== null && "type" in error ? String(error.type) : undefined
  const message =
    typeof error === "object" && error !== null && "message" in error ? String(error.message) : String(type)
  return signal("StreamError", message, type)
}
