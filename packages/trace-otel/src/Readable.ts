/**
 * Gives finished spans to OpenTelemetry in the form that its exporters and processors take.
 *
 * @since 0.1.0
 */
import { SpanKind, SpanStatusCode, TraceFlags } from "@opentelemetry/api"
import type { Attributes as OtelAttributes, HrTime, SpanContext } from "@opentelemetry/api"
import type { Resource } from "@opentelemetry/resources"
import type { ReadableSpan } from "@opentelemetry/sdk-trace-base"
import type { Attributes, FinishedSpan } from "./FinishedSpan.ts"

/** The name under which spans and metrics go out. */
export const scope = { name: "@waystone/trace-otel" }

const hrTime = (ms: number): HrTime => {
  const seconds = Math.floor(ms / 1000)
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)]
}

const context = (traceId: string, spanId: string): SpanContext => ({
  traceId,
  spanId,
  traceFlags: TraceFlags.SAMPLED,
  isRemote: false
})

const toOtel = (attributes: Attributes): OtelAttributes =>
  Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => [name, typeof value === "object" ? [...value] : value])
  )

const statusOf = ({ failed }: FinishedSpan): ReadableSpan["status"] =>
  failed === undefined
    ? { code: SpanStatusCode.UNSET }
    : { code: SpanStatusCode.ERROR, ...(failed.message === undefined ? undefined : { message: failed.message }) }

/** Fills OpenTelemetry's shape. */
export const make =
  (resource: Resource) =>
  (span: FinishedSpan): ReadableSpan => {
    const { end, events, kind, links, name, parentId, spanId, start, traceId } = span
    const own = context(traceId, spanId)
    return {
      name,
      kind: kind === "client" ? SpanKind.CLIENT : SpanKind.INTERNAL,
      spanContext: () => own,
      ...(parentId === undefined ? undefined : { parentSpanContext: context(traceId, parentId) }),
      startTime: hrTime(start),
      endTime: hrTime(end),
      duration: hrTime(end - start),
      status: statusOf(span),
      attributes: toOtel(span.attributes),
      events: events.map((event) => ({
        name: event.name,
        time: hrTime(event.at),
        attributes: toOtel(event.attributes)
      })),
      links: links.map((link) => ({
        context: context(link.traceId, link.spanId),
        attributes: toOtel(link.attributes)
      })),
      ended: true,
      resource,
      instrumentationScope: scope,
      droppedAttributesCount: 0,
      droppedEventsCount: 0,
      droppedLinksCount: 0
    }
  }
