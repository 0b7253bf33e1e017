/**
 * Writes the spans of an agent: one for each attempt, and one around them where there are several.
 *
 * @since 0.1.0
 */
import { type RunEvent, Usage } from "@waystone/core"
import { own } from "./Conventions.ts"
import { type Attributes, attributes, type FinishedSpan, type SpanEvent, type SpanLink } from "./FinishedSpan.ts"
import * as Writing from "./Writing.ts"

/** What one attempt, or the whole Run, came to. */
export interface Totals {
  readonly usage: Usage.Usage
  readonly costNanoUsd: number | undefined
  readonly turns: number
  readonly calls: number
}

export const noTotals: Totals = { usage: Usage.zero, costNanoUsd: undefined, turns: 0, calls: 0 }

/** Adds what a model call or a sub-agent spent. */
export const spent = (totals: Totals, usage: Usage.Usage | undefined, costNanoUsd: number | undefined): Totals => ({
  ...totals,
  usage: usage === undefined ? totals.usage : Usage.add(totals.usage, usage),
  costNanoUsd: costNanoUsd === undefined ? totals.costNanoUsd : (totals.costNanoUsd ?? 0) + costNanoUsd
})

/** How an attempt ended. */
export type End =
  | RunEvent.Of<"RunFinished">
  | RunEvent.Of<"RunSuspended">
  | { readonly _tag: "Lost"; readonly at: number }

export interface About {
  readonly agent: string
  readonly spanId: string
  readonly start: number
  readonly end: End
  readonly totals: Totals
  readonly events: ReadonlyArray<SpanEvent>
  readonly links: ReadonlyArray<SpanLink>
  /** More about it, by name. */
  readonly more: Attributes
  /** Spans of this Run that were not made, since it has so many. */
  readonly cut: number
}

type Span = Omit<FinishedSpan, "traceId" | "parentId">

/** The span of an attempt, or of a Run. */
export const make = (writing: Writing.Writing, common: Attributes, about: About): Span => {
  const { names } = writing
  const { agent, cut, end, links, more, spanId, start, totals } = about
  const failed = failureOf(writing, end)
  return {
    spanId,
    name: agent === "" ? "invoke_agent" : `invoke_agent ${agent}`,
    kind: "internal",
    start,
    end: Math.max(start, end.at),
    attributes: attributes({
      ...common,
      [names.operation]: "invoke_agent",
      ...more,
      [names.inputTokens]: totals.usage.input + totals.usage.cacheRead + totals.usage.cacheWrite,
      [names.outputTokens]: totals.usage.output + totals.usage.reasoning,
      [own.estimated]: totals.usage.estimated,
      [own.cost]: Writing.cost(totals.costNanoUsd),
      [own.turns]: totals.turns,
      [own.toolCalls]: totals.calls,
      [own.outcome]: outcomeOf(end),
      [own.stopReason]: reasonOf(end),
      [own.truncated]: cut === 0 ? undefined : true,
      [own.cut]: cut === 0 ? undefined : cut,
      [names.errorType]: failed?.code
    }),
    events: about.events,
    links,
    ...(failed === undefined ? undefined : { failed: failed.detail })
  }
}

const outcomeOf = (end: End): string =>
  end._tag === "RunFinished" ? end.outcome._tag : end._tag === "RunSuspended" ? "Suspended" : "Lost"

const reasonOf = (end: End): string | undefined =>
  end._tag === "RunFinished" && end.outcome._tag === "Stopped" ? end.outcome.reason._tag : undefined

const field = (json: unknown, name: string): string | undefined => {
  if (typeof json !== "object" || json === null) return undefined
  const found: unknown = Object.entries(json).find(([key]) => key === name)?.[1]
  return typeof found === "string" ? found : undefined
}

const failureOf = ({ capture }: Writing.Writing, end: End) => {
  if (end._tag === "Lost") return { code: "lost", detail: {} }
  if (end._tag === "RunSuspended") {
    return end.retry === undefined ? undefined : { code: Writing.failureCode(end.retry.failure), detail: {} }
  }
  if (end.outcome._tag !== "Failed") return undefined
  const { error } = end.outcome
  const detail = field(error, "detail")
  return {
    code: Writing.code(field(error, "_tag")),
    detail: capture === undefined || detail === undefined ? {} : { message: capture.text(detail) }
  }
}
