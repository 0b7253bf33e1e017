/**
 * Settles calls that were started and have no result: their process died, or they were stopped.
 *
 * Invariants
 *   R1  A completed call is never run again.
 *   R2  An idempotent call is run again with the same key; an unsafe one is reconciled, or waits in doubt. Never silent.
 *   R3  After a cancel or a stop no call is run again: reconciled once, else its outcome is unknown.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Approval from "./Approval.ts"
import { type Attempt, toolOf } from "./Attempt.ts"
import type { Call } from "./Calls.ts"
import * as ChildRun from "./ChildRun.ts"
import { within } from "./Interruption.ts"
import type { JournalError } from "./Journal.ts"
import type { Draft } from "./RunEvent.ts"
import * as Reconcile from "./Reconcile.ts"
import { isEnding } from "./RunState.ts"
import { sanitized } from "./ToolCall.ts"
import { completed } from "./ToolCalls.ts"
import * as ToolResult from "./ToolResult.ts"
import { defined } from "./Defined.ts"

/** Settles each call; comes back early if an outside event came first. */
export const perform = Effect.fnUntraced(function* (
  attempt: Attempt,
  calls: ReadonlyArray<Call>
): Effect.fn.Return<void, JournalError> {
  for (const call of calls) if (!(yield* attempt.journal.put(yield* verdict(attempt, call)))) return
})

const verdict = (attempt: Attempt, call: Call): Effect.Effect<Draft, JournalError> =>
  Effect.gen(function* () {
    const ending = isEnding(attempt.journal.state)
    const { callId, name } = call
    // In a fork the key is another one, so there even an idempotent call is not simply run again.
    if (call.child !== undefined && call.status === "started" && ending) return yield* ChildRun.end(attempt, call)
    const again = call.effect === "idempotent" && call.status === "started" && !ending
    if (again) return { _tag: "CallRequeued", callId, because: "idempotent" }
    const known = yield* ask(attempt, call)
    switch (known._tag) {
      case "Done":
        return yield* reconciled(attempt, call, known.result)
      case "NeverStarted":
        return ending
          ? completed(call, { ending: "cancelled", isFailure: true, result: { error: "Cancelled; not executed." } })
          : { _tag: "CallRequeued", callId, because: "never-started" }
      case "Unknown":
        return ending
          ? completed(call, unknown)
          : { _tag: "CallInDoubt", callId, name, digest: yield* Approval.doubtDigest(call) }
    }
  })

/** What the model is told where nobody knows. */
export const unknown = {
  ending: "unknown",
  isFailure: true,
  result: { error: "Outcome unknown: it had started and may have happened." }
} as const

/** How long a tool may take to say what became of a call. It is asked after a cancel too, so nothing else stops it. */
const longest = Duration.seconds(30)

const ask = (attempt: Attempt, call: Call): Effect.Effect<Reconcile.Reconciled, JournalError> => {
  const reconcile = Reconcile.find(attempt.context, call.name)
  if (reconcile === undefined) return Effect.succeed({ _tag: "Unknown" })
  const { journal } = attempt
  const input = { key: call.key ?? "", arguments: call.arguments }
  const silent = Effect.succeed({ _tag: "Unknown" } as const)
  const asked = Effect.catchDefect(
    within(
      Effect.suspend(() => reconcile(input)),
      longest,
      silent
    ),
    () => silent
  )
  return Effect.andThen(journal.owes ? journal.commit : Effect.void, asked)
}

const reconciled = (attempt: Attempt, call: Call, result: unknown): Effect.Effect<Draft> => {
  const tool = toolOf(attempt, call.name)
  if (tool === undefined) return Effect.succeed(completed(call, unknown))
  const decoded = Effect.catch(tool.decode(call.arguments), () => Effect.succeed(call.arguments))
  const clean = Effect.flatMap(decoded, (args) =>
    sanitized(attempt, { call, tool, arguments: args }, ToolResult.success(tool, result))
  )
  return Effect.map(clean, (output) => ({
    _tag: "ToolCallCompleted",
    callId: call.callId,
    name: call.name,
    ...ToolResult.bound(output),
    ending: "reconciled",
    ...defined({ modelOutput: output.modelOutput })
  }))
}

/** A fork starts with calls in doubt that its original had started; where the original's key can tell, nobody is asked. */
export const settleForked = Effect.fnUntraced(function* (attempt: Attempt): Effect.fn.Return<void, JournalError> {
  const { context, journal } = attempt
  if (journal.state.forkedFrom === undefined || journal.state.head.attempts > 1) return
  const doubtful = journal.state.calls.filter((call) => call.status === "in-doubt")
  for (const call of doubtful.filter((call) => Reconcile.find(context, call.name) !== undefined)) {
    const draft = yield* verdict(attempt, call)
    if (draft._tag !== "CallInDoubt") yield* journal.put(draft)
  }
})
