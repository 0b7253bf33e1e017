/**
 * Lets a handler say more than "failed": come back later, or end the Run.
 *
 * @example
 * const Pay = Tool.make("pay", { parameters, success, failure: ToolError.ToolError })
 * // in its handler
 * yield* ToolError.retryable("the bank is closed for a second")
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { classOf, Fatal, type FatalFor, Retryable, type RetryableFor, ToolFatal, ToolUnavailable } from "./RunError.ts"
import { defined } from "./Defined.ts"

/** A failure schema for tools whose handlers use these; union it with your own. */
export const ToolError = Schema.Union([Retryable, Fatal])

/** The same call may succeed later: retried after 1 s and 2 s if the tool is readonly or idempotent. */
export const retryable = (detail: string): Effect.Effect<never, RetryableFor<"ToolUnavailable">> =>
  Effect.fail(classOf(new ToolUnavailable({ detail })))

/** Ends the Run as failed; `data` is kept with the error. */
export const fatal = (detail: string, data?: Schema.Json): Effect.Effect<never, FatalFor<"ToolFatal">> =>
  Effect.fail(classOf(new ToolFatal({ tool: "", detail, ...defined({ data }) })))
