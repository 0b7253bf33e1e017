/**
 * Commits that a Run waits, and for what.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { Attempt } from "./Attempt.ts"
import type { Call } from "./Calls.ts"
import { defined } from "./Defined.ts"
import type { Journal, JournalError } from "./Journal.ts"
import type { Draft, Failure, Retry } from "./RunEvent.ts"

const minute = 60_000
/** How long a Run rests after a model failed, the last one for every further rest (SPEC 2). */
const restMillis = [minute, 5 * minute, 30 * minute, 60 * minute] as const

/** True if the Run rests now; false if something came first. */
export const perform = (
  { journal, wall }: Attempt,
  failure: Failure | undefined
): Effect.Effect<boolean, JournalError> => {
  if (failure === undefined) {
    const retry = below(journal.state.calls)
    return rested(journal, { _tag: "RunSuspended", ...defined({ retry }) })
  }
  const { rests } = journal.state
  const rest = Math.max(restMillis[Math.min(rests, 3)] ?? minute, failure.retryAfterMs ?? 0)
  const retry = { wakeAt: wall() + rest, count: rests + 1, failure }
  return rested(journal, { _tag: "RunSuspended", retry })
}

/** The rest of the sub-agent that can go on first. */
const below = (calls: ReadonlyArray<Call>): Retry | undefined =>
  calls
    .flatMap(({ retry, status }) => (status === "child" && retry !== undefined ? [retry] : []))
    .toSorted((a, b) => a.wakeAt - b.wakeAt)[0]

/** An append whose answer was lost has landed, but what came after it may have ended the wait. */
const rested = (journal: Journal, suspended: Draft): Effect.Effect<boolean, JournalError> =>
  Effect.map(journal.put(suspended, { commit: true }), (made) => made && journal.state.head.status === "waiting")
