/**
 * Puts the spans that others make during a model call or a tool call under that call's span.
 *
 * effect/ai opens spans of its own for a model call, with texts of errors in them. Here they pass: what is inside them stands
 * under ours, and nothing of them goes out (RI-145).
 *
 * @since 0.1.0
 */
import type { Interceptor } from "@waystone/core"
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

/** The tracer of the application, without effect/ai's spans. */
const without = (base: Tracer.Tracer): Tracer.Tracer =>
  Tracer.make({
    span: (options) =>
      Option.isSome(options.parent) && options.name.startsWith("LanguageModel.")
        ? new Passing(options, options.parent.value)
        : base.span(options),
    ...(base.context === undefined ? undefined : { context: base.context })
  })

const under = <A, E, R>(effect: Effect.Effect<A, E, R>, span: Tracer.ExternalSpan, quiet: boolean) =>
  Effect.updateContext(effect, (context: Context.Context<R>) => {
    const placed = Context.add(context, Tracer.ParentSpan, span)
    return quiet ? Context.add(placed, Tracer.Tracer, without(Context.get(context, Tracer.Tracer))) : placed
  })

/** `traceOf` knows the traces of the Runs that are driven here. */
export const interceptor = (traceOf: (runId: string) => string | undefined): Interceptor.Interceptor => {
  const place = <A, E, R>(runId: string, spanId: string, effect: Effect.Effect<A, E, R>, quiet: boolean) =>
    Effect.contextWith((context: Context.Context<R>) => {
      // Where the observer has not got so far: whoever started the Run is around it, and its trace is theirs.
      const caller = Context.getOption(context, Tracer.ParentSpan)
      const traceId = traceOf(runId) ?? (Option.isSome(caller) ? caller.value.traceId : SpanIds.traceId(runId))
      return under(effect, Tracer.externalSpan({ traceId, spanId, sampled: true }), quiet)
    })
  return {
    name: "waystone-trace",
    stage: "trace",
    turn: ({ runId, turn }, next) => place(runId, SpanIds.turn(runId, turn), next, true),
    tool: ({ callId, runId, start }, next) => place(runId, SpanIds.call(runId, callId, start), next, false)
  }
}
