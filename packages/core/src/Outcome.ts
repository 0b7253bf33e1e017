/**
 * Says how a Run ends or rests. Outcomes are the success channel of the verbs; only what went wrong is an error.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import type { Usage } from "./Usage.ts"

const who = { who: Schema.optionalKey(Schema.String) }

/** Why a Run was stopped. Its history stays valid and it can be reopened with other limits. */
export const StopReason = Schema.Union([
  /** `tree`: the model calls of the tree of agents that it belongs to are used up, not its own. */
  Schema.TaggedStruct("MaxTurns", { tree: Schema.optionalKey(Schema.Literal(true)) }),
  /** The active time is used up; `phase` is what was interrupted. */
  Schema.TaggedStruct("Deadline", { phase: Schema.String }),
  /** `who`: the Run of the sub-agent that was stopped for the same reason just before; left out where it is the Run itself. */
  Schema.TaggedStruct("Budget", who),
  Schema.TaggedStruct("Loop", who),
  Schema.TaggedStruct("ConsecutiveFailures", {}),
  /** Another guard's Stop, or a person's no to a Step. */
  Schema.TaggedStruct("Denied", { guard: Schema.String, message: Schema.String }),
  Schema.TaggedStruct("ContentFiltered", {}),
  Schema.TaggedStruct("OutputTruncated", {}),
  Schema.TaggedStruct("RepetitiveOutput", {})
])
export type StopReason = typeof StopReason.Type

/** An Outcome as it is stored; usage and turns are in the fold. */
export const StoredOutcome = Schema.Union([
  Schema.TaggedStruct("Completed", { output: Schema.Json, attempts: Schema.optionalKey(Schema.Number) }),
  Schema.TaggedStruct("Stopped", { reason: StopReason, answer: Schema.optionalKey(Schema.String) }),
  Schema.TaggedStruct("Cancelled", { by: Schema.String, reason: Schema.optionalKey(Schema.String) }),
  Schema.TaggedStruct("Failed", { error: Schema.Json })
])
export type StoredOutcome = typeof StoredOutcome.Type

interface WaitingFor {
  /** The call id, `s<turn>` for a Step, `paused` or `retry`. */
  readonly id: string
  /** Epoch ms. */
  readonly since: number
  readonly reason?: string
}

interface WaitingCall extends WaitingFor {
  /** The tool's name; empty for a Step. */
  readonly name?: string
  /** The arguments of the call, encoded, as the model wrote them. */
  readonly arguments?: unknown
  readonly guard?: string
  /** Epoch ms; after it no answer counts. */
  readonly expiresAt?: number
  /** The call ids from the root down to a sub-agent's call. */
  readonly path?: ReadonlyArray<string>
}

/** Fields that other kinds of waits have, so that they can be read before `kind` is looked at. */
interface NoCall {
  readonly name?: never
  readonly arguments?: never
  readonly digest?: never
  readonly guard?: never
  readonly expiresAt?: never
  readonly path?: never
}
interface NoRetry {
  readonly wakeAt?: never
  readonly count?: never
}

/** Something that a Run waits for. `kind` says who can end the wait. */
export type Waiting =
  /** `digest` is what an answer to an approval must name. */
  | (WaitingCall & NoRetry & { readonly kind: "approval" | "external"; readonly digest: string })
  | (WaitingCall & NoRetry & { readonly kind: "in-doubt"; readonly digest?: string })
  | (WaitingFor & NoCall & NoRetry & { readonly kind: "paused" })
  /** When the Run may go on (epoch ms), and how often it rested in a row. */
  | (WaitingFor & NoCall & { readonly kind: "retry"; readonly wakeAt: number; readonly count: number })

interface Totals {
  readonly usage: Usage
  readonly turns: number
}

export interface Completed<Output> extends Totals {
  readonly _tag: "Completed"
  readonly output: Output
  /** How many answers it took until one matched the output schema, from 1; only where there is a schema. */
  readonly attempts?: number
}

export interface Stopped extends Totals {
  readonly _tag: "Stopped"
  readonly reason: StopReason
  /** What the model said in its final answer, or last. */
  readonly answer?: string
}

export interface Suspended extends Totals {
  readonly _tag: "Suspended"
  /** Every pending call of the turn, those of sub-agents included. */
  readonly waiting: ReadonlyArray<Waiting>
}

export interface Cancelled extends Totals {
  readonly _tag: "Cancelled"
  readonly by: string
  readonly reason?: string
}

/** How a Run ended or rests. */
export type Outcome<Output> = Completed<Output> | Stopped | Suspended | Cancelled
