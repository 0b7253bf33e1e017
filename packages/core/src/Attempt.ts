/**
 * Holds what one process needs while it drives a Run: everything is passed in here or provided, nothing is global, so
 * any number of Runs in one process cannot see each other.
 *
 * @since 0.1.0
 */
import type * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as LanguageModel from "effect/ai/LanguageModel"
import type { Agent } from "./Agent.ts"
import type { AgentTool } from "./AgentTool.ts"
import type { Call } from "./Calls.ts"
import type { CheckpointStore } from "./CheckpointStore.ts"
import type { Draining } from "./Drain.ts"
import type { Stoppable } from "./Interruption.ts"
import type { Journal, JournalError } from "./Journal.ts"
import * as Limits from "./Limits.ts"
import type { ModelInfo, ModelSettings, Prices } from "./ModelInfo.ts"
import type { ModelRetry } from "./ModelRetry.ts"
import type { StopReason } from "./Outcome.ts"
import type { Collected } from "./Plugin.ts"
import type { EncodeFailed, PluginMissing, RunBusy, RunExists } from "./RunError.ts"
import type { Draft, Reservations } from "./RunEvent.ts"
import type { RunState } from "./RunState.ts"
import type { Delta } from "./RunUpdate.ts"
import type { SteadyTime } from "./SteadyTime.ts"
import * as Tree from "./Tree.ts"

/** How long a lease lasts (SPEC 6); it is renewed when two thirds are left. */
export const leaseMillis = 10_000

export interface Attempt {
  readonly runId: string
  readonly epoch: number
  readonly agent: Agent
  readonly store: CheckpointStore["Service"]
  readonly journal: Journal
  readonly plugins: Collected
  /** Everything that was provided to the verb: handlers, services, references. */
  readonly context: Context.Context<never>
  /** The model to ask, and those to ask in its place when it cannot answer. */
  readonly models: readonly [Model, ...ReadonlyArray<Model>]
  readonly modelRetry: ModelRetry
  readonly prices: Prices
  /** Time that is measured, and what events are stamped with. */
  readonly now: SteadyTime
  /** Time that others compare with their own clock: `wakeAt`, the date of a Retry-After. Epoch ms. */
  readonly wall: () => number
  readonly stoppable: Stoppable
  readonly draining: Draining
  readonly lease: Lease
  /** Tells whoever streams this Run what is not committed yet. */
  readonly publish: (delta: Delta) => void
  /** What the guards said of each call in this Attempt. */
  readonly judged: Map<string, Judged>
  readonly tree: Tree.Tree
  /** Drives the Run of a sub-agent, until it ends or rests, with everything that this one was given. */
  readonly drive: (child: Child) => Effect.Effect<Driven, ChildError>
  /** How many bytes messages and tools have; measured when a guard asks. */
  readonly sizes: { readonly messages: WeakMap<object, number>; tools?: number }
}

/** A Run below this one. */
export interface Child {
  readonly agent: Agent
  readonly runId: string
  /** The call that it belongs to. */
  readonly call: Call
  /** What comes before its AttemptStarted. */
  readonly before: (state: RunState) => Effect.Effect<ReadonlyArray<Draft>, RunExists>
  readonly denies: boolean
}

/** How far a Run has come. */
export interface Driven {
  readonly state: RunState
  /** What its guards have counted, for those of its caller. */
  readonly used: Reservations
}

export type ChildError = JournalError | RunBusy | RunExists | EncodeFailed | PluginMissing

export interface Model {
  readonly model: LanguageModel.LanguageModel
  readonly info: ModelInfo
  readonly settings: ModelSettings
}

export interface Lease {
  /** Milliseconds that are left, by whichever of our clocks went further: while a computer sleeps, one stands still. */
  readonly left: () => number
  readonly renew: Effect.Effect<void, JournalError>
}

/** The tool of that declared name. */
export const toolOf = (attempt: Attempt, name: string): AgentTool | undefined =>
  attempt.agent.tools.find((tool) => tool.name === name)

/** The limits that hold now: a reopened Run may have others than its agent, and a tree has fewer model calls left than each Run. */
export const limitsOf = ({ agent, journal, tree }: Attempt): Limits.Current => {
  const { head, limits } = journal.state
  const own = Limits.override(agent.limits, limits)
  const maxTurns = head.turn + Tree.left(tree)
  return maxTurns < own.maxTurns ? { ...own, maxTurns, ofTree: true } : own
}

/** It may go on, with what was reserved for it; `drafts` are notes and nudges. */
export interface Going {
  readonly _tag: "Go"
  readonly drafts: ReadonlyArray<Draft>
  readonly reservations?: Reservations
  readonly maxOutputTokens?: number
  readonly maxPaidTries?: number
  readonly final?: StopReason
}

/** What the Verdicts mean for the journal. `Hold`: it may not, or not yet, and `drafts` say so. */
export type Judged = Going | { readonly _tag: "Hold"; readonly drafts: ReadonlyArray<Draft> }
