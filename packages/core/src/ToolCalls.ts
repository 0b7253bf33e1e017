/**
 * Takes the calls of a reply: judges all of them in call order, then runs the ones that may run.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Approval from "./Approval.ts"
import { type Attempt, limitsOf, toolOf } from "./Attempt.ts"
import type { Call } from "./Calls.ts"
import * as ChildRun from "./ChildRun.ts"
import * as InvalidCall from "./InvalidCall.ts"
import type { Halted } from "./Interruption.ts"
import type { JournalError } from "./Journal.ts"
import type { Draft } from "./RunEvent.ts"
import type { RunState } from "./RunState.ts"
import * as Judge from "./Judge.ts"
import * as ToolResult from "./ToolResult.ts"
import * as ToolCall from "./ToolCall.ts"
import * as Unattended from "./Unattended.ts"
import { defined } from "./Defined.ts"

type Planned =
  | { readonly _tag: "Run"; readonly ready: ToolCall.Ready }
  /** What happens instead of running it. */
  | { readonly _tag: "Note"; readonly drafts: ReadonlyArray<Draft> }

/** Judges and runs. Comes back early if anything else came first; `Step.next` then knows what is left. */
export const perform = Effect.fnUntraced(function* (
  attempt: Attempt,
  calls: ReadonlyArray<Call>
): Effect.fn.Return<void, JournalError | Halted> {
  const { journal } = attempt
  const ready: Array<ToolCall.Ready> = []
  for (const call of calls) {
    const planned = yield* plan(attempt, call, ready)
    if (planned._tag === "Run") {
      ready.push(planned.ready)
      continue
    }
    // What a call is asked or told is made of digests and answers of guards, and meanwhile somebody may have cancelled.
    for (const draft of planned.drafts) if (!(yield* journal.put(draft, { still: goesOn }))) return
    if (journal.state.stopReason !== undefined) return
  }
  for (const group of grouped(ready, attempt.agent.concurrency)) {
    const parallel = group.length > 1
    const run = (one: ToolCall.Ready) =>
      one.tool.child === undefined
        ? ToolCall.run(attempt, { ...one, parallel })
        : ChildRun.run(attempt, one, one.tool.child)
    if (parallel) yield* Effect.forEach(group, run, { concurrency: attempt.agent.concurrency, discard: true })
    else for (const one of group) if (!(yield* run(one))) return
  }
})

const goesOn = ({ head }: RunState): boolean => head.cancelled === undefined

/** Serial calls are groups of one; a sequential tool's call never shares a group. */
const grouped = (
  ready: ReadonlyArray<ToolCall.Ready>,
  concurrency: number
): ReadonlyArray<ReadonlyArray<ToolCall.Ready>> => {
  if (concurrency === 1) return ready.map((one) => [one])
  const groups: Array<Array<ToolCall.Ready>> = []
  let open = false
  for (const one of ready) {
    const last = groups.at(-1)
    if (last !== undefined && open && !one.tool.sequential) last.push(one)
    else groups.push([one])
    open = !one.tool.sequential
  }
  return groups
}

const plan = Effect.fnUntraced(function* (
  attempt: Attempt,
  call: Call,
  ready: ReadonlyArray<ToolCall.Ready>
): Effect.fn.Return<Planned, JournalError | Halted> {
  if (call.settled !== undefined && call.status === "settled") return note(completed(call, call.settled))
  // A sub-agent that had begun is ended first: nobody else would (CH3).
  const refused = (settled: InvalidCall.Settled) =>
    call.child === undefined
      ? Effect.succeed(note(completed(call, settled)))
      : Effect.map(ChildRun.end(attempt, call, settled), note)
  const invalid = InvalidCall.beyond(call, limitsOf(attempt)) ?? InvalidCall.tooLarge(call)
  if (invalid !== undefined) return yield* refused(invalid)
  const tool = toolOf(attempt, call.name)
  if (call.child !== undefined && tool?.child === undefined) return note(yield* ChildRun.end(attempt, call))
  if (tool === undefined) return note(completed(call, InvalidCall.unknown(call, attempt)))
  const deep = tool.child && InvalidCall.misplaced(tool.child, attempt)
  if (deep !== undefined) return yield* refused(deep)
  const was = call.child && tool.child && (yield* ChildRun.swapped(attempt, call, tool.child))
  if (was !== undefined) return yield* refused(InvalidCall.swapped(tool, was))
  const decoded = yield* Effect.result(tool.decode(InvalidCall.parsed(call.arguments)))
  if (Result.isFailure(decoded)) return yield* refused(InvalidCall.mismatch(call, tool, decoded.failure))
  const asked = { call, tool, arguments: decoded.success, ahead: ready.map((one) => one.call) }
  if (call.status !== "approved") return yield* judged(attempt, asked)
  let { reservations } = call
  if (call.edited === true && call.starts === 0) {
    const again = yield* Judge.edited(attempt, asked)
    if (again._tag === "Hold") return { _tag: "Note", drafts: again.drafts }
    if (again.reservations !== undefined) reservations = { ...reservations, ...again.reservations }
  }
  if (tool.external) return yield* outside(attempt, call)
  const kept = defined({ reservations })
  return { _tag: "Run", ready: { call, tool, arguments: decoded.success, parallel: false, ...kept } }
})

/** True if the user said something that the model has not seen yet. */
const spoken = ({ journal }: Attempt): boolean => journal.state.inbox.some((item) => item.from === "user")

/** Its result comes from outside. */
const outside = (attempt: Attempt, call: Call): Effect.Effect<Planned> => {
  if (spoken(attempt)) return Effect.succeed(note(completed(call, InvalidCall.superseded)))
  const { callId, name } = call
  if (attempt.tree.denies) return Effect.succeed(note(Unattended.external(callId)))
  return Effect.map(Approval.digestOf(call), (digest) => note({ _tag: "ExternalRequested", callId, name, digest }))
}

const judged = Effect.fnUntraced(function* (
  attempt: Attempt,
  asked: Judge.Asked
): Effect.fn.Return<Planned, JournalError | Halted> {
  const { journal } = attempt
  const { arguments: decoded, call, tool } = asked
  const verdict = yield* Judge.call(attempt, asked)
  if (verdict._tag === "Hold") {
    const asks = verdict.drafts.some((draft) => draft._tag === "ApprovalRequested")
    return asks && spoken(attempt)
      ? note(completed(call, InvalidCall.superseded))
      : { _tag: "Note", drafts: Unattended.refused(attempt.tree, verdict.drafts, "Deny") }
  }
  if (verdict.drafts.length > 0) {
    do {
      for (const draft of verdict.drafts) yield* journal.put(draft)
    } while (!(yield* journal.commit))
    attempt.judged.set(call.callId, { ...verdict, drafts: [] }) // written once, however often the call is looked at
  }
  if (tool.external) return yield* outside(attempt, call)
  const { reservations } = verdict
  return {
    _tag: "Run",
    ready: { call, tool, arguments: decoded, parallel: false, ...(reservations && { reservations }) }
  }
})

const note = (draft: Draft): Planned => ({ _tag: "Note", drafts: [draft] })

/** The event of a call that gets a result without being run. */
export const completed = ({ callId, name }: Call, settled: InvalidCall.Settled): Draft => ({
  _tag: "ToolCallCompleted",
  callId,
  name,
  ...ToolResult.bound(settled),
  ending: settled.ending,
  ...defined({ error: settled.error })
})
