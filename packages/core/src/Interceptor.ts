/**
 * Wraps how a model call or a tool call is made. It never decides whether it is made.
 *
 * Order, outermost first: `trace` (once, around the whole Turn or call), core's own retry, then once per try `breaker`
 * and `sanitize`. It runs on every execution and never on replay.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import type { Json } from "effect/Schema"
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
  /** How often the journal has it started, this time included; 1 for a readonly call, whose start is not journaled. */
  readonly start: number
  readonly effect: EffectClass
  /** Its author said that what it returns comes from outside (`Tool.OpenWorld`). */
  readonly openWorld: boolean
  /** Decoded. */
  readonly arguments: unknown
}

/** What a tool gave back, encoded, before it is bounded and journaled. */
export interface ToolOutput {
  readonly isFailure: boolean
  readonly result: Json
  /** The tag of the error, of a failure. */
  readonly error?: string
  /** What the model is shown instead of the result, in effect/ai's encoded form. */
  readonly modelOutput?: ReadonlyArray<Json>
  /** More about a failure: worth another try, the end of the Run, of unknown outcome, or stopped before it had an effect. */
  readonly kind?: "retry" | "fatal" | "unknown" | "interrupted"
  /** With `fatal`: the encoded reason. */
  readonly fatal?: Json
}

export interface Interceptor {
  readonly name: string
  readonly stage: Stage
  readonly turn?: (info: TurnInfo, next: Effect.Effect<Reply, AiError.AiError>) => Effect.Effect<Reply, AiError.AiError>
  readonly tool?: (info: ToolInfo, next: Effect.Effect<ToolOutput>) => Effect.Effect<ToolOutput>
  /** `turn` changes text: no delta is published before it, and the text that it gives in one piece. */
  readonly holdsDeltas?: boolean
  /** Changes what a handler reports while it runs, before it is published as ToolProgress. What it throws at is not published. */
  readonly progress?: (info: Omit<ToolInfo, "arguments" | "start">, value: unknown) => unknown
}
