/**
 * Says in which span a Run is started or resumed, for packages that write its trace.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { externalSpan, ParentSpan } from "effect/Tracer"
import type { Of } from "./RunEvent.ts"

/** Where a span is found. */
export type Caller = NonNullable<Of<"AttemptStarted">["caller"]>

/** A call of a Run: `start` is how often the journal has it started, this time included. */
export interface Called {
  readonly runId: string
  readonly callId: string
  readonly start: number
}

/** The span of a call, made in the span that is around its Run, if there is one. */
export type Spans = (call: Called, around: Caller | undefined) => Caller

/**
 * Whether an Attempt journals the span that it is started in, and which span a call has that starts the Run of a sub-agent.
 * Default undefined: a span that nobody exports is of no use. A package that exports traces sets it.
 */
export const Callers: Context.Reference<Spans | undefined> = Context.Reference<Spans | undefined>(
  "@waystone/core/Callers",
  { defaultValue: () => undefined }
)

/** The span around this effect, where it is to be journaled. */
export const current: Effect.Effect<Caller | undefined> = Effect.contextWith((context: Context.Context<never>) => {
  return Effect.succeed(Context.get(context, Callers) && around(context))
})

const around = (context: Context.Context<never>): Caller | undefined => {
  const span = Context.getOrUndefined(context, ParentSpan)
  return span && { traceId: span.traceId, spanId: span.spanId, sampled: span.sampled }
}

/** Puts an effect under the span of a call. */
export const under =
  (call: Called) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.contextWith((context: Context.Context<never>) => {
      const span = Context.get(context, Callers)?.(call, around(context))
      return span === undefined ? effect : Effect.provideService(effect, ParentSpan, externalSpan(span))
    })
