/**
 * Tells a handler which call it serves.
 *
 * It is a Reference, so a handler asks for it without declaring it: `const { idempotencyKey } = yield* ToolContext`.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type { Principal } from "./RunEvent.ts"

export interface ToolContext {
  readonly runId: string
  /** Ours, `t<turn>.<index>`: the same in events, history, approvals and spans. */
  readonly callId: string
  /**
   * `runId/callId`: the same across retries, resumes and processes, different for every call. Give it to the service
   * that you call, so that it can tell a repetition from a new request.
   */
  readonly idempotencyKey: string
  readonly turn: number
  /** 1 for the first try of this execution. */
  readonly try: number
  readonly principal?: Principal
  readonly session?: string
}

/** Outside a Run all of it is empty. */
export const ToolContext: Context.Reference<ToolContext> = Context.Reference("@waystone/core/ToolContext", {
  defaultValue: (): ToolContext => ({ runId: "", callId: "", idempotencyKey: "", turn: 0, try: 0 })
})
