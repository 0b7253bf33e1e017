/**
 * Answers what would be put to a person where nobody is there to be asked: with an error that says so, never silently
 * (RI-074).
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { Agent } from "./Agent.ts"
import type { AgentTool } from "./AgentTool.ts"
import type { CheckpointStore } from "./CheckpointStore.ts"
import type { ReadError } from "./Journal.ts"
import * as Route from "./Route.ts"
import type { Draft, Wait } from "./RunEvent.ts"
import { isEnding, type RunState } from "./RunState.ts"
import type { Tree } from "./Tree.ts"

const reasonOf = (reason: string | undefined): string =>
  reason === undefined ? "no approver" : `no approver: ${reason}`

/** The same drafts, with a refusal in place of each question. */
export const refused = (
  { denies }: Pick<Tree, "denies">,
  drafts: ReadonlyArray<Draft>,
  verdict: "Deny" | "Stop"
): ReadonlyArray<Draft> =>
  denies
    ? drafts.map((draft) =>
        draft._tag === "ApprovalRequested" && draft.mode === undefined
          ? { _tag: "VerdictGiven", guard: draft.guard, on: draft.callId, verdict, message: reasonOf(draft.reason) }
          : draft
      )
    : drafts

/** A refusal of a call whose result would come from outside. */
export const external = (callId: string): Draft => ({
  _tag: "VerdictGiven",
  guard: "core",
  on: callId,
  verdict: "Deny",
  message: reasonOf("nobody is there to give its result")
})

/**
 * What becomes of questions that were put to a person while there was one: they are refused by the Run that asked, and those
 * above it go on. What became of a call in doubt is asked all the same.
 */
export const withdrawn = (
  agent: Agent,
  runId: string,
  state: RunState,
  denies = false
): Effect.Effect<ReadonlyArray<Draft>, ReadError, CheckpointStore> =>
  Effect.gen(function* () {
    const { paused, waits } = state.head
    if (paused !== undefined || isEnding(state)) return []
    // Most trees ask always: then nothing is read.
    const some = denies || [agent, ...Route.below([agent])].some(({ tools }) => tools.some(isAlone))
    const drafts: Array<Draft> = []
    for (const wait of some ? waits : []) {
      if (wait.kind === "in-doubt") continue
      const { id, path } = wait
      const [callId] = path ?? []
      if (!denies && !(yield* Route.toolsAlong(agent, runId, path ?? [])).some(isAlone)) continue
      drafts.push(path === undefined || callId === undefined ? denied(wait) : { _tag: "ChildWoken", callId, id, path })
    }
    return drafts
  }).pipe(Effect.catchTag("CheckpointCorrupt", () => Effect.succeed([]))) // to drive it says so

const isAlone = (tool: AgentTool | undefined): boolean => tool?.child?.approvals === "deny"

const denied = ({ guard = "core", id, kind, name, reason }: Wait): Draft =>
  kind === "external"
    ? external(id)
    : { _tag: "VerdictGiven", guard, on: id, verdict: name === "" ? "Stop" : "Deny", message: reasonOf(reason) }
