/**
 * Counts the time that a Run is driven: from each AttemptStarted on, without waits and without the gap after a death.
 *
 * @since 0.1.0
 */
import type { RunEvent } from "./RunEvent.ts"

export interface ActiveTime {
  readonly activeMs: number
  /** The last time that counts as active, while an Attempt runs; epoch ms. */
  readonly activeAt?: number | undefined
}

/** Kinds that say nothing about time spent driving. */
const passive: ReadonlySet<RunEvent["_tag"]> = new Set([
  "CallAnswered",
  "MessageReceived",
  "PauseRequested",
  "PauseLifted",
  "CancelRequested",
  "ChildWoken",
  "RunReopened",
  "RunAccepted",
  "ToolsChanged" // an Attempt writes it before its AttemptStarted, maybe long after the one before died
] as const)

/** An Attempt that suspended its Run and found it answered at once goes on without a new AttemptStarted. */
const starts: ReadonlySet<RunEvent["_tag"]> = new Set(["TurnStarted", "ToolCallStarted"] as const)

/** Time is active from AttemptStarted on; what passes between two lives of a Run, or while it waits, is not counted. */
export const activity = ({ activeAt, activeMs }: ActiveTime, event: RunEvent): ActiveTime => {
  if (passive.has(event._tag)) return activeAt === undefined ? { activeMs } : { activeMs, activeAt }
  if (event._tag === "AttemptStarted") return { activeMs, activeAt: event.at }
  if (activeAt === undefined) return starts.has(event._tag) ? { activeMs, activeAt: event.at } : { activeMs }
  const ms = activeMs + Math.max(0, event.at - activeAt)
  if (event._tag === "RunForked") return stopped(activeMs)
  return event._tag === "RunSuspended" || event._tag === "RunFinished"
    ? stopped(ms)
    : { activeMs: ms, activeAt: Math.max(activeAt, event.at) }
}

const stopped = (activeMs: number) => ({ activeMs, activeAt: undefined })
