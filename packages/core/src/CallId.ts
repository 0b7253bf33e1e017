/**
 * Names the calls of a reply, and questions about the next model call.
 *
 * @since 0.1.0
 */
import type { RunEvent } from "./RunEvent.ts"

/** The calls of a reply that we answer (providers run some of theirs themselves), in order. */
export const callsOf = (reply: Extract<RunEvent, { readonly _tag: "TurnCompleted" }>["reply"]) =>
  reply.filter((part) => part.type === "tool-call").filter((part) => !part.providerExecuted)

/** Our id of a call: unique in the Run and fixed from its first sight on (RI-153). */
export const callId = (turn: number, index: number): string => `t${turn}.${index}`

/** The id under which an ask about the next model call waits. */
export const stepId = (turn: number): string => `s${turn}`
