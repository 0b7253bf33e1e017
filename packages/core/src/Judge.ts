/**
 * Asks the guards about a model call or a tool call, and says what their Verdicts mean for the journal.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { AgentTool } from "./AgentTool.ts"
import * as Approval from "./Approval.ts"
import type { Attempt, Going, Judged } from "./Attempt.ts"
import type { Call } from "./Calls.ts"
import { defined } from "./Defined.ts"
import * as Guard from "./Guard.ts"
import type { Halted } from "./Interruption.ts"
import type { JournalError } from "./Journal.ts"
import type { StopReason } from "./Outcome.ts"
import * as RunEvent from "./RunEvent.ts"
import { stepId } from "./RunHead.ts"
import * as Request from "./Request.ts"
import { type Open, questionOf, ruled, together } from "./Ruling.ts"
import * as Text from "./Text.ts"

/** One guard's verdict. What is finished is committed first if the guard takes time (SPEC 6). */
const asked = (
  { journal, stoppable }: Attempt,
  guard: string,
  check: () => Guard.Verdict | Effect.Effect<Guard.Verdict>
): Effect.Effect<Guard.Judgement, JournalError | Halted> =>
  Effect.suspend(() => {
    const verdict = check()
    if (!Effect.isEffect(verdict)) return Effect.succeed(judgement(guard, verdict))
    const flush = journal.owes ? journal.commit : Effect.void
    const total = Effect.catchCause(verdict, () => Effect.succeed(broken(guard))) // if it interrupts itself, too
    return Effect.map(Effect.andThen(flush, stoppable.run("guard", total)), (verdict) => judgement(guard, verdict))
  }).pipe(Effect.catchDefect(() => Effect.succeed({ guard, verdict: broken(guard) })))

/** What is no Verdict, or has a note or a reason that cannot be journaled, comes from a broken guard. */
const judgement = (guard: string, verdict: Guard.Verdict): Guard.Judgement => {
  if (!Guard.isVerdict(verdict)) return { guard, verdict: broken(guard) }
  if (verdict === Guard.allow || (verdict._tag === "Allow" && isPlain(verdict))) return { guard, verdict }
  const drafts = [{ _tag: "VerdictGiven", guard, on: "", ...said(verdict) } as const, ...promised(guard, verdict)]
  const odd = drafts.some((draft) => RunEvent.check(draft) !== undefined)
  if (odd) return { guard, verdict: broken(guard) }
  return { guard, verdict: verdict._tag === "Ask" ? { ...verdict, reason: bounded(verdict.reason) } : verdict }
}

/** An Allow with counts alone, as a budget gives one at each call, is not looked at through the schemas. */
const isPlain = ({ final, maxOutputTokens: tokens = 1, maxPaidTries = 1, note, reservation = {} }: Allow): boolean =>
  final === undefined &&
  note === undefined &&
  Object.getPrototypeOf(reservation) === Object.prototype &&
  [tokens, maxPaidTries, ...Object.values(reservation)].every((count) => Number.isFinite(count) && count > 0)

type Allow = Extract<Guard.Verdict, { readonly _tag: "Allow" }>

/** What a Verdict puts into later events, as one of them. */
const promised = (guard: string, verdict: Guard.Verdict): ReadonlyArray<RunEvent.Draft> => {
  if (verdict._tag === "Ask") {
    return [
      {
        _tag: "ApprovalRequested",
        callId: "",
        name: "",
        digest: "",
        guard,
        ...defined({ expiresAt: verdict.expiresAt })
      }
    ]
  }
  if (verdict._tag !== "Allow") return []
  const { final, maxOutputTokens, maxPaidTries, reservation } = verdict
  const settings = defined({ maxOutputTokens })
  const sensible = [maxOutputTokens, maxPaidTries].every((most) => most === undefined || most > 0)
  const reservations = reservation === undefined ? {} : { [guard]: reservation }
  return [
    {
      _tag: "TurnStarted",
      turn: sensible ? 1 : Number.NaN,
      stream: true,
      settings,
      reservations,
      ...defined({ final })
    }
  ]
}

/** What of a Verdict stands in the journal. */
const said = (verdict: Guard.Verdict) => {
  switch (verdict._tag) {
    case "Allow":
      return { verdict: verdict._tag, ...defined({ note: verdict.note }) }
    case "Nudge":
      return { verdict: verdict._tag, message: bounded(verdict.message) }
    case "Stop":
      return { verdict: verdict._tag, message: bounded(verdict.message), ...defined({ stop: verdict.stop }) }
    default:
      return { verdict: verdict._tag, message: bounded(verdict.reason) }
  }
}

const bounded = (message: string): string =>
  typeof message === "string" ? Text.head(Text.wellFormed(message), 2000) : message

const broken = (guard: string): Guard.Verdict => Guard.deny(`the guard ${guard} failed`)

