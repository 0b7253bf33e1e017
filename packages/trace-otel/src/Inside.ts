/**
 * Puts the spans that others make during a model call or a tool call under that call's span.
 *
 * effect/ai opens spans of its own for a model call, with texts of errors in them. Here they pass: what is inside them stands
 * under ours, and nothing of them goes out (RI-145).
 *
 * @since 0.1.0
 */
import { context, trace, TraceFlags } from "@opentelemetry/api"
import type { Caller, Interceptor } from "@waystone/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"
import * as SpanIds from "./SpanIds.ts"

/** A span that is there only to be a parent: it stands for another one. */
class Passing implements Tracer.Span {
  readonly _tag = "Span"
  readonly name: string
  readonly spanId: string
  readonly traceId: string
  readonly parent: Option.Option<Tracer.AnySpan>
  readonly annotations: Context.Context<never>
  readonly status: Tracer.SpanStatus
  readonly attributes: ReadonlyMap<string, unknown> = new Map()
  readonly links: ReadonlyArray<Tracer.SpanLink> = []
  readonly sampled = true
  readonly kind: Tracer.SpanKind

  constructor({ annotations, kind, name, startTime }: Parameters<Tracer.Tracer["span"]>[0], to: Tracer.AnySpan) {
    this.name = name
    this.kind = kind
    this.annotations = annotations
    this.parent = Option.some(to)
    this.traceId = to.traceId
    this.spanId = to.spanId
    this.status = { _tag: "Started", startTime }
  }

  end(): void {}
  attribute(): void {}
  event(): void {}
  addLinks(): void {}
}

/**
 * The tracer of the application, without effect/ai's spans. Each operation of an effect runs in OpenTelemetry's context of its
 * span, so that instrumented libraries find it; for our span that context is made once, not for each of thousands.
 */
const within = (base: Tracer.Tracer, span: Tracer.ExternalSpan): Tracer.Tracer => {
  const make: Tracer.Tracer["span"] = (options) =>
    Option.isSome(options.parent) && options.name.startsWith("LanguageModel.")
      ? new Passing(options, options.parent.value)
      : base.span(options)
  const { context: others } = base
  if (others === undefined) return Tracer.make({ span: make })
  const { spanId, traceId } = span
  const ours = trace.setSpanContext(context.active(), { traceId, spanId, traceFlags: TraceFlags.SAMPLED })
  // Where nobody keeps contexts (no context manager is registered), there is nothing to run in.
  if (!context.with(ours, () => context.active() === ours)) return Tracer.make({ span: make })
  return Tracer.make({
    span: make,
    context: (primitive, fiber) => {
      const current = fiber.cache.span
      return current === span || current instanceof Passing
        ? context.with(ours, () => primitive["~effect/Effect/evaluate"](fiber))
        : others(primitive, fiber)
    }
  })
}

const under = <A, E, R>(effect: Effect.Effect<A, E, R>, span: Tracer.ExternalSpan) =>
  Effect.updateContext(effect, (given: Context.Context<R>) =>
    Context.add(
      Context.add(given, Tracer.ParentSpan, span),
      Tracer.Tracer,
      within(Context.get(given, Tracer.Tracer), span)
    )
  )

/** The span of a call that starts the Run of a sub-agent. */
export const callOf =
  (traceOf: (runId: string) => string | undefined) =>
  ({ callId, runId, start }: Caller.Called, around: Caller.Caller | undefined): Caller.Caller => ({
    traceId: traceOf(runId) ?? around?.traceId ?? SpanIds.traceId(runId),
    spanId: SpanIds.call(runId, callId, start),
    sampled: true
  })

/** `traceOf` knows the traces of the Runs that are driven here. */
export const interceptor = (traceOf: (runId: string) => string | undefined): Interceptor.Interceptor => {
  const place = <A, E, R>(runId: string, spanId: string, effect: Effect.Effect<A, E, R>) =>
    Effect.contextWith((given: Context.Context<R>) => {
      // Where the observer has not got so far: whoever started the Run is around it, and its trace is theirs.
      const caller = Context.getOption(given, Tracer.ParentSpan)
      const traceId = traceOf(runId) ?? (Option.isSome(caller) ? caller.value.traceId : SpanIds.traceId(runId))
      return under(effect, Tracer.externalSpan({ traceId, spanId, sampled: true }))
    })
  return {
    name: "waystone-trace",
    stage: "trace",
    turn: ({ runId, turn }, next) => place(runId, SpanIds.turn(runId, turn), next),
    tool: ({ callId, runId, start }, next) => place(runId, SpanIds.call(runId, callId, start), next)
  }
}
