/**
 * Ends a Run: every open call gets a result, then the outcome is committed.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Attempt } from "./Attempt.ts"
import type { Call, Settled } from "./Calls.ts"
import * as ChildRun from "./ChildRun.ts"
import type { JournalError } from "./Journal.ts"
import type { StoredOutcome } from "./Outcome.ts"
import * as Recovery from "./Recovery.ts"
import {
  EmptyResponse,
  FatalReason,
  ModelRefusal,
  ModelRejected,
  ModelTimeout,
  ModelUnavailable,
  OutputInvalid,
  Poisoned
} from "./RunError.ts"
import type { Failure } from "./RunEvent.ts"
import { type Ending, maxRests } from "./Step.ts"
import { completed } from "./ToolCalls.ts"
import { defined } from "./Defined.ts"

/** Stages the results and commits the outcome; if an outside event comes first, `Step.next` is asked again. */
export const perform = Effect.fnUntraced(function* (
  attempt: Attempt,
  ending: Ending
): Effect.fn.Return<void, JournalError> {
  const { journal, runId } = attempt
  const outcome = stored(runId, ending)
  for (const call of journal.state.calls) {
    if (call.status === "completed") continue
    yield* journal.put(isBelow(call) ? yield* ChildRun.end(attempt, call) : completed(call, closing(call, outcome)))
  }
  yield* journal.put({ _tag: "RunFinished", outcome }, { commit: true })
})

/** True if a sub-agent has a Run for the call; the Run that a fork's original has is not the fork's. */
export const isBelow = ({ child, status }: Call): boolean =>
  child !== undefined && status !== "in-doubt" && status !== "settled"

/** The result of a call that is open when its Run ends. */
export const closing = (call: Call, { _tag }: StoredOutcome): Settled => {
  if (call.settled !== undefined) return call.settled
  if (call.status === "in-doubt" || call.status === "child" || call.status === "started") return Recovery.unknown
  return _tag === "Cancelled"
    ? { ending: "cancelled", isFailure: true, result: { error: "Cancelled; not executed." } }
    : { ending: "not-executed", isFailure: true, result: { error: "The run ended first; not executed." } }
}

const stored = (runId: string, ending: Ending): StoredOutcome => {
  switch (ending._tag) {
    case "Empty":
      return failed(new EmptyResponse({ runId }))
    case "Invalid":
      return failed(new OutputInvalid({ runId, attempts: ending.attempts, issues: ending.issues }))
    case "Poisoned":
      return failed(new Poisoned({ runId, recoveries: ending.recoveries }))
    case "Exhausted":
      return failed(fatalReason(runId, ending.failure))
    default:
      return ending
  }
}

const encode = Schema.encodeSync(Schema.toCodecJson(FatalReason))
const failed = (reason: FatalReason): StoredOutcome => ({ _tag: "Failed", error: encode(reason) })

const fatalReason = (runId: string, { message, retryable, status, tag }: Failure): FatalReason => {
  if (tag === "ModelRefusal") return new ModelRefusal({ runId, detail: message })
  const known = { runId, ...defined({ status }) }
  return retryable
    ? new ModelRejected({ ...known, detail: `still unavailable after ${maxRests} rests: ${message}`, away: true })
    : new ModelRejected({ ...known, detail: message })
}

/** The reason to come back that a resting Run has. */
export const retryReason = (runId: string, { message, tag }: Failure): ModelTimeout | ModelUnavailable =>
  tag === "ModelTimeout"
    ? new ModelTimeout({ runId, detail: message })
    : new ModelUnavailable({ runId, detail: message })
