/**
 * Decides whether an answer counts: one decision per call, by compare-and-set, bound to what was asked.
 *
 * Invariants
 *   A1  A duplicate of the decision is a success; another one is AlreadyDecided, in every status (RI-043).
 *   A2  An answer about other arguments, about no call, or about another Run's call changes nothing (RI-022).
 *   A3  Presence counts, not truth: false, 0 and "" are values (RI-105).
 *   A4  Only who may answer is heard (MayAnswer).
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { Agent } from "./Agent.ts"
import { boundedStore } from "./Bounded.ts"
import type { CheckpointStore, StoreError } from "./CheckpointStore.ts"
import { canonical } from "./Digest.ts"
import { type ReadError, readEvents } from "./Journal.ts"
import * as MayAnswer from "./MayAnswer.ts"
import { type Seen, storeTime } from "./Outside.ts"
import { AlreadyDecided, AnswerInvalid, ApprovalExpired, DigestMismatch, NotPending, RunTerminal } from "./RunError.ts"
import * as RunEvent from "./RunEvent.ts"
import type { Answer, Draft, Wait } from "./RunEvent.ts"
import { type Decision, type Deferred, empty, evolveHead, isTerminal } from "./RunHead.ts"
import * as Text from "./Text.ts"
import * as ToolResult from "./ToolResult.ts"

export interface Input {
  readonly runId: string
  readonly callId: string
  /** Of a sub-agent's call: the call ids from the root down to it, as its wait has them. `runId` is the root's. */
  readonly path?: ReadonlyArray<string>
  readonly answer: Answer
  /** Who answers; recorded. */
  readonly by: string
}

export type Refusal =
  | NotPending
  | AlreadyDecided
  | DigestMismatch
  | ApprovalExpired
  | AnswerInvalid
  | MayAnswer.Refusal
  | RunTerminal
  | ReadError
  | StoreError

/** The event of an answer; none if the same was decided before. */
export const decide = (
  agent: Agent,
  input: Input,
  seen: Seen
): Effect.Effect<ReadonlyArray<Draft>, Refusal, CheckpointStore> =>
  Effect.gen(function* () {
    const { answer, by, callId, runId } = input
    const call = { runId, callId }
    const { head } = seen
    const path = RunEvent.check({ _tag: "CallAnswered", callId, answer, by })
    if (path !== undefined)
      return yield* new AnswerInvalid({ ...call, issues: `${path} is missing or of the wrong type` })
    const wait = head.waits.find(({ id, path }) => id === callId && path === undefined)
    // A request that its call did not wait for ends with its Run.
    const deferred = isTerminal(head) ? undefined : head.deferred.find(({ id }) => id === callId)
    const open: Wait | Deferred | undefined = wait ?? deferred
    if (open === undefined) return yield* decided(input, seen)
    if (!fits(answer, wait?.kind ?? "approval")) return yield* new NotPending(call)
    const bound =
      answer._tag === "Approve" || answer._tag === "Deny" || ("digest" in answer && answer.digest !== undefined)
    if (bound && answer.digest !== open.digest) return yield* new DigestMismatch(call)
    if (open.expiresAt !== undefined && open.expiresAt <= storeTime(seen)) return yield* new ApprovalExpired(call)
    yield* MayAnswer.check(input, seen, wait?.kind ?? "approval")
    const narrow = narrowed(answer, wait === undefined)
    if (narrow !== undefined) return yield* new AnswerInvalid({ ...call, issues: narrow })
    const checked = yield* check(agent, open.name ?? "", answer).pipe(
      Effect.mapError(
        (error) => new AnswerInvalid({ ...call, issues: ToolResult.describe(ToolResult.messageOf(error)) })
      )
    )
    return [{ _tag: "CallAnswered", callId, answer: clean(checked), by }]
  })

/** Why edited arguments cannot be approved so: they stand for one call that has not run. */
const narrowed = (answer: Answer, isDeferred: boolean): string | undefined => {
  if (answer._tag !== "Approve" || answer.edited === undefined) return undefined
  if (isDeferred) return "the call has its result already, so its arguments cannot be edited"
  return answer.scope === "run" ? "edited arguments are approved for this call only" : undefined
}

/** Well-formed, and no longer than what the model may be shown of a refusal. */
const clean = (answer: Answer): Answer => {
  switch (answer._tag) {
    case "Value":
    case "TakeResult":
      return { ...answer, value: ToolResult.toJson(answer.value) }
    case "Deny":
    case "TellFailed":
      return { ...answer, reason: Text.head(Text.wellFormed(answer.reason), ToolResult.maxError) }
    default:
      return answer
  }
}

const fits = ({ _tag }: Answer, kind: Wait["kind"]): boolean =>
  kind === "approval"
    ? _tag === "Approve" || _tag === "Deny"
    : kind === "external"
      ? _tag === "Value"
      : _tag === "RunAgain" || _tag === "TakeResult" || _tag === "TellFailed"

/** Nothing of that id waits: was it decided, did the Run end, or did it never ask? */
const decided = (
  { answer, callId, runId }: Input,
  { entry, head }: Seen
): Effect.Effect<ReadonlyArray<Draft>, Refusal, CheckpointStore> =>
  Effect.gen(function* () {
    const decision = head.decisions[callId] ?? (yield* journaled(runId, callId, entry.seq))
    if (decision !== undefined) {
      if (canonical(decision) === canonical(answer)) return []
      return yield* new AlreadyDecided({ runId, callId, decision: ToolResult.toJson(decision) })
    }
    if (isTerminal(head)) return yield* new RunTerminal({ runId, status: head.status })
    return yield* new NotPending({ runId, callId })
  })

/** The last decision about a call of an earlier turn. */
const journaled = (
  runId: string,
  callId: string,
  seq: number
): Effect.Effect<Decision | undefined, ReadError, CheckpointStore> =>
  Effect.gen(function* () {
    let head = empty
    let found: Decision | undefined
    yield* readEvents(yield* boundedStore, runId, {
      after: 0,
      seq,
      each: ({ event }) => {
        head = evolveHead(head, event)
        found = head.decisions[callId] ?? found
      }
    })
    return found
  })

/** A value must be one of the tool's success schema, edited arguments ones of its parameters. */
const check = (agent: Agent, name: string, answer: Answer): Effect.Effect<Answer, unknown> => {
  const tool = agent.tools.find((tool) => tool.name === name)
  if (tool === undefined) return Effect.succeed(answer)
  switch (answer._tag) {
    case "Approve":
      return answer.edited === undefined ? Effect.succeed(answer) : Effect.as(tool.decode(answer.edited), answer)
    case "Value":
    case "TakeResult":
      return Effect.as(tool.decodeSuccess(answer.value), answer)
    default:
      return Effect.succeed(answer)
  }
}
