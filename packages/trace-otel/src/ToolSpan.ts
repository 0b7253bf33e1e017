/**
 * Writes the span of one tool call, with what guards and people said about it as events.
 *
 * @since 0.1.0
 */
import type { RunEvent } from "@waystone/core"
import { own } from "./Conventions.ts"
import { type Attributes, attributes, type FinishedSpan, type SpanEvent } from "./FinishedSpan.ts"
import * as Writing from "./Writing.ts"

export interface Open {
  readonly callId: string
  /** As it goes out: a name that the agent has no tool of is none. */
  readonly name: string
  readonly seq: number
  readonly spanId: string
  readonly start: number
  readonly arguments: unknown
  readonly events: ReadonlyArray<SpanEvent>
}

export type End =
  | RunEvent.Of<"ToolCallCompleted">
  /** Its process died, or let go of it: whether it ran is not known. */
  | { readonly _tag: "Lost"; readonly at: number }
  /** The Run of a sub-agent waits; the call is started again when it may go on. */
  | { readonly _tag: "Suspended"; readonly at: number }

type Span = Omit<FinishedSpan, "traceId" | "parentId">

/** The span of a call that has ended. */
export const make = (writing: Writing.Writing, common: Attributes, open: Open, end: End): Span => {
  const { capture, names } = writing
  const failure = failureOf(end)
  const completed = end._tag === "ToolCallCompleted" ? end : undefined
  return {
    spanId: open.spanId,
    name: `execute_tool ${open.name}`,
    kind: "internal",
    start: open.start,
    end: Math.max(open.start, end.at),
    attributes: attributes({
      ...common,
      [names.operation]: "execute_tool",
      [names.toolName]: open.name,
      [names.toolType]: "function",
      [names.callId]: open.callId,
      [own.turn]: turnOf(open.callId),
      [own.seq]: open.seq,
      [own.ending]: completed?.ending ?? end._tag.toLowerCase(),
      [own.tries]: completed?.tries,
      [names.errorType]: failure,
      ...(capture === undefined || open.arguments === undefined
        ? undefined
        : { [names.callArguments]: capture.object(open.arguments) }),
      ...(capture === undefined || completed === undefined
        ? undefined
        : { [names.callResult]: capture.object(completed.shown ?? completed.result) })
    }),
    events: open.events,
    links: [],
    ...(failure === undefined ? undefined : { failed: {} })
  }
}

/** Endings that are no result of the tool: their code says what came in between. */
const failureOf = (end: End): string | undefined => {
  if (end._tag === "Lost") return "lost"
  if (end._tag === "Suspended" || !end.isFailure) return undefined
  return end.error === undefined ? end.ending : Writing.code(end.error)
}

/** The turn that a call id begins with. */
const turnOf = (callId: string): number | undefined => {
  const turn = Number(/^t(\d+)\./.exec(callId)?.[1])
  return Number.isNaN(turn) ? undefined : turn
}
