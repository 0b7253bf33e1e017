/**
 * Holds the spans that others make inside a Run (a provider's request, a tool's query) until it is decided about its trace.
 *
 * @since 0.1.0
 */
import { type Context, diag } from "@opentelemetry/api"
import type { ReadableSpan, Span, SpanProcessor } from "@opentelemetry/sdk-trace-base"
import type { Held } from "./Held.ts"

/** Decisions that are remembered for spans that end later. */
const remembered = 10_000

export class Foreign implements SpanProcessor {
  private readonly inner: SpanProcessor | undefined
  private readonly held: Held
  private readonly waiting = new Map<string, Array<ReadableSpan>>()
  private readonly decided = new Map<string, boolean>()

  /** Without `inner`, nothing is held: spans of others go their own way. */
  constructor(held: Held, inner?: SpanProcessor) {
    this.held = held
    this.inner = inner
  }

  open(traceId: string): void {
    if (this.inner !== undefined && !this.waiting.has(traceId)) this.waiting.set(traceId, [])
  }

  /** It is decided about the trace. */
  close(traceId: string, kept: boolean): void {
    const spans = this.waiting.get(traceId)
    if (spans === undefined) return
    this.waiting.delete(traceId)
    this.held.give(spans.length)
    // Another Run of the same trace may have been worth it: then what encloses both is.
    const was = this.decided.get(traceId) === true
    this.decided.delete(traceId)
    this.decided.set(traceId, kept || was)
    for (const oldest of this.decided.keys()) {
      if (this.decided.size <= remembered) break
      this.decided.delete(oldest)
    }
    if (kept) for (const span of spans) this.inner?.onEnd(span)
  }

  onStart(span: Span, context: Context): void {
    this.inner?.onStart(span, context)
  }

  onEnd(span: ReadableSpan): void {
    const { traceId } = span.spanContext()
    const waiting = this.waiting.get(traceId)
    if (waiting === undefined) {
      if (this.decided.get(traceId) !== false) this.inner?.onEnd(span)
    } else if (this.held.take(1)) {
      waiting.push(span)
    } else {
      this.held.lostSpans++
    }
  }

  async forceFlush(): Promise<void> {
    await quietly(this.inner?.forceFlush())
  }

  async shutdown(): Promise<void> {
    await quietly(this.inner?.shutdown())
  }
}

/** A back end that does not take the last spans is no failure of the program that made them; OpenTelemetry's `diag` is told. */
const quietly = async (work: Promise<void> | undefined): Promise<void> => {
  try {
    await work
  } catch (error) {
    diag.error("The last spans were not taken.", error)
  }
}
