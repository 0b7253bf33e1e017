/**
 * Says in words that help the model why a call cannot run. What the model writes never fails the Run (SPEC 4).
 *
 * @since 0.1.0
 */
import type { AgentTool } from "./AgentTool.ts"
import type { Attempt } from "./Attempt.ts"
import { type Call, maxArguments, type Settled as Decided, tooLong } from "./Calls.ts"
import type { Limits } from "./Limits.ts"
import type { Ending } from "./RunEvent.ts"
import type { SubAgent } from "./SubAgent.ts"
import * as ToolResult from "./ToolResult.ts"
import * as Tree from "./Tree.ts"

export interface Settled extends Decided {
  readonly error?: string
}

const failed = (ending: Ending, error: string, message: string): Settled => ({
  ending,
  isFailure: true,
  result: { error: ToolResult.describe(message) },
  error
})

/** A call that the user's next message made pointless before it was asked about. */
export const superseded: Settled = {
  ending: "superseded",
  isFailure: true,
  result: { error: "Superseded by a new message from the user; not executed." }
}

/** More calls than one reply may have. */
export const beyond = ({ callId }: Call, { maxCallsPerReply }: Limits): Settled | undefined =>
  Number(callId.slice(callId.indexOf(".") + 1)) < maxCallsPerReply
    ? undefined
    : failed("invalid", "TooManyCalls", `At most ${maxCallsPerReply} calls in one reply; this one was not executed.`)

export const tooLarge = ({ arguments: args }: Call): Settled | undefined =>
  typeof args === "string" && args.startsWith(tooLong)
    ? failed("invalid", "ArgumentsTooLarge", `The arguments are longer than ${maxArguments} characters; not executed.`)
    : undefined

/** A sub-agent that may not be called from here. */
export const misplaced = ({ agent }: SubAgent, { tree }: Attempt): Settled | undefined => {
  const refusal = Tree.refusal(tree, agent.name)
  return refusal && failed("invalid", refusal.error, refusal.message)
}

/** The tool asks another agent than the one whose Run it had begun; of one that goes on as another nobody could say who did what. */
export const swapped = ({ wire }: AgentTool, was: string): Settled =>
  failed("invalid", "ToolDrift", `ToolDrift: ${wire} asks another agent now; ${was}, whom it had asked, was stopped.`)

/** There is no such tool (any more). */
export const unknown = ({ name, status, wireName }: Call, { agent }: Attempt): Settled => {
  if (status === "approved") {
    return failed("invalid", "ToolDrift", `ToolDrift: the tool ${name} does not exist any more; not executed.`)
  }
  const names = agent.tools.map((tool) => tool.wire)
  const near = names
    .map((candidate) => ({ candidate, distance: distance(wireName, candidate) }))
    .filter((entry) => entry.distance <= Math.max(2, wireName.length / 3))
    .toSorted((a, b) => a.distance - b.distance)
    .map((entry) => entry.candidate)
  const hint = near.length > 0 ? `Did you mean ${near.slice(0, 3).join(" or ")}? ` : ""
  return failed("invalid", "UnknownTool", `There is no tool ${wireName}. ${hint}Tools: ${names.join(", ") || "none"}.`)
}

/** The arguments do not fit: never valid JSON, not what the schema says, or not any more what it says (RI-123). */
export const mismatch = (call: Call, tool: AgentTool, error: unknown): Settled => {
  if (typeof parsed(call.arguments) === "string") {
    return failed(
      "invalid",
      "InvalidArguments",
      `The arguments of ${tool.wire} are not valid JSON; not executed. Send one JSON object.`
    )
  }
  if (call.status === "approved") {
    return failed(
      "invalid",
      "ToolDrift",
      `ToolDrift: ${tool.wire} takes other arguments now; not executed. ${ToolResult.messageOf(error)}`
    )
  }
  return failed(
    "invalid",
    "InvalidArguments",
    `The arguments of ${tool.wire} do not fit; not executed. ${ToolResult.messageOf(error)}`
  )
}

/** Some adapters hand arguments over as text: whole JSON is read, anything else stays text and fails (RI-104). */
export const parsed = (args: unknown): unknown => {
  if (typeof args !== "string") return args
  try {
    const value: unknown = JSON.parse(args)
    return typeof value === "object" && value !== null ? value : args
  } catch {
    return args
  }
}

/** Levenshtein's edit distance. */
const distance = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const substitute = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(substitute, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}
