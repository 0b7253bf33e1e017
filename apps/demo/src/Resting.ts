/**
 * Knows Runs that rest because no model answered: they go on when their time has come, and not before.
 */
import { Run, type RunUpdate } from "@waystone/core"
import * as Effect from "effect/Effect"

/** When the Run may ask a model again, epoch ms; undefined if it waits for nothing like that. */
export const until = (waiting: Run.RunInfo["waiting"]): number | undefined =>
  waiting.find((wait) => wait.kind === "retry")?.wakeAt

type Update = RunUpdate.RunUpdate<string, Run.StartError | Run.ResumeError>

/** True if that is how driving it came to an end. */
export const is = (update: Extract<Update, { readonly _tag: "Failed" }>): boolean => tags.has(update.error.reason._tag)

const tags: ReadonlySet<string> = new Set(["ModelUnavailable", "ModelTimeout", "ToolUnavailable"])

/** When a Run rests that has just failed so; undefined if the store does not say. */
export const wakeAt = (runId: string) =>
  Run.get(runId).pipe(
    Effect.map(({ waiting }) => until(waiting)),
    Effect.orElseSucceed(() => undefined)
  )

/** A time of day as a person's clock shows it, with its date: `2026-01-31 14:05:00`. */
export const clock = (at: number): string => {
  const time = new Date(at)
  const two = (n: number): string => String(n).padStart(2, "0")
  const date = [time.getFullYear(), two(time.getMonth() + 1), two(time.getDate())].join("-")
  return `${date} ${[time.getHours(), time.getMinutes(), time.getSeconds()].map(two).join(":")}`
}
