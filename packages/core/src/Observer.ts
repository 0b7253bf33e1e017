/**
 * Gets the committed events of a Run, for metrics, logs and spans. Its failure or slowness never touches the Run.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { RunEvent } from "./RunEvent.ts"

/** One committed event. */
export interface Entry {
  readonly seq: number
  readonly epoch: number
  readonly event: RunEvent
}

export interface AttemptInfo {
  readonly runId: string
  readonly agent: string
  readonly attempt: number
}

export interface Observer {
  readonly name: string
  /**
   * Called once per Attempt; what it returns gets the events that this Attempt sees committed, in order, outside ones
   * included. At most 1,024 wait for it; beyond that they are dropped with a warning (the journal has them). The scope
   * closes when the Attempt ends, after at most 1 s for what still waits.
   */
  readonly attempt: (info: AttemptInfo) => Effect.Effect<(entry: Entry) => Effect.Effect<void>, never, Scope.Scope>
  /** Told of a root Run that `Run.cancel` has ended in this process while nobody drove it, and all Runs below it. */
  readonly ended?: (runId: string) => Effect.Effect<void>
}
