/**
 * Names what a consumer of `Run.stream` sees: committed events, provisional deltas, and one end.
 *
 * @since 0.1.0
 */
import type { Outcome } from "./Outcome.ts"
import type { Failure, RunEvent } from "./RunEvent.ts"

interface Of {
  readonly turn: number
  /** Counts from 1; a greater one says that what an earlier try of this turn wrote is void (RI-065). */
  readonly try: number
}

/** Not committed: it may be void after a retry or a crash, and a slow consumer may miss some. */
export type Delta =
  | (Of & { readonly _tag: "TextDelta"; readonly text: string })
  | (Of & { readonly _tag: "ReasoningDelta"; readonly text: string })
  /** A try failed; the next one starts after `waitMs`, which the provider may have asked for. */
  | (Of & { readonly _tag: "TryFailed"; readonly failure: Failure; readonly waitMs: number })
  | (Of & { readonly _tag: "TryStarted" })
  /** A handler starts to run. */
  | { readonly _tag: "CallStarted"; readonly callId: string; readonly name: string }
  /** Progress of a running tool. */
  | { readonly _tag: "ToolProgress"; readonly callId: string; readonly value: unknown }
  | ChildProgress

/** What a sub-agent's Run does. */
export interface ChildProgress {
  readonly _tag: "ChildProgress"
  /** The call ids from this Run down to the call whose Run does it. */
  readonly path: ReadonlyArray<string>
  /** A committed event has the seq of its own Run; a slow consumer may miss some, and `Run.events` has them all. */
  readonly update: Exclude<Delta, ChildProgress> | Committed
}

/** One committed event; `seq` has no gaps. */
export interface Committed {
  readonly _tag: "Committed"
  readonly seq: number
  readonly event: RunEvent
}

/** Exactly one of these ends a stream. */
export type End<Output, E> =
  | { readonly _tag: "Ended"; readonly outcome: Outcome<Output> }
  | { readonly _tag: "Failed"; readonly error: E }

export type RunUpdate<Output, E> = Committed | Delta | End<Output, E>
