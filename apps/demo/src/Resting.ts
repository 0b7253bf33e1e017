/**
 * Knows Runs that rest because no model answered: they go on when their time has come, and not before.
 */
import type { Run, RunError } from "@waystone/core"

/** When the Run may ask a model again, epoch ms; undefined if it waits for nothing like that. */
export const until = (waiting: Run.RunInfo["waiting"]): number | undefined =>
  waiting.find((wait) => wait.kind === "retry")?.wakeAt

/** What a verb that drives a Run failed with. */
interface Failed {
  readonly error: RunError.Retryable | RunError.Fatal
}

/** The same of a Run that has just failed so; undefined if it failed otherwise. */
export const wakeAt = ({ error }: Failed): number | undefined => (error._tag === "Retryable" ? error.wakeAt : undefined)

/** True if that is how it came to an end. */
export const is = (failed: Failed): boolean => wakeAt(failed) !== undefined
