/**
 * Drives a Run to where it ends or rests. This is the whole loop: what to do is `Step.next`'s business, how it is done
 * that of Turn, ToolCalls and Recovery.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { Attempt } from "./Attempt.ts"
import { limitsOf } from "./Attempt.ts"
import * as Deadline from "./Deadline.ts"
import * as Finish from "./Finish.ts"
import type { Halted } from "./Interruption.ts"
import type { JournalError } from "./Journal.ts"
import * as Judge from "./Judge.ts"
import * as Recovery from "./Recovery.ts"
import * as Rest from "./Rest.ts"
import * as Step from "./Step.ts"
import * as ToolCalls from "./ToolCalls.ts"
import * as Turn from "./Turn.ts"
import * as Unattended from "./Unattended.ts"

/** Runs Steps until the Run has an outcome or rests, or, where the process is about to end, would begin something new. */
export const run = Effect.fnUntraced(function* (attempt: Attempt): Effect.fn.Return<void, JournalError> {
  const { journal } = attempt
  while (journal.state.outcome === undefined) {
    yield* Deadline.check(attempt, "loop")
    const step = Step.next(journal.state, limitsOf(attempt))
    if (attempt.draining.begun() && step._tag !== "Wait" && step._tag !== "Finish") return yield* Effect.interrupt
    switch (step._tag) {
      case "CallModel":
        yield* orHalted(callModel(attempt, step))
        break
      case "CallTools":
        yield* orHalted(ToolCalls.perform(attempt, step.calls))
        break
      case "Recover":
        yield* orHalted(Recovery.perform(attempt, step.calls))
        break
      case "Wait":
        if (yield* Rest.perform(attempt, step.retry)) return
        break
      case "Finish":
        yield* Finish.perform(attempt, step.outcome)
        break
    }
  }
})

const callModel = Effect.fnUntraced(function* (
  attempt: Attempt,
  step: Extract<Step.Step, { readonly _tag: "CallModel" }>
): Effect.fn.Return<void, JournalError | Halted> {
  const judged = yield* Judge.step(attempt, step)
  const drafts = Unattended.refused(attempt.tree, judged.drafts, "Stop")
  for (const draft of drafts) if (!(yield* attempt.journal.put(draft))) return
  if (judged._tag === "Go") yield* Turn.perform(attempt, { ...judged, ...step })
})

/** What was halted has said why in the state; `Step.next` reads it there. */
const orHalted = (effect: Effect.Effect<void, JournalError | Halted>): Effect.Effect<void, JournalError> =>
  Effect.catchTag(effect, "Halted", () => Effect.void)
