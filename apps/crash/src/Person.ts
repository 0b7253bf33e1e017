/**
 * A person who approves, answers for calls in doubt, and knows the world outside: it happened and gave this, or it did not.
 */
import { Run, type RunEvent } from "@waystone/core"
import * as Effect from "effect/Effect"
import type { Job } from "./Job.ts"
import * as Ledger from "./Ledger.ts"
import { patient } from "./Patient.ts"
import * as Subject from "./Subject.ts"

/** Answers all of a Run's, and of those below it; says how many were in doubt. */
export const answer = Effect.fnUntraced(function* (job: Job & { readonly runId: string }) {
  const { runId } = job
  // A worker that dies at once leaves no Run.
  const waiting = yield* patient(Run.get(runId)).pipe(
    Effect.map((info) => info.waiting),
    Effect.catchIf(
      ({ reason }) => reason._tag === "RunNotFound",
      () => Effect.succeed([])
    )
  )
  for (const { digest = "", id, kind, path = [] } of waiting) {
    const key = `${[runId, ...path].join(".")}/${id}`
    const said: RunEvent.Answer = kind === "approval" ? { _tag: "Approve", digest } : became(job, key)
    const where = path.length === 0 ? undefined : { path }
    yield* patient(Run.answer(Subject.agent(job), { runId, callId: id, ...where, answer: said, by: "person" }))
  }
  return waiting.filter(({ kind }) => kind === "in-doubt").length
})

const became = ({ ledger }: Job, key: string): RunEvent.Answer => {
  const done = Ledger.read(ledger).find((one) => one.key === key)
  return done === undefined
    ? { _tag: "RunAgain" }
    : { _tag: "TakeResult", value: { receipt: Ledger.receipt(done.item) } }
}
