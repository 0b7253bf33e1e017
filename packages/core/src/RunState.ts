/**
 * Folds the events of a Run into its state. `evolve` is the only thing that changes state, and nothing that matters
 * lives elsewhere: a Run resumed in another process trips its limits at the same step (RI-032).
 *
 * Invariants
 *   S1  The state is `events.reduce(evolve)`; the same events give the same state.
 *   S2  A duplicate fact changes nothing but `seq`.
 *   S3  Results enter history only when the last call of the reply has one, as one message in call order, so every
 *       history is provider-valid whatever order the events had.
 *   S4  A user's message enters history only at TurnStarted.
 *   S5  `evolve` is O(1) in the length of the Run.
 *
 * @since 0.1.0
 */
import type * as Schema from "effect/Schema"
import { activity, type ActiveTime } from "./ActiveTime.ts"
import * as Blame from "./Blame.ts"
import * as Calls from "./Calls.ts"
import type { Call } from "./Calls.ts"
import { History } from "./History.ts"
import * as Messages from "./Messages.ts"
import * as Author from "./Author.ts"
import type { StopReason, StoredOutcome } from "./Outcome.ts"
import type { Content, Failure, LimitChanges, Principal, RejectKind, RunEvent, ToolRecord } from "./RunEvent.ts"
import { empty as emptyHead, evolveHead, type Head, isDuplicate, stepId } from "./RunHead.ts"
import { defined } from "./Defined.ts"

export interface InboxItem {
  readonly id: string
  readonly content: Content
  /** `user`, `guard:<name>` or `runtime`. */
  readonly from: string
}

/** A guard's question about the next model call. */
export interface StepAsk {
  readonly id: string
  readonly guard: string
}

export interface RunState extends ActiveTime, Blame.Blame {
  readonly seq: number
  readonly head: Head
  readonly task: Content
  readonly principal?: Principal
  readonly tools: { readonly [name: string]: ToolRecord }
  readonly plugins: ReadonlyArray<string>
  readonly history: History
  readonly calls: ReadonlyArray<Call>
  readonly inbox: ReadonlyArray<InboxItem>
  /** Shown with the next request only. */
  readonly feedback?: string
  /** The reply that would complete the Run. */
  readonly answer?: { readonly text: string; readonly output?: Schema.Json; readonly attempts?: number }
  /** Whom the last Turn asked first. */
  readonly author?: Author.Author
  readonly consecutiveFailures: number
  readonly rejections: { readonly [Kind in RejectKind]: number }
  readonly rests: number
  readonly recoveries: number
  /** The count limit that asked for a final answer, and whether the model has given it. */
  readonly final?: { readonly reason: StopReason; readonly done: boolean }
  readonly failure?: Failure
  readonly fatal?: Schema.Json
  readonly stopReason?: StopReason
  readonly stepAsk?: StepAsk
  /** Guards whose ask about the next Step was approved, and guards that nudged it. */
  readonly stepPassed: ReadonlyArray<string>
  readonly stepNudged: ReadonlyArray<string>
  readonly limits?: LimitChanges
  readonly forkedFrom?: { readonly runId: string; readonly seq: number }
  /** What stands for the turns before `head.compacted.throughTurn`. */
  readonly summary?: string
  readonly outcome?: StoredOutcome
}

const noRejections = { empty: 0, truncated: 0, output: 0, protocol: 0 }

export const empty = (): RunState => ({
  seq: 0,
  head: emptyHead,
  task: "",
  tools: {},
  plugins: [],
  history: History.empty(),
  calls: [],
  inbox: [],
  consecutiveFailures: 0,
  rejections: noRejections,
  rests: 0,
  recoveries: 0,
  activeMs: 0,
  stepPassed: [],
  stepNudged: []
})

/** The state after one more event. */
export const evolve = (state: RunState, event: RunEvent): RunState => {
  const seq = state.seq + 1
  if (isDuplicate(state.head, event)) return { ...state, seq }
  return change({ ...state, seq, head: evolveHead(state.head, event), ...activity(state, event) }, event)
}

export const fromEvents = (events: Iterable<RunEvent>): RunState => {
  let state = empty()
  for (const event of events) state = evolve(state, event)
  return state
}

/** The call of the current reply with that id. */
export const callOf = (state: RunState, callId: string): Call | undefined =>
  state.calls.find((call) => call.callId === callId)

/** True if nothing may be started any more. */
export const isEnding = (state: RunState): boolean =>
  state.head.cancelled !== undefined || state.stopReason !== undefined || state.fatal !== undefined

