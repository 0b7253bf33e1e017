/**
 * Makes what was lost last as long as what it had begun: the last event of a Run may come before the last ones of its sub-agents.
 *
 * A journal does not say until when a lost attempt lived, only that it did at its last event. Of a call of a sub-agent, the
 * journal of that sub-agent knows more; a tree of journals gives the same ends whoever folds it.
 *
 * @since 0.1.0
 */
import { own } from "./Conventions.ts"
import type { FinishedSpan } from "./FinishedSpan.ts"

/** The spans of a tree in the same order, each lost one ending no earlier than any below it. */
export const enclosing = (spans: ReadonlyArray<FinishedSpan>): ReadonlyArray<FinishedSpan> => {
  if (!spans.some(isLost)) return spans
  const byId = new Map(spans.map((span) => [span.spanId, span]))
  const ends = new Map<string, number>()
  for (const span of spans) {
    let above = byId.get(span.parentId ?? "")
    while (above !== undefined && isLost(above) && span.end > (ends.get(above.spanId) ?? above.end)) {
      ends.set(above.spanId, span.end)
      above = byId.get(above.parentId ?? "")
    }
  }
  return spans.map((span) => {
    const end = ends.get(span.spanId)
    return end === undefined ? span : { ...span, end }
  })
}

const isLost = ({ attributes }: FinishedSpan): boolean =>
  attributes[own.ending] === "lost" || attributes[own.outcome] === "Lost"
