/**
 * Says in which span a Run is started or resumed, for packages that write its trace.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { ParentSpan } from "effect/Tracer"
import type { Of } from "./RunEvent.ts"

/** Where a span is found. */
export type Caller = NonNullable<Of<"AttemptStarted">["caller"]>

/**
 * Whether an Attempt journals the span that it is started in. Default false: a span that nobody exports is of no use. A package
 * that exports traces sets it.
 */
export const Callers: Context.Reference<boolean> = Context.Reference("@waystone/core/Callers", {
  defaultValue: () => false
})

/** The span around this effect, where it is to be journaled. */
export const current: Effect.Effect<Caller | undefined> = Effect.contextWith((context: Context.Context<never>) => {
  const span = Context.get(context, Callers) ? Context.getOrUndefined(context, ParentSpan) : undefined
  return Effect.succeed(
    span === undefined ? undefined : { traceId: span.traceId, spanId: span.spanId, sampled: span.sampled }
  )
})
