/**
 * The points at which a worker can die: before and after every append, and before, in and after every effect.
 *
 * It wraps services of the test's own process; the packages under test know nothing of it.
 */
import type { CheckpointStore } from "@waystone/core"
import * as Effect from "effect/Effect"

/** Passes a point, and dies there if it is the one. SIGKILL ends the process before `kill` returns. */
export type Pass = Effect.Effect<void>

export interface Points {
  readonly pass: Pass
  /** How many were passed. */
  readonly passed: () => number
}

export const make = (dieAt: number | undefined): Points => {
  let passed = 0
  return {
    passed: () => passed,
    pass: Effect.sync(() => {
      if (passed++ === dieAt) process.kill(process.pid, "SIGKILL")
    })
  }
}

/** The store with a point before and after every append; `refused` hears of appends that were fenced. */
export const store = (
  real: CheckpointStore.CheckpointStore["Service"],
  { pass, refused }: { readonly pass: Pass; readonly refused: () => void }
): CheckpointStore.CheckpointStore["Service"] => ({
  ...real,
  append: (append) =>
    pass.pipe(
      Effect.andThen(real.append(append)),
      Effect.tap(({ _tag }) => (_tag === "Fenced" ? Effect.sync(refused) : Effect.void)),
      Effect.tap(pass)
    )
})
