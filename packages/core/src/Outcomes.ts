/**
 * Reads from a state how its Run ended or what it rests for.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { defined } from "./Defined.ts"
import * as Finish from "./Finish.ts"
import type { AgentOutput } from "./AgentOutput.ts"
import type { Outcome, StoredOutcome, Waiting } from "./Outcome.ts"
import {
  CheckpointCorrupt,
  type EmptyResponse,
  FatalReason,
  type ModelRefusal,
  type ModelRejected,
  OutputInvalid,
  type Poisoned,
  Retryable,
  type RetryableFor,
  type ToolFatal
} from "./RunError.ts"
import type { Wait } from "./RunEvent.ts"
import type { RunState } from "./RunState.ts"
import type { Head } from "./RunHead.ts"

/** Why a Run failed. */
export type Failure = ModelRejected | ModelRefusal | OutputInvalid | EmptyResponse | Poisoned | ToolFatal

/** Everything that a resting Run waits for; `state` adds the arguments of the calls. */
export const waiting = ({ paused, retry, waits }: Head, state?: RunState): ReadonlyArray<Waiting> => [
  ...waits.map((wait) => waitingCall(wait, state)),
  ...(paused === undefined
    ? []
    : [{ id: "paused", kind: "paused" as const, since: paused.since, reason: `paused by ${paused.by}` }]),
  ...(retry === undefined
    ? []
    : [
        {
          id: "retry",
          kind: "retry" as const,
          since: retry.since,
          reason: retry.failure.message,
          wakeAt: retry.wakeAt,
          count: retry.count
        }
      ])
]

const waitingCall = ({ digest, kind, ...wait }: Wait, state: RunState | undefined): Waiting => {
  const call = wait.path === undefined ? state?.calls.find(({ callId }) => callId === wait.id) : undefined
  const known = { ...wait, ...(call === undefined ? undefined : { arguments: call.arguments }) }
  return kind === "in-doubt" ? { ...known, kind, ...defined({ digest }) } : { ...known, kind, digest: digest ?? "" }
}

const decodeReason = Schema.decodeUnknownEffect(Schema.toCodecJson(FatalReason))

/** The Outcome of a Run that ended or rests, its output as its agent's type; a failed one fails with its reason. */
export const of = (
  runId: string,
  state: RunState,
  output: AgentOutput | undefined
): Effect.Effect<Outcome<unknown>, Failure | CheckpointCorrupt> => {
  const { head, outcome } = state
  const totals = { usage: head.usage, turns: head.turn }
  switch (outcome?._tag) {
    case undefined:
      return Effect.succeed({ _tag: "Suspended", waiting: waiting(head, state), ...totals })
    case "Completed":
      return typed(runId, outcome, output).pipe(Effect.map((output) => ({ ...outcome, output, ...totals })))
    case "Stopped":
    case "Cancelled":
      return Effect.succeed({ ...outcome, ...totals })
    case "Failed":
      return decodeReason(outcome.error).pipe(
        Effect.mapError(() => new CheckpointCorrupt({ runId, seq: state.seq, path: "$.outcome.error" })),
        // A Failed outcome is only ever written from these reasons, by Finish.
        Effect.flatMap((reason) => Effect.fail(reason as Failure))
      )
  }
}

/** Another version of the agent may have another schema than the one that was answered to. */
const typed = (
  runId: string,
  { attempts = 1, output }: Extract<StoredOutcome, { readonly _tag: "Completed" }>,
  schema: AgentOutput | undefined
): Effect.Effect<unknown, OutputInvalid> =>
  Effect.mapError(
    schema === undefined
      ? typeof output === "string"
        ? Effect.succeed(output)
        : Effect.fail("the Run completed with more than text, and its agent has no output schema")
      : schema.decode(output),
    (issues) => new OutputInvalid({ runId, attempts, issues })
  )

/** A Run that has just come to rest after a failure of its model is an error that says when to come back. */
export const resting = (
  runId: string,
  { head }: RunState
): RetryableFor<"ModelUnavailable" | "ModelTimeout"> | undefined => {
  // What waits for a person is worth more than an error that says when to come back.
  if (head.retry === undefined || head.paused !== undefined || head.waits.length > 0) return undefined
  const { failure, wakeAt } = head.retry
  const reason = Finish.retryReason(runId, failure)
  return new Retryable({ reason, wakeAt }) as RetryableFor<"ModelUnavailable" | "ModelTimeout">
}
