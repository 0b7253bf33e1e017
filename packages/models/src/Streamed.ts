/**
 * Asks for a reply as a stream, and notices when it breaks off.
 *
 * Invariants
 *   S1  A stream either emits one finish part that the provider meant, last, or fails.
 *   S2  However it ends or is left, its request is aborted and its connection given back.
 *
 * @since 0.1.0
 */
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from "@ai-sdk/provider"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type * as AiError from "effect/ai/AiError"
import type * as Response from "effect/ai/Response"
import * as Faults from "./Faults.ts"
import * as Finish from "./Finish.ts"
import { warning } from "./Generate.ts"
import * as Guarded from "./Guarded.ts"
import * as Parts from "./Parts.ts"
import { streamed } from "./StreamParts.ts"

export interface Options {
  readonly tools: ReadonlyArray<{ readonly name: string }>
  readonly log: (notes: ReadonlyArray<string>) => Effect.Effect<void>
}

type Encoded = Response.StreamPartEncoded

/** One request; it is sent when the stream is run. */
export const make = (
  model: LanguageModelV4,
  call: LanguageModelV4CallOptions,
  options: Options
): Stream.Stream<Encoded, AiError.AiError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      const failed = (error: unknown) =>
        Faults.make("streamText", Faults.reasonOf(error, clock.currentTimeMillisUnsafe()))
      const opened: { stream?: ReadableStream<LanguageModelV4StreamPart> } = {}
      const { signal } = yield* Effect.acquireRelease(
        Effect.sync(() => new AbortController()),
        (controller) => Effect.sync(() => leave(controller, opened.stream))
      )
      const { stream } = yield* Effect.tryPromise({
        try: () => Guarded.streamed(model).doStream({ ...call, abortSignal: signal }),
        catch: failed
      })
      opened.stream = stream
      const reading = new Reading(options.tools)
      return Stream.fromReadableStream({ evaluate: () => stream, onError: failed, releaseLockOnEnd: true }).pipe(
        Stream.mapEffect((part) => step(reading, part, failed, options.log)),
        Stream.flattenIterable,
        Stream.takeUntil((part) => part.type === "finish"),
        Stream.concat(Stream.suspend(() => reading.end()))
      )
    })
  )

/** The request is aborted first: to cancel a stream that hangs could hang too. Nothing is left to report by then. */
const leave = (controller: AbortController, stream: ReadableStream<unknown> | undefined): void => {
  controller.abort()
  stream?.cancel().catch(() => {})
}

const step = (
  reading: Reading,
  part: LanguageModelV4StreamPart,
  failed: (error: unknown) => AiError.AiError,
  log: Options["log"]
): Effect.Effect<ReadonlyArray<Encoded>, AiError.AiError> => {
  if (part.type === "error") return Effect.fail(failed(part.error))
  const parts = reading.take(part)
  const notes = reading.notes.splice(0)
  return notes.length === 0 ? Effect.succeed(parts) : Effect.as(log(notes), parts)
}

/** What is known of one stream while it is read. */
class Reading {
  readonly notes: Array<string> = []
  private readonly about: Parts.Context
  private count = 0
  private said = ""
  private ended: "open" | "finished" | "cut" | "refused" = "open"

  constructor(tools: Options["tools"]) {
    this.about = Parts.context(tools, (note) => this.notes.push(note))
  }

  take(part: LanguageModelV4StreamPart): ReadonlyArray<Encoded> {
    if (part.type === "stream-start") this.notes.push(...part.warnings.map(warning))
    if (part.type === "text-delta" && this.said.length < 500) this.said += part.delta
    if (part.type !== "finish") return streamed(part, this.about, this.count++)
    this.ended = Finish.isCut(part) ? "cut" : Finish.isRefusal(part) ? "refused" : "finished"
    return [this.ended === "cut" ? Finish.cut(part) : Finish.part(part)]
  }

  /** After the last part: a failure goes behind the usage that was reported, so that it is counted. */
  end(): Stream.Stream<never, AiError.AiError> {
    if (this.ended === "finished") return Stream.empty
    const reason = this.ended === "refused" ? Faults.refusal(this.said) : Faults.cut()
    return Stream.fail(Faults.make("streamText", reason))
  }
}
