/**
 * Notes what is worth keeping about a Run while it is folded: what failed, was denied, is in doubt, what it took and cost.
 *
 * @since 0.1.0
 */
import type { RunEvent } from "@waystone/core"
import type { FinishedSpan } from "./FinishedSpan.ts"

export interface Faults {
  /** A model call or a tool call failed or was lost, or the Run itself did. */
  readonly failed: boolean
  readonly stopped: boolean
  readonly denied: boolean
  readonly inDoubt: boolean
  /** It has more than one attempt. */
  readonly resumed: boolean
  /** Epoch ms of its first event and of the last one. */
  readonly from: number
  readonly to: number
  readonly costNanoUsd: number
  /** Whoever started it is in a trace that is not recorded. */
  readonly unsampled: boolean
}

export const faultless: Faults = {
  failed: false,
  stopped: false,
  denied: false,
  inDoubt: false,
  resumed: false,
  from: Infinity,
  to: 0,
  costNanoUsd: 0,
  unsampled: false
}

const costOf = (event: RunEvent.RunEvent): number =>
  "costNanoUsd" in event
    ? (event.costNanoUsd ?? 0)
    : event._tag === "ToolCallCompleted"
      ? (event.child?.costNanoUsd ?? 0)
      : 0

/** What an event adds. */
export const withEvent = (faults: Faults, event: RunEvent.RunEvent): Faults => {
  const { at } = event
  const costNanoUsd = faults.costNanoUsd + costOf(event)
  const next = { ...faults, costNanoUsd, from: Math.min(faults.from, at), to: Math.max(faults.to, at) }
  switch (event._tag) {
    case "AttemptStarted":
      return { ...next, resumed: event.attempt > 1, unsampled: next.unsampled || event.caller?.sampled === false }
    case "RunReopened":
      return { ...next, resumed: true }
    case "CallInDoubt":
      return { ...next, inDoubt: true }
    case "VerdictGiven":
      return event.verdict === "Deny" ? { ...next, denied: true } : next
    case "CallAnswered":
      return event.answer._tag === "Deny" ? { ...next, denied: true } : next
    case "ToolCallCompleted":
      return event.ending === "unknown" ? { ...next, inDoubt: true } : next
    case "RunFinished":
      return {
        ...next,
        stopped: next.stopped || event.outcome._tag === "Stopped" || event.outcome._tag === "Cancelled",
        failed: next.failed || event.outcome._tag === "Failed"
      }
    default:
      return next
  }
}

/** What a span adds. */
export const withSpan = (faults: Faults, span: FinishedSpan): Faults =>
  span.failed === undefined || faults.failed ? faults : { ...faults, failed: true }

/** Of two Runs of one tree. What one cost below the other is in both. */
export const merged = (faults: Faults, more: Faults | undefined): Faults =>
  more === undefined
    ? faults
    : {
        failed: faults.failed || more.failed,
        stopped: faults.stopped || more.stopped,
        denied: faults.denied || more.denied,
        inDoubt: faults.inDoubt || more.inDoubt,
        resumed: faults.resumed || more.resumed,
        from: Math.min(faults.from, more.from),
        to: Math.max(faults.to, more.to),
        costNanoUsd: Math.max(faults.costNanoUsd, more.costNanoUsd),
        unsampled: faults.unsampled || more.unsampled
      }
