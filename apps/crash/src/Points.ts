/**
 * The points at which a worker can die: before and after every append, and before, in and after every effect.
 *
 * It wraps services of the test's own process; the packages under test know nothing of it.
 */
import type { CheckpointStore } from "@waystone/core"
import * as Effect from "effect/Effect"
import type { Job } from "./Job.ts"
import * as Trace from "./Trace.ts"

/** Passes a point, and dies there if it is the one. SIGKILL ends the process before `kill` returns. */
export type Pass = Effect.Effect<void>

export const make = ({ deaths = [], trace }: Pick<Job, "deaths" | "trace">): Pass =>
  trace === undefined
    ? Effect.void
    : Effect.sync(() => {
        if (deaths.includes(Trace.pass(trace))) process.kill(process.pid, "SIGKILL")
      })

/** The store with a point before and after every append; `fenced` hears of appends that were refused for their epoch. */
export const store = (
  real: CheckpointStore.CheckpointStore["Service"],
  { fenced, pass }: { readonly pass: Pass; readonly fenced: Effect.Effect<void> }
): CheckpointStore.CheckpointStore["Service"] => ({
  ...real,
  append: (append) =>
    pass.pipe(
      Effect.andThen(real.append(append)),
      Effect.tap(({ _tag }) => (_tag === "Fenced" ? fenced : Effect.void)),
      Effect.tap(pass)
    )
})
