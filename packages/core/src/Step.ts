/**
 * Says what a Run does next, from its state and limits alone.
 *
 * Invariants
 *   P1  A call that was started and has no result is settled before anything else, a cancel included.
 *   P2  After a cancel, a stop or a fatal error nothing new is started.
 *   P3  A Run does not finish while its inbox holds a message.
 *   P4  A Run never rests without saying what it waits for.
 *
 * @since 0.1.0
 */
import type { Call } from "./Calls.ts"
import type { Current } from "./Limits.ts"
import type { StopReason, StoredOutcome } from "./Outcome.ts"
import type { Failure } from "./RunEvent.ts"
import type { RunState } from "./RunState.ts"
import { head } from "./Text.ts"
import { defined } from "./Defined.ts"

/** One pass of the loop, as a value. */
export type Step =
  /** `final` is the limit that asked for a last turn without tools. */
  | { readonly _tag: "CallModel"; readonly final?: StopReason }
  | { readonly _tag: "CallTools"; readonly calls: ReadonlyArray<Call> }
  | { readonly _tag: "Recover"; readonly calls: ReadonlyArray<Call> }
  /** `retry` is the failure that the Run rests after. */
  | { readonly _tag: "Wait"; readonly retry?: Failure }
  | { readonly _tag: "Finish"; readonly outcome: Ending }

/** Why a Run finishes; what a failure is as an error is the Loop's business. */
export type Ending =
  | StoredOutcome
  | { readonly _tag: "Exhausted"; readonly failure: Failure }
  | { readonly _tag: "Empty" }
  | { readonly _tag: "Invalid"; readonly attempts: number; readonly issues: string }
  | { readonly _tag: "Poisoned"; readonly recoveries: number }

/** Re-asks after an empty or truncated reply, and corrections of an output or a protocol, before the Run gives up. */
export const maxRejections = 2
/** Rests in a row before a Run fails: 1, 5, 30 minutes, then hourly. */
export const maxRests = 8

const callModel: Step = { _tag: "CallModel" }
const wait: Step = { _tag: "Wait" }
const finish = (outcome: Ending): Step => ({ _tag: "Finish", outcome })

/** The next Step of a Run that has no outcome. Pure. */
export const next = (state: RunState, limits: Current): Step =>
  lost(state) ??
  ending(state, limits) ??
  paused(state) ??
  calling(state) ??
  resting(state) ??
  finishing(state) ??
  turn(state, limits)

type Maybe = Step | undefined

const lost = ({ calls }: RunState): Maybe => {
  const started = calls.filter((call) => call.status === "started")
  return started.length === 0 ? undefined : { _tag: "Recover", calls: started }
}

const ending = ({ fatal, head, recoveries, stopReason, answer }: RunState, limits: Current): Maybe => {
  if (head.cancelled !== undefined) return finish({ _tag: "Cancelled", ...head.cancelled })
  if (fatal !== undefined) return finish({ _tag: "Failed", error: fatal })
  if (stopReason !== undefined) return finish(stopped(stopReason, answer?.text))
  return recoveries > limits.maxRecoveries ? finish({ _tag: "Poisoned", recoveries }) : undefined
}

const stopped = (reason: StopReason, answer: string | undefined): StoredOutcome => ({
  _tag: "Stopped",
  reason,
  ...defined({ answer: answer === "" ? undefined : answer })
})

const paused = ({ head }: RunState): Maybe => (head.paused === undefined ? undefined : wait)

const calling = ({ calls, stepAsk }: RunState): Maybe => {
  if (calls.length === 0) return stepAsk === undefined ? undefined : wait
  const ready = calls.filter(({ status }) => status === "requested" || status === "approved" || status === "settled")
  return ready.length > 0 ? { _tag: "CallTools", calls: ready } : wait
}

const resting = ({ failure, head, rests }: RunState): Maybe => {
  if (head.retry !== undefined) return wait // it is not due
  if (failure === undefined) return undefined
  if (failure.tag === "RepetitiveOutput") return finish(stopped({ _tag: "RepetitiveOutput" }, undefined))
  if (!failure.retryable || rests >= maxRests) return finish({ _tag: "Exhausted", failure })
  return { _tag: "Wait", retry: failure }
}

const finishing = ({ answer, final, inbox, rejections }: RunState): Maybe => {
  if (rejections.empty > maxRejections) return finish({ _tag: "Empty" })
  if (rejections.truncated > maxRejections) return finish(stopped({ _tag: "OutputTruncated" }, undefined))
  const feedback = inbox.findLast(({ from }) => from === "runtime")?.content
  const issues = typeof feedback === "string" ? feedback : ""
  if (rejections.output > maxRejections) return finish({ _tag: "Invalid", attempts: rejections.output, issues })
  if (rejections.protocol > maxRejections) {
    const message = `${rejections.protocol} replies broke the protocol of the model's adapter: ${issues}`
    return finish({
      _tag: "Exhausted",
      failure: { tag: "ModelRejected", message: head(message, 500), retryable: false }
    })
  }
  if (final?.done === true) return finish(stopped(final.reason, answer?.text))
  if (answer === undefined || inbox.length > 0) return undefined
  const { attempts, output = answer.text } = answer
  return finish({ _tag: "Completed", output, ...defined({ attempts }) })
}

const turn = ({ consecutiveFailures, head }: RunState, limits: Current): Step => {
  const reached: StopReason | undefined =
    consecutiveFailures >= limits.maxConsecutiveFailures
      ? { _tag: "ConsecutiveFailures" }
      : head.turn >= limits.maxTurns
        ? { _tag: "MaxTurns", ...defined({ tree: limits.ofTree }) }
        : undefined
  if (reached === undefined) return callModel
  return limits.finalAnswer ? { _tag: "CallModel", final: reached } : finish(stopped(reached, undefined))
}
