/**
 * Decides whether a model call or a tool call may happen.
 *
 * A Guard owns a fold: its memory is folded from the events with the state, so it survives a crash for free and costs
 * O(1) a step. It sees the state, its memory and what is proposed; it must not perform it, and it cannot see tokens
 * while they stream. It is asked before every model call, and once per call id before a tool call (RI-108). Where a
 * person edited the arguments (`call.edited`), all are asked once more before the call starts, and then only Deny and
 * Stop count: what they forbid, no approval allows.
 *
 * Invariants
 *   G1  Only Allow lets an effect happen.
 *   G2  With several guards the strictest Verdict wins; of equal ones the first in order of stage and name.
 *   G3  Every Verdict but a plain Allow yields at least one event, so none can spin the loop: a second Nudge or Ask of
 *       one guard about the same Step, after the first was told or approved, counts as Allow.
 *   G4  A Step that was nudged is judged again, so that what is reserved covers what the model is told.
 *   G5  A Deny or a Stop of any guard is final: no ruling on a question lets a call past it.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import type { Json } from "effect/Schema"
import type { Call } from "./Calls.ts"
import type { ModelInfo, ModelSettings, Prices } from "./ModelInfo.ts"
import type { StopReason } from "./Outcome.ts"
import type { Reservations, RunEvent, ToolRecord } from "./RunEvent.ts"
import type { RunState } from "./RunState.ts"
import type { Step } from "./Step.ts"
import { defined } from "./Defined.ts"

/** Outermost first. `limits` is for plugins' own fuses. */
export type Stage = "limits" | "permissions" | "budget" | "loop"
export const stages: ReadonlyArray<Stage> = ["limits", "permissions", "budget", "loop"]

export type Verdict =
  | {
      readonly _tag: "Allow"
      /** Units set aside before the step, journaled under the guard's name. */
      readonly reservation?: { readonly [unit: string]: number }
      /** For a model call: at most this many output tokens. */
      readonly maxOutputTokens?: number
      /** For a model call: after so many tries that cost something there is no other one; what they cost is what was reserved. */
      readonly maxPaidTries?: number
      /** For a model call: it is the last one and sees no tools; then the Run is Stopped for this reason (RI-061). */
      readonly final?: StopReason
      /** Something that the guard wants in the journal. */
      readonly note?: Json
    }
  /** For a call: the model gets an error result with the reason. For a Step it is a Stop. */
  | { readonly _tag: "Deny"; readonly reason: string }
  /** Waits for a person. `once`: it is about this call alone, so no earlier answer counts for it. */
  | { readonly _tag: "Ask"; readonly reason: string; readonly expiresAt?: number; readonly once?: true }
  /** For a Step: the model is told, and the Step goes on. For a call it is an Allow. */
  | { readonly _tag: "Nudge"; readonly message: string }
  /** Ends the Run as Stopped; without `stop` the reason is `Denied` with this message. */
  | { readonly _tag: "Stop"; readonly message: string; readonly stop?: StopReason }

export const allow: Verdict = { _tag: "Allow" }
export const deny = (reason: string): Verdict => ({ _tag: "Deny", reason })
export const ask = (reason: string): Verdict => ({ _tag: "Ask", reason })
export const nudge = (message: string): Verdict => ({ _tag: "Nudge", message })
export const stop = (message: string, reason?: StopReason): Verdict => ({
  _tag: "Stop",
  message,
  ...defined({ stop: reason })
})

/** What is known of a model call before it is made. */
export interface ModelRequest {
  /** The model to ask, and those to fall back to. */
  readonly models: ReadonlyArray<{ readonly info: ModelInfo; readonly settings: ModelSettings }>
  /**
   * An upper bound of the input tokens: the UTF-8 bytes of the messages, and of the tools if they are shown. What adapters
   * and providers add unseen is not in it. Infinity if a message holds a file, whose tokens its bytes do not bound.
   */
  readonly inputBytes: (options: { readonly tools: boolean }) => number
  /** What core's `Prices` says; undefined if the price is not known. */
  readonly cost: Prices["cost"]
}

/** What is proposed: the next model call, or one tool call with its decoded arguments and what is known of its tool. */
export type Proposal =
  | {
      readonly _tag: "Step"
      readonly step: Extract<Step, { readonly _tag: "CallModel" }>
      readonly request: ModelRequest
    }
  | {
      readonly _tag: "Call"
      readonly call: Call
      readonly tool: ToolRecord
      /** Decoded. */
      readonly arguments: unknown
      /** Calls of the same reply that come before it and may run: all calls of a reply are judged before any starts. */
      readonly ahead: ReadonlyArray<Call>
    }