const change = (state: RunState, event: RunEvent): RunState => {
  switch (event._tag) {
    case "RunAccepted":
      return runAccepted(state, event)
    case "RunStarted":
      return { ...state, tools: event.tools, plugins: event.plugins }
    case "ToolsChanged":
      return { ...state, tools: event.tools }
    case "AttemptStarted":
      return attemptStarted(state, event)
    case "TurnStarted":
      return turnStarted(state, event)
    case "TurnCompleted":
      return turnCompleted({ ...state, rests: 0, recoveries: 0 }, event)
    case "TurnFailed":
      return { ...state, failure: event.failure }
    case "VerdictGiven":
      return verdictGiven(state, event)
    case "MessageReceived":
      return {
        ...state,
        calls: state.calls.map(Calls.superseded),
        inbox: [...state.inbox, { id: event.id, content: event.content, from: "user" }]
      }
    case "RunSuspended":
      return event.retry === undefined ? state : { ...state, rests: event.retry.count }
    case "RunReopened":
      return reopened(state, event)
    case "RunFinished":
      return { ...state, outcome: event.outcome }
    case "RunForked":
      return { ...omit(state, "failure"), recoveries: 0, forkedFrom: event.from }
    case "CompactionCompleted":
      return { ...omit(state, "failure"), ...defined({ summary: event.summary }) }
    default:
      return callChange(state, event)
  }
}

/** What happens to a single call of the current reply, or to an ask about the next Step. */
const callChange = (state: RunState, event: RunEvent): RunState => {
  switch (event._tag) {
    case "ToolCallStarted":
      return patch(state, event.callId, (call) => Calls.started(call, event))
    case "ToolCallCompleted":
      return toolCallCompleted(state, event)
    case "ApprovalRequested":
      if (event.mode === "tell-model") return state
      return event.callId === stepId(state.head.turn + 1)
        ? { ...state, stepAsk: { id: event.callId, guard: event.guard } }
        : patch(state, event.callId, (call) => ({
            ...call,
            status: "asked",
            ...defined({ reservations: event.reservations })
          }))
    case "ExternalRequested":
      return patch(state, event.callId, (call) => ({ ...call, status: "external" }))
    case "CallInDoubt":
      return patch(state, event.callId, (call) => ({ ...call, status: "in-doubt" }))
    case "CallRequeued":
      return patch(state, event.callId, (call) => ({ ...call, status: "approved" }))
    case "CallAnswered":
      return answered(state, event)
    case "WaitExpired":
      return event.callId === state.stepAsk?.id
        ? denied(state, "nobody answered in time")
        : patch(state, event.callId, Calls.expired)
    case "ChildSuspended":
      return patch(state, event.callId, ({ woken, ...call }) =>
        woken === true
          ? { ...call, status: "approved" }
          : { ...call, status: "child", waits: event.waits, ...defined({ retry: event.retry }) }
      )
    case "ChildWoken":
      return patch(state, event.callId, (call) =>
        call.status === "child"
          ? { ...call, status: "approved" }
          : call.status === "started"
            ? { ...call, woken: true }
            : call
      )
    default:
      return state
  }
}

const patch = (state: RunState, callId: string, f: (call: Call) => Call): RunState => ({
  ...state,
  calls: state.calls.map((call) => (call.callId === callId ? f(call) : call))
})

const omit = <K extends keyof RunState>(state: RunState, ...keys: ReadonlyArray<K>): RunState => {
  const copy = { ...state }
  for (const key of keys) delete copy[key]
  return copy
}

type EventOf<Tag extends RunEvent["_tag"]> = Extract<RunEvent, { readonly _tag: Tag }>

const runAccepted = (state: RunState, event: EventOf<"RunAccepted">): RunState => ({
  ...state,
  task: event.task,
  history: state.history.append(Messages.user(event.task)),
  ...defined({ principal: event.principal })
})

const attemptStarted = (state: RunState, event: EventOf<"AttemptStarted">): RunState => ({
  ...(state.head.retry === undefined ? omit(state, "failure") : state),
  calls: state.calls.map((call) => Calls.due(call, event.at)),
  plugins: event.plugins ?? state.plugins,
  recoveries: event.recovered ? state.recoveries + 1 : state.recoveries
})

const turnStarted = (state: RunState, event: EventOf<"TurnStarted">): RunState => {
  let history = state.history
  for (const { content } of state.inbox) history = history.append(Messages.user(content))
  return {
    ...omit(state, "failure", "answer", "stepAsk", "final", "blamed"),
    author: Author.named(event),
    history,
    inbox: [],
    stepPassed: [],
    stepNudged: [],
    ...(event.final === undefined ? undefined : { final: { reason: Blame.named(state, event.final), done: false } })
  }
}

