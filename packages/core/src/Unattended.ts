/**
 * Answers what would be put to a person where nobody is there to be asked: with an error that says so, never silently
 * (RI-074).
 *
 * @since 0.1.0
 */
import type { Draft } from "./RunEvent.ts"
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