export interface Check<Memory> {
  readonly state: RunState
  readonly memory: Memory
  readonly proposal: Proposal
}

/**
 * What a guard, or core, wants to ask a person, where the strictest Verdict of all was an Ask. Each Ask is ruled on; those
 * that are not granted are put to the person as one question, and the answer is one to all who asked.
 */
export interface Question {
  /** Who asks. */
  readonly guard: string
  readonly reason: string
  /** Of the call's name and arguments, as an answer must give it; of a Step, of guard, turn and reason. */
  readonly digest: string
  /** What the asking guard said. Epoch ms. */
  readonly expiresAt?: number
  /** It cannot be granted. */
  readonly once?: true
}

/** What becomes of a question. */
export type Ruling =
  /** A person is waited for; until then, if that is earlier than what others say. Epoch ms. */
  | { readonly _tag: "Wait"; readonly expiresAt?: number }
  /** It was answered before: that Ask counts as Allow, and the note stands in the journal. Of a Step it is a Wait. */
  | { readonly _tag: "Granted"; readonly note: Json }
  /** The call gets this as its error result at once, and may be answered later. Of a Step it is a Wait. */
  | {
      readonly _tag: "TellModel"
      readonly message: string
      readonly expiresAt?: number
      /** The same question is open already: no second one is asked, so that no two answers can be given to it. */
      readonly open?: true
    }

/** What a guard is made of. `fold` runs on every event but duplicates, on resume for all of them again; `check` never runs on replay. */
export interface Options<Memory> {
  /** Unique among the guards of a Run; it stands in the journal. */
  readonly name: string
  readonly stage: Stage
  readonly initial: Memory
  readonly fold: (memory: Memory, event: RunEvent) => Memory
  /** A look-up that fails must become a refusal: the error channel is `never`. */
  readonly check: (check: Check<Memory>) => Verdict | Effect.Effect<Verdict>
  /**
   * What the Run of a sub-agent has used, in the guard's own units, when it has ended. It stands in its caller's
   * ToolCallCompleted (`child.used`), for the fold there. Default: nothing is told.
   */
  readonly used?: (memory: Memory) => { readonly [unit: string]: number }
  /** Rules on the questions of all guards. One that breaks waits for a person. Default: every question waits. */
  readonly rule?: (check: Check<Memory>, question: Question) => Ruling | Effect.Effect<Ruling>
}

/** A guard whose memory is its own business. */
export interface Guard extends Options<unknown> {}

/** Stands for the memory of a guard whose fold threw. */
export const brokenMemory: unique symbol = Symbol.for("@waystone/core/Guard/brokenMemory")

/** What a Run has used, by guard: of those that tell it and whose memory is whole. */
export const used = (guards: ReadonlyArray<Guard>, memory: ReadonlyArray<unknown>): Reservations =>
  Object.fromEntries(
    guards.flatMap(({ name, used }, i) => {
      const own = memory[i]
      if (used === undefined || own === brokenMemory) return []
      try {
        const amounts = { ...used(own) }
        return Object.values(amounts).every(Number.isFinite) ? [[name, amounts]] : []
      } catch {
        return [] // as one that is broken: its caller's fold knows no more than what was set aside
      }
    })
  )

/** The cast is sound: a guard's memory comes from nowhere but its own `initial` and `fold`. */
export const make = <Memory>(options: Options<Memory>): Guard => options as Options<unknown> as Guard

/** A guard's Verdict with its name. */
export interface Judgement {
  readonly guard: string
  readonly verdict: Verdict
}

/** True for one of the five; anything else that a check gives counts as a guard that failed. */
export const isVerdict = (verdict: unknown): verdict is Verdict =>
  typeof verdict === "object" &&
  verdict !== null &&
  "_tag" in verdict &&
  Object.hasOwn(strictness, String(verdict._tag))

const strictness = { Allow: 0, Nudge: 1, Ask: 2, Deny: 3, Stop: 4 }

/** The judgement that counts; undefined if all allow. */
export const strictest = (judgements: ReadonlyArray<Judgement>): Judgement | undefined => {
  let worst: Judgement | undefined
  for (const judgement of judgements) {
    const rank = strictness[judgement.verdict._tag]
    if (rank > (worst === undefined ? 0 : strictness[worst.verdict._tag])) worst = judgement
  }
  return worst
}
