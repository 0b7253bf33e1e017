/**
 * Says what a span is before OpenTelemetry's types see it: plain data that a test can compare.
 *
 * @since 0.1.0
 */

export type Value = string | number | boolean | ReadonlyArray<string>
export type Attributes = Readonly<Record<string, Value>>

export interface SpanEvent {
  readonly name: string
  /** Epoch ms. */
  readonly at: number
  readonly attributes: Attributes
}

export interface SpanRef {
  readonly traceId: string
  readonly spanId: string
}

export interface SpanLink extends SpanRef {
  readonly attributes: Attributes
}

/** A span that has ended. Times are epoch ms. */
export interface FinishedSpan extends SpanRef {
  readonly parentId?: string
  readonly name: string
  readonly kind: "internal" | "client"
  readonly start: number
  readonly end: number
  readonly attributes: Attributes
  readonly events: ReadonlyArray<SpanEvent>
  readonly links: ReadonlyArray<SpanLink>
  /** It ended in an error; the message only where content is captured. */
  readonly failed?: { readonly message?: string }
}

/** The attributes that have a value. */
export const attributes = (all: Readonly<Record<string, Value | undefined>>): Attributes => {
  const set: Record<string, Value> = {}
  for (const [name, value] of Object.entries(all)) if (value !== undefined && value !== "") set[name] = value
  return set
}