const turnCompleted = (state: RunState, event: EventOf<"TurnCompleted">): RunState => {
  const { finish, rejected, reply, turn } = event
  const calls = Calls.requested(reply, turn, state.tools, (id) => state.history.has(id))
  const base = {
    ...state,
    ...(finish === "content-filter" ? { stopReason: { _tag: "ContentFiltered" } as const } : undefined),
    ...(state.final === undefined ? undefined : { final: { ...state.final, done: true } })
  }
  const kept = calls.length > 0 || (rejected?.kind !== "empty" && rejected?.kind !== "truncated")
  const next = kept ? withReply(base, event, calls) : base
  if (rejected !== undefined) return reject(next, event, rejected)
  const accepted = { ...omit(next, "feedback"), rejections: noRejections }
  if (calls.length > 0 && whyNotRun(state, event) === undefined) return accepted
  const output =
    event.output === undefined ? undefined : { output: event.output, attempts: state.rejections.output + 1 }
  return { ...accepted, answer: { text: Messages.textOf(reply), ...output } }
}

/** The reply enters history; calls that must not run have their result already. */
const withReply = (state: RunState, event: EventOf<"TurnCompleted">, calls: ReadonlyArray<Call>): RunState => {
  const author = { ...state.author, ...Author.named(event.tries?.at(-1)) }
  const message = Messages.assistant(event.reply, calls, author)
  const ids = calls.map((call) => call.wireId)
  const why = whyNotRun(state, event)
  return {
    ...state,
    history: message === undefined ? state.history : state.history.append(message, ids),
    calls: why === undefined ? calls : calls.map((call) => Calls.notExecuted(call, why))
  }
}

const whyNotRun = (state: RunState, { finish, rejected }: EventOf<"TurnCompleted">): string | undefined => {
  if (finish === "length")
    return "The reply was cut off at the output limit, so none of its calls was run. Write less at once."
  if (finish === "content-filter") return "The reply was stopped by a content filter; not executed."
  if (state.final !== undefined) return "This was the last turn; no tool can run any more."
  return rejected === undefined
    ? undefined
    : `The reply was not accepted, so its calls were not run: ${rejected.feedback}`
}

const reject = (
  state: RunState,
  event: EventOf<"TurnCompleted">,
  { feedback, kind }: NonNullable<EventOf<"TurnCompleted">["rejected"]>
): RunState => {
  const rejections = { ...state.rejections, [kind]: state.rejections[kind] + 1 }
  if (kind === "empty" || kind === "truncated") return { ...state, rejections, feedback }
  const item = { id: `${stepId(event.turn)}:runtime`, content: feedback, from: "runtime" }
  return { ...state, rejections, inbox: [...state.inbox, item] }
}

/** Endings that say something about how well the model calls. */
const counting: ReadonlySet<string> = new Set(["executed", "reconciled", "invalid", "refused", "unknown"])

const toolCallCompleted = (state: RunState, event: EventOf<"ToolCallCompleted">): RunState => {
  const calls = state.calls.map((call) => (call.callId === event.callId ? Calls.completed(call, event) : call))
  const counts = counting.has(event.ending)
  const base = {
    ...state,
    recoveries: 0,
    rests: 0,
    consecutiveFailures: counts ? (event.isFailure ? state.consecutiveFailures + 1 : 0) : state.consecutiveFailures,
    ...defined({ fatal: event.fatal }),
    ...Blame.after(state, event)
  }
  if (calls.some((call) => call.status !== "completed")) return { ...base, calls }
  return { ...base, calls: [], history: state.history.append(Messages.tool(Calls.results(calls))) }
}

const answered = (state: RunState, event: EventOf<"CallAnswered">): RunState => {
  const ask = state.stepAsk
  if (ask?.id !== event.callId) return patch(state, event.callId, (call) => Calls.answered(call, event))
  if (event.answer._tag === "Deny") return denied(state, `denied by ${event.by}: ${event.answer.reason}`)
  return { ...omit(state, "stepAsk"), stepPassed: [...state.stepPassed, ask.guard] }
}

const denied = (state: RunState, message: string): RunState => ({
  ...omit(state, "stepAsk"),
  stopReason: { _tag: "Denied", guard: state.stepAsk?.guard ?? "", message }
})

const verdictGiven = (state: RunState, event: EventOf<"VerdictGiven">): RunState => {
  const message = event.message ?? ""
  switch (event.verdict) {
    case "Stop":
      return {
        ...state,
        stopReason: event.stop ? Blame.named(state, event.stop) : { _tag: "Denied", guard: event.guard, message }
      }
    case "Nudge": {
      const item = { id: `${event.on}:${event.guard}`, content: message, from: `guard:${event.guard}` }
      return { ...state, inbox: [...state.inbox, item], stepNudged: [...state.stepNudged, event.guard] }
    }
    case "Deny":
      return patch(state, event.on, (call) => Calls.refused(call, event.guard, message))
    default:
      return state
  }
}

const reopened = (state: RunState, event: EventOf<"RunReopened">): RunState => ({
  ...omit(state, "outcome", "stopReason", "fatal", "failure", "final", "feedback", "stepAsk", "answer"),
  consecutiveFailures: 0,
  rests: 0,
  recoveries: 0,
  rejections: noRejections,
  ...(event.limits === undefined ? undefined : { limits: { ...state.limits, ...event.limits } })
})
