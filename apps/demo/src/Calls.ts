/**
 * Reads from a journal which calls the model asked for, and what came of each.
 */
import type { RunEvent } from "@waystone/core"

export interface Call {
  readonly callId: string
  readonly name: string
  readonly arguments: unknown
  /** How it came to its result; missing while it has none. */
  readonly ending?: string
  readonly isFailure?: boolean
  /** How often it was started; a readonly call that was answered counts as started once. */
  readonly starts: number
}

/** Every call that the model asked for, in order. */
export const asked = (events: ReadonlyArray<RunEvent.RunEvent>): ReadonlyArray<Call> => {
  const found = new Map<string, Call>()
  for (const event of events) {
    if (event._tag === "TurnCompleted") {
      event.reply
        .filter((part) => part.type === "tool-call")
        .filter(({ providerExecuted }) => !providerExecuted)
        .forEach(({ name, params }, index) => {
          const callId = `t${event.turn}.${index}`
          found.set(callId, { callId, name, arguments: params, starts: 0 })
        })
    }
    if (event._tag === "ToolCallStarted" || event._tag === "ToolCallCompleted") {
      const call = found.get(event.callId)
      if (call === undefined) continue
      if (event._tag === "ToolCallStarted") found.set(event.callId, { ...call, starts: call.starts + 1 })
      else {
        const starts = event.startedAt === undefined ? call.starts : Math.max(1, call.starts)
        found.set(event.callId, { ...call, starts, ending: event.ending, isFailure: event.isFailure })
      }
    }
  }
  return [...found.values()]
}
