/**
 * Adds what model calls used to the head of their Run, and what its sub-agents used.
 *
 * @since 0.1.0
 */
import type { ChildTotals } from "./RunEvent.ts"
import type { Head } from "./RunHead.ts"
import * as Usage from "./Usage.ts"

/** The head after model calls that used and cost so much; what has no price makes the sum a lower bound. */
export const spent = (head: Head, usage: Usage.Usage, costNanoUsd: number | undefined, unknown?: true): Head => ({
  ...head,
  usage: Usage.add(head.usage, usage),
  ...(costNanoUsd === undefined ? undefined : { costNanoUsd: (head.costNanoUsd ?? 0) + costNanoUsd }),
  ...(unknown === true || (costNanoUsd === undefined && Usage.total(usage) > 0) ? { costUnknown: true } : undefined)
})

/** The head after the Run of a sub-agent that came to so much. */
export const spentBelow = (head: Head, { costNanoUsd, costUnknown, turns, usage }: ChildTotals): Head => ({
  ...spent(head, usage, costNanoUsd, costUnknown),
  childTurns: (head.childTurns ?? 0) + turns
})
