/**
 * Says in which sub-agent's Run it began that a Run is stopped (RI-005).
 *
 * @since 0.1.0
 */
import type { StopReason } from "./Outcome.ts"
import type { RunEvent } from "./RunEvent.ts"

export interface Blame {
  /** The Runs of sub-agents that were stopped since the last Turn began, by the reason. */
  readonly blamed?: { readonly [reason: string]: string }
}

/** The first one of a reply is the one that counts. */
export const after = (
  { blamed }: Blame,
  { child, error = "" }: Extract<RunEvent, { readonly _tag: "ToolCallCompleted" }>
): Blame => (child?.who === undefined ? {} : { blamed: { [error]: child.who, ...blamed } })

/** A stop for what a sub-agent was stopped for just before names that one. */
export const named = ({ blamed }: Blame, reason: StopReason): StopReason => {
  if (reason._tag !== "Budget" && reason._tag !== "Loop") return reason
  const who = blamed?.[reason._tag]
  return who === undefined ? reason : { ...reason, who }
}
