/**
 * Asks the guards what becomes of a question before it is put to a person.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { Attempt } from "./Attempt.ts"
import { defined } from "./Defined.ts"
import * as Guard from "./Guard.ts"
import type { Halted } from "./Interruption.ts"
import type { JournalError } from "./Journal.ts"

type Asking = Extract<Guard.Verdict, { readonly _tag: "Ask" }>

/** What the guards make of a question; the strictest of their rulings counts where none grants it. */
export const ruled = Effect.fnUntraced(function* (
  { journal, plugins, stoppable }: Attempt,
  proposal: Guard.Proposal,
  question: Guard.Question
): Effect.fn.Return<{ readonly guard: string; readonly ruling: Guard.Ruling }, JournalError | Halted> {
  let strictest: { readonly guard: string; readonly ruling: Guard.Ruling } = { guard: "", ruling: { _tag: "Wait" } }
  let expiresAt = question.expiresAt ?? Number.POSITIVE_INFINITY
  for (const [i, { name: guard, rule }] of plugins.guards.entries()) {
    const memory = journal.memory[i]
    if (rule === undefined || memory === Guard.brokenMemory) continue
    const asked = Effect.suspend(() => {
      const ruling = rule({ state: journal.state, memory, proposal }, question)
      return Effect.isEffect(ruling) ? ruling : Effect.succeed(ruling)
    })
    const ruling = yield* stoppable.run(
      "guard",
      Effect.catchCause(asked, () => Effect.succeed<Guard.Ruling>({ _tag: "Wait" }))
    )
    if (ruling._tag === "Granted" && proposal._tag === "Call" && question.once !== true) return { guard, ruling }
    if (ruling._tag === "TellModel" && proposal._tag === "Call") strictest = { guard, ruling }
    if (ruling._tag !== "Granted") expiresAt = Math.min(expiresAt, ruling.expiresAt ?? expiresAt)
  }
  const until = Number.isFinite(expiresAt) ? { expiresAt } : undefined
  return { ...strictest, ruling: { ...strictest.ruling, ...until } }
})

/** The question that a guard's Ask is. */
export const questionOf = (guard: string, { expiresAt, once, reason }: Asking, digest: string): Guard.Question => ({
  guard,
  reason,
  digest,
  ...defined({ expiresAt, once })
})

/** A question that nobody grants. */
export interface Open {
  readonly question: Guard.Question
  readonly ruling: Exclude<Guard.Ruling, { readonly _tag: "Granted" }>
}

/** What becomes of several questions about one call: they wait if one does, and end with the first. */
export const together = (open: readonly [Open, ...ReadonlyArray<Open>]): Open["ruling"] => {
  const rulings = open.map(({ ruling }) => ruling)
  const strictest =
    rulings.find(({ _tag }) => _tag === "Wait") ??
    rulings.find((ruling) => ruling._tag === "TellModel" && ruling.open !== true) ??
    open[0].ruling
  const expiresAt = Math.min(...rulings.map((ruling) => ruling.expiresAt ?? Number.POSITIVE_INFINITY))
  return Number.isFinite(expiresAt) ? { ...strictest, expiresAt } : strictest
}
