/**
 * Wraps how a model call or a tool call is made. It never decides whether it is made.
 *
 * Order, outermost first: `trace` (once, around the whole Turn or call), core's own retry, then once per try `breaker`
 * and `sanitize`. It runs on every execution and never on replay.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import type * as AiError from "effect/ai/AiError"
import type * as Response from "effect/ai/Response"
import type { EffectClass } from "./RunEvent.ts"

export type Stage = "trace" | "breaker" | "sanitize"
export const stages: ReadonlyArray<Stage> = ["trace", "breaker", "sanitize"]

/** What a model answered to one try. */
export interface Reply {
  readonly parts: ReadonlyArray<Response.AnyPart>
  /** Epoch ms. */
  readonly firstPartAt?: number
}

export interface TurnInfo {
  readonly runId: string
  readonly turn: number
}

export interface ToolInfo {
  readonly runId: string
  readonly callId: string
  readonly name: string
  readonly effect: EffectClass
  /** Decoded. */
  readonly arguments: unknown
}

/** What a tool gave back, encoded, before it is bounded and journaled. */
export interface ToolOutput {
  readonly isFailure: boolean
  /** JSON. */
  readonly result: unknown
  /** The tag of the error, of a failure. */
  readonly error?: string
  readonly modelOutput?: ReadonlyArray<unknown>
}

export interface Interceptor {
  readonly name: string
  readonly stage: Stage
  readonly turn?: (info: TurnInfo, next: Effect.Effect<Reply, AiError.AiError>) => Effect.Effect<Reply, AiError.AiError>
  readonly tool?: (info: ToolInfo, next: Effect.Effect<ToolOutput>) => Effect.Effect<ToolOutput>
}