/** All guards in order. */
const judge = (
  attempt: Attempt,
  proposal: Guard.Proposal
): Effect.Effect<ReadonlyArray<Guard.Judgement>, JournalError | Halted> => {
  const { journal, plugins } = attempt
  return Effect.forEach(plugins.guards, (guard, i) =>
    asked(attempt, guard.name, () => {
      const memory = journal.memory[i]
      return memory === Guard.brokenMemory
        ? broken(guard.name)
        : guard.check({ state: journal.state, memory, proposal })
    })
  )
}

/** Before a model call. */
export const step = Effect.fnUntraced(function* (
  attempt: Attempt,
  callModel: Extract<Guard.Proposal, { readonly _tag: "Step" }>["step"]
): Effect.fn.Return<Judged, JournalError | Halted> {
  if (attempt.plugins.guards.length === 0) return { _tag: "Go", drafts: [] }
  const { head, stepNudged, stepPassed } = attempt.journal.state
  const on = stepId(head.turn + 1)
  const told = (guard: string, verdict: Guard.Verdict) =>
    (verdict._tag === "Nudge" && stepNudged.includes(guard)) || (verdict._tag === "Ask" && stepPassed.includes(guard))
  const proposal = { _tag: "Step", step: callModel, request: Request.about(attempt) } as const
  const judgements = (yield* judge(attempt, proposal)).map((judgement) =>
    told(judgement.guard, judgement.verdict) ? { guard: judgement.guard, verdict: Guard.allow } : judgement
  )
  const worst = Guard.strictest(judgements)
  if (worst === undefined) return go(judgements, on)
  const { guard, verdict } = worst
  if (verdict._tag === "Ask") {
    const { reason } = verdict
    const digest = yield* Approval.stepDigest(guard, head.turn + 1, reason)
    const { ruling } = yield* ruled(attempt, proposal, questionOf(guard, verdict, digest))
    const until = ruling._tag === "Granted" ? undefined : defined({ expiresAt: ruling.expiresAt })
    const asked: RunEvent.Draft = { _tag: "ApprovalRequested", callId: on, name: "", digest, guard, reason, ...until }
    return { _tag: "Hold", drafts: [asked] }
  }
  if (verdict._tag !== "Nudge") return { _tag: "Hold", drafts: [verdictGiven(worst, on, true)] }
  // What the model is told makes the request longer, so all are asked again once it stands in the inbox.
  const nudges = judgements.filter((judgement) => judgement.verdict._tag === "Nudge")
  return { _tag: "Hold", drafts: nudges.map((nudge) => verdictGiven(nudge, on, true)) }
})

/** A call that is proposed. */
export interface Asked {
  readonly call: Call
  readonly tool: AgentTool
  /** Decoded. */
  readonly arguments: unknown
  readonly ahead: ReadonlyArray<Call>
}

const allowed: Judged = { _tag: "Go", drafts: [] }

/** Before a tool call that is not decided yet; nobody is asked twice in one Attempt (RI-108). */
export const call = Effect.fnUntraced(function* (
  attempt: Attempt,
  asked: Asked
): Effect.fn.Return<Judged, JournalError | Halted> {
  const { call, tool } = asked
  if (attempt.plugins.guards.length === 0 && !tool.destructive && !tool.tool.needsApproval) return allowed
  const known = attempt.judged.get(call.callId)
  if (known !== undefined) return known
  const judged = yield* judgeCall(attempt, asked)
  attempt.judged.set(call.callId, judged)
  return judged
})

const proposed = ({ journal }: Attempt, { ahead, arguments: decoded, call, tool }: Asked): Guard.Proposal => {
  const record = journal.state.tools[call.name] ?? { digest: "", effect: tool.effect }
  return { _tag: "Call", call, tool: record, arguments: decoded, ahead }
}

const judgeCall = Effect.fnUntraced(function* (
  attempt: Attempt,
  asking: Asked
): Effect.fn.Return<Judged, JournalError | Halted> {
  const { arguments: decoded, call, tool } = asking
  const { state } = attempt.journal
  const permissions = attempt.plugins.guards.some((guard) => guard.stage === "permissions")
  const question = { tool, call, arguments: decoded, state, permissions }
  const own = yield* asked(attempt, Approval.guardName, () => Approval.judge(question))
  const proposal = proposed(attempt, asking)
  const judgements = [own, ...(yield* judge(attempt, proposal))]
  const { callId } = call
  const worst = Guard.strictest(judgements)
  if (worst === undefined || worst.verdict._tag === "Nudge") return go(judgements, callId)
  if (worst.verdict._tag !== "Ask") return { _tag: "Hold", drafts: [verdictGiven(worst, callId, false)] }
  const digest = yield* Approval.digestOf(call)
  const granted: Array<RunEvent.Draft> = []
  const open: Array<Open> = []
  for (const { guard, verdict } of judgements) {
    if (verdict._tag !== "Ask") continue
    const question = questionOf(guard, verdict, digest)
    const { guard: ruler, ruling } = yield* ruled(attempt, proposal, question)
    if (ruling._tag !== "Granted") open.push({ question, ruling })
    else granted.push({ _tag: "VerdictGiven", guard: ruler, on: callId, verdict: "Allow", note: ruling.note })
  }
  const [first, ...others] = open
  const going = go(judgements, callId)
  return first === undefined
    ? { ...going, drafts: [...granted, ...going.drafts] }
    : held({ call, open: [first, ...others], going, granted })
})

