/**
 * A person who answers for calls in doubt, and knows the world outside: it happened and gave this, or it did not.
 */
import { Run, type RunEvent } from "@waystone/core"
import * as Effect from "effect/Effect"
import type { Job } from "./Job.ts"
import * as Ledger from "./Ledger.ts"
import { patient } from "./Patient.ts"
import * as Subject from "./Subject.ts"

/** Answers all of a Run's; says how many. */
export const answer = Effect.fnUntraced(function* (job: Job & { readonly runId: string }) {
  const { runId } = job
  // A worker that dies at once leaves no Run.
  const waiting = yield* patient(Run.get(runId)).pipe(
    Effect.map((info) => info.waiting.filter(({ kind }) => kind === "in-doubt")),
    Effect.catchIf(
      ({ reason }) => reason._tag === "RunNotFound",
      () => Effect.succeed([])
    )
  )
  for (const { id } of waiting) {
    const done = Ledger.read(job.ledger).find(({ key }) => key === `${runId}/${id}`)
    const answer: RunEvent.Answer =
      done === undefined ? { _tag: "RunAgain" } : { _tag: "TakeResult", value: { receipt: Ledger.receipt(done.item) } }
    yield* patient(Run.answer(Subject.agent(job), { runId, callId: id, answer, by: "person" }))
  }
  return waiting.length
})
