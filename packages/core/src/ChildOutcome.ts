/**
 * Says what the Run of a sub-agent came to, as the result of the call that started it.
 *
 * Invariants
 *   CO1  Only a Run that completed with something is a success; every other end is an error that says why (RI-026, RI-076).
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Driven } from "./Attempt.ts"
import { defined } from "./Defined.ts"
import type { ToolOutput } from "./Interceptor.ts"
import type { StopReason, StoredOutcome } from "./Outcome.ts"
import { FatalReason } from "./RunError.ts"
import type { ChildTotals } from "./RunEvent.ts"
import * as ToolResult from "./ToolResult.ts"

/** The result of the call. The output is JSON already, as the agent's schema encodes it. */
export const output = (runId: string, outcome: StoredOutcome): ToolOutput => {
  switch (outcome._tag) {
    case "Completed":
      return typeof outcome.output === "string" && outcome.output.trim() === ""
        ? nothing
        : { isFailure: false, result: outcome.output }
    case "Stopped": {
      const said = outcome.answer === undefined ? "" : ` Its last words: ${outcome.answer}`
      return ToolResult.errorOutput(
        `The sub-agent ${runId} was stopped: ${why(outcome.reason)}.${said}`,
        outcome.reason._tag
      )
    }
    case "Cancelled": {
      const reason = outcome.reason === undefined ? "" : `: ${outcome.reason}`
      return ToolResult.errorOutput(`The sub-agent ${runId} was cancelled by ${outcome.by}${reason}.`, "Cancelled")
    }
    case "Failed":
      return failed(runId, outcome.error)
  }
}

const nothing = ToolResult.errorOutput("child produced no output", "EmptyResponse")

const decode = Schema.decodeUnknownResult(Schema.toCodecJson(FatalReason))

const failed = (runId: string, error: Schema.Json): ToolOutput => {
  const reason = Result.getOrUndefined(decode(error))
  if (reason?._tag === "EmptyResponse") return nothing
  const message = reason?.message ?? "for a reason that cannot be read"
  return ToolResult.errorOutput(`The sub-agent ${runId} failed: ${message}`, reason?._tag ?? "Failed")
}

const why = (reason: StopReason): string => {
  switch (reason._tag) {
    case "MaxTurns":
      return `${reason.tree === true ? "its tree of agents" : "it"} made as many model calls as it may`
    case "Deadline":
      return "its time was over"
    case "Budget":
      return `its budget is used up${by(reason)}`
    case "Loop":
      return `it went in circles${by(reason)}`
    case "ConsecutiveFailures":
      return "too many of its calls failed in a row"
    case "Denied":
      return `${reason.guard} refused it: ${reason.message}`
    case "ContentFiltered":
      return "a content filter stopped its answer"
    case "OutputTruncated":
      return "its answers were cut off"
    case "RepetitiveOutput":
      return "it said the same again and again"
  }
}

const by = ({ who }: { readonly who?: string }): string => (who === undefined ? "" : ` (by ${who})`)

/** The Run that used up its share or repeated itself: this one, or one below it. */
const culprit = (runId: string, outcome: StoredOutcome | undefined): string | undefined => {
  const reason = outcome?._tag === "Stopped" ? outcome.reason : undefined
  return reason?._tag === "Budget" || reason?._tag === "Loop" ? (reason.who ?? runId) : undefined
}

/** What it used, with all below it. */
export const totals = (runId: string, { state: { head, outcome }, used }: Driven): ChildTotals => ({
  runId,
  usage: head.usage,
  turns: head.turn + (head.childTurns ?? 0),
  ...(head.toolCalls === 0 ? undefined : { calls: head.toolCalls }),
  ...(Object.keys(used).length === 0 ? undefined : { used }),
  ...defined({ costNanoUsd: head.costNanoUsd, costUnknown: head.costUnknown, who: culprit(runId, outcome) })
})