interface Held {
  readonly call: Call
  readonly open: readonly [Open, ...ReadonlyArray<Open>]
  /** What the guards that allow it say. */
  readonly going: Going
  readonly granted: ReadonlyArray<RunEvent.Draft>
}

/** One question in the name of all who ask, so that one answer is one to all of them. */
const held = ({ call, going, granted, open }: Held): Judged => {
  const { callId, name } = call
  const [{ question }, ...others] = open
  const { digest, guard } = question
  const ruling = together(open)
  const reasons = others.map(({ question }) => `${question.guard}: ${question.reason}`)
  const asks = {
    _tag: "ApprovalRequested",
    callId,
    name,
    digest,
    guard,
    ...(others.length === 0 ? undefined : { also: others.map(({ question }) => question.guard) }),
    reason: bounded([question.reason, ...reasons].join("; ")),
    ...defined({ expiresAt: ruling.expiresAt })
  } as const
  if (ruling._tag === "Wait") {
    // The guards that allow it are not asked again after the approval: what they reserved is kept with the question.
    return { _tag: "Hold", drafts: [...granted, { ...asks, ...defined({ reservations: going.reservations }) }] }
  }
  const told = { isFailure: true, result: { error: bounded(ruling.message) }, ending: "deferred" } as const
  const request: ReadonlyArray<RunEvent.Draft> = ruling.open === true ? [] : [{ ...asks, mode: "tell-model" }]
  return { _tag: "Hold", drafts: [...granted, ...request, { _tag: "ToolCallCompleted", callId, name, ...told }] }
}

/**
 * What a person approved with other arguments than they were asked about is judged again: a Deny or a Stop of those counts,
 * a further question does not, since the person has just answered it.
 */
export const edited = Effect.fnUntraced(function* (
  attempt: Attempt,
  asking: Asked
): Effect.fn.Return<Judged, JournalError | Halted> {
  const id = `${asking.call.callId} edited`
  const known = attempt.judged.get(id)
  if (known !== undefined) return known
  const judgements = yield* judge(attempt, proposed(attempt, asking))
  const { callId } = asking.call
  const worst = Guard.strictest(judgements.filter(({ verdict }) => verdict._tag !== "Ask"))
  const refused = worst !== undefined && worst.verdict._tag !== "Nudge"
  const judged: Judged = refused
    ? { _tag: "Hold", drafts: [verdictGiven(worst, callId, false)] }
    : go(judgements, callId)
  attempt.judged.set(id, judged)
  return judged
})

const go = (judgements: ReadonlyArray<Guard.Judgement>, on: string): Going => {
  const drafts: Array<RunEvent.Draft> = []
  const reservations: { [guard: string]: { readonly [unit: string]: number } } = {}
  let maxOutputTokens = Number.POSITIVE_INFINITY
  let maxPaidTries = Number.POSITIVE_INFINITY
  let final: StopReason | undefined
  for (const { guard, verdict } of judgements) {
    if (verdict._tag !== "Allow") continue
    if (verdict.note !== undefined)
      drafts.push({ _tag: "VerdictGiven", guard, on, verdict: "Allow", note: verdict.note })
    if (verdict.reservation !== undefined) reservations[guard] = verdict.reservation
    maxOutputTokens = Math.min(maxOutputTokens, verdict.maxOutputTokens ?? maxOutputTokens)
    maxPaidTries = Math.min(maxPaidTries, verdict.maxPaidTries ?? maxPaidTries)
    final ??= verdict.final
  }
  return {
    _tag: "Go",
    drafts,
    ...(Object.keys(reservations).length === 0 ? undefined : { reservations }),
    ...(maxOutputTokens === Number.POSITIVE_INFINITY ? undefined : { maxOutputTokens }),
    ...(maxPaidTries === Number.POSITIVE_INFINITY ? undefined : { maxPaidTries }),
    ...defined({ final })
  }
}

/** A Deny of a Step has no call to refuse: it stops the Run. */
const verdictGiven = ({ guard, verdict }: Guard.Judgement, on: string, isStep: boolean): RunEvent.Draft => {
  const given = { _tag: "VerdictGiven", guard, on, ...said(verdict) } as const
  return verdict._tag === "Deny" && isStep ? { ...given, verdict: "Stop" } : given
}
