/**
 * Decides in core what needs a person: tools that say `needsApproval`, and explicitly Destructive ones while no
 * permissions guard is there to decide it.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { AgentTool } from "./AgentTool.ts"
import type { Call } from "./Calls.ts"
import { sha256 } from "./Digest.ts"
import * as Guard from "./Guard.ts"
import type { RunState } from "./RunState.ts"

/** The name under which core asks. */
export const guardName = "core"

/** What an approval is bound to: the call's name and arguments (RI-022). */
export const digestOf = (call: Pick<Call, "name" | "arguments">): Effect.Effect<string> =>
  sha256([call.name, call.arguments])

/** What an ask about the next model call is bound to. */
export const stepDigest = (guard: string, turn: number, reason: string): Effect.Effect<string> =>
  sha256([guard, turn, reason])

/** What an answer about a call in doubt is bound to: which start of it. */
export const doubtDigest = (call: Call): Effect.Effect<string> => sha256([call.key ?? call.callId, call.starts])

interface Question {
  readonly tool: AgentTool
  readonly call: Call
  readonly arguments: unknown
  readonly state: RunState
  /** A permissions guard decides about destructive tools. */
  readonly permissions: boolean
}

/** Core's own verdict about a call. A rule that fails or throws asks. */
export const judge = (question: Question): Guard.Verdict | Effect.Effect<Guard.Verdict> => {
  const { call, permissions, state, tool } = question
  const { needsApproval } = tool.tool
  if (needsApproval === true) return needed(tool)
  if (typeof needsApproval !== "function") return destructive(tool, permissions)
  const context = { toolCallId: call.callId, messages: state.history.slice() }
  return Effect.suspend(() => {
    const answer = needsApproval(question.arguments, context)
    return Effect.isEffect(answer) ? answer : Effect.succeed(answer)
  }).pipe(
    Effect.map((yes) => (yes ? needed(tool) : destructive(tool, permissions))),
    Effect.catchDefect(() => Effect.succeed(Guard.ask(`the approval rule of ${tool.name} failed`)))
  )
}

const needed = ({ name }: AgentTool): Guard.Verdict => Guard.ask(`${name} needs approval`)

const destructive = (tool: AgentTool, permissions: boolean): Guard.Verdict =>
  permissions || tool.effect === "readonly" || !tool.destructive
    ? Guard.allow
    : Guard.ask(`${tool.name} is destructive`)
