/**
 * Runs one tool call: start event, interceptors, time limit, handler, retries, result event.
 *
 * Invariants
 *   L1  ToolCallStarted of a call with effects is committed before its handler starts.
 *   L2  A finished call with effects is in the journal's hands before anything can interrupt it.
 *   L3  An unsafe call is never run twice by us.
 *   L4  Whatever a handler does, its call has a result and the Run goes on; only `Fatal` ends it.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schedule from "effect/Schedule"
import type * as Tool from "effect/ai/Tool"
import type { AgentTool } from "./AgentTool.ts"
import { type Attempt, leaseMillis } from "./Attempt.ts"
import type { Call } from "./Calls.ts"
import { type Halt, ifFails, within } from "./Interruption.ts"
import type { JournalError } from "./Journal.ts"
import type { ToolOutput } from "./Interceptor.ts"
import { Fatal, type OwnershipLost, ToolFatal } from "./RunError.ts"
import { check, type Draft, type Ending, type Reservations } from "./RunEvent.ts"
import { isEnding, type RunState } from "./RunState.ts"
import { ToolContext } from "./ToolContext.ts"
import * as ToolResult from "./ToolResult.ts"
import { defined } from "./Defined.ts"

/** A call that may run. */
export interface Ready {
  readonly call: Call
  readonly tool: AgentTool
  /** Decoded. */
  readonly arguments: unknown
  readonly reservations?: Reservations
  /** Others run beside it, so a finished effect is committed at once, by itself. */
  readonly parallel: boolean
}

/** The waits before the second and third try of a call that says it may succeed later. */
const retries = Schedule.exponential("1 second", 2).pipe(Schedule.upTo({ times: 2 }))

/** Runs one call. False if it may not start, or not yet: ask `Step.next`. */
export const run = (attempt: Attempt, ready: Ready): Effect.Effect<boolean, JournalError> =>
  Effect.uninterruptibleMask((restore) => masked(attempt, ready, restore))

const masked = Effect.fnUntraced(function* (
  attempt: Attempt,
  ready: Ready,
  restore: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
): Effect.fn.Return<boolean, JournalError> {
  if (!(yield* restore(start(attempt, ready)))) return false
  const startedAt = attempt.now()
  if (isEnding(attempt.journal.state)) return yield* finish(attempt, ready, { output: cancelled, startedAt })
  const { lately } = attempt.stoppable
  lately.add(ready.tool.name)
  attempt.publish({ _tag: "CallStarted", callId: ready.call.callId, name: ready.call.name })
  const done: Done = {}
  const exit = yield* Effect.exit(restore(attempt.stoppable.run("tool", execute(attempt, ready, done))))
  lately.add(ready.tool.name)
  if (Exit.isSuccess(exit)) return yield* finish(attempt, ready, { output: exit.value, startedAt })
  // It was stopped; what it had finished by then counts all the same (L2).
  const finished = done.settle === undefined ? undefined : yield* sanitized(attempt, ready, done.settle)
  const halted = exit.cause.reasons.some((reason) => Cause.isFailReason(reason) && reason.error._tag === "Halted")
  const output = finished ?? (halted ? stopped(ready.tool) : undefined)
  const kept = output === undefined ? false : yield* finish(attempt, ready, { output, startedAt })
  // An interceptor that interrupted itself is no interruption of ours; one of ours goes on where this region ends.
  return halted || finished !== undefined ? kept : yield* Effect.failCause(lost(exit.cause))
})

/** What the last try's handler has given back, whatever happens to the fiber that waits for it. */
interface Done {
  settle?: Effect.Effect<ToolOutput>
}

/** A halt is no failure of the loop; a lost lease is one, and an interruption goes on. */
const lost = (cause: Cause.Cause<Halt>): Cause.Cause<OwnershipLost> =>
  Cause.fromReasons(
    cause.reasons.flatMap((reason): ReadonlyArray<Cause.Reason<OwnershipLost>> => {
      if (!Cause.isFailReason(reason)) return [reason]
      return reason.error._tag === "OwnershipLost" ? [Cause.makeFailReason(reason.error)] : []
    })
  )

/** How long the sanitizers of a call that was stopped may take; nothing raw gets past them. */
const sanitizing = Duration.seconds(1)

/** The sanitizers of a call that was stopped between its handler and them, or reconciled, may not be left out. */
export const sanitized = (
  attempt: Attempt,
  ready: Omit<Ready, "parallel">,
  settle: Effect.Effect<ToolOutput>
): Effect.Effect<ToolOutput> => {
  const whole = Effect.map(
    intercepted(attempt, ready, (stage) => stage === "sanitize", settle),
    ToolResult.clean
  )
  const lost = Effect.succeed<ToolOutput>({
    isFailure: false,
    result: "executed, output unavailable: it was interrupted"
  })
  return attempt.plugins.interceptors.length === 0
    ? settle
    : Effect.catchCause(within(whole, sanitizing, lost), () => lost)
}

/** The call may still start: nothing came in between that forbids it. */
export const still =
  ({ callId, status }: Call) =>
  (state: RunState): boolean =>
    !isEnding(state) &&
    state.head.paused === undefined &&
    state.calls.some((call) => call.callId === callId && call.status === status)

const start = (attempt: Attempt, { call, reservations, tool }: Ready): Effect.Effect<boolean, JournalError> => {
  const { journal, runId } = attempt
  if (tool.effect === "readonly") {
    return Effect.suspend(() =>
      Effect.map(journal.owes ? journal.commit : Effect.void, () => still(call)(journal.state))
    )
  }
  const started: Draft = {
    _tag: "ToolCallStarted",
    callId: call.callId,
    name: call.name,
    effect: tool.effect,
    key: `${runId}/${call.callId}`,
    ...(call.edited === true ? { arguments: ToolResult.toJson(call.arguments) } : undefined),
    ...defined({ reservations })
  }
  const commit = journal.put(started, { commit: true, still: still(call) })
  return tool.effect === "unsafe" ? Effect.andThen(enoughLease(attempt), commit) : commit
}

/** An owner that may be taken over in the middle of an effect renews first. */
const enoughLease = ({ lease }: Attempt): Effect.Effect<void, JournalError> =>
  Effect.suspend(() => (lease.left() < leaseMillis / 3 ? lease.renew : Effect.void))

/** What came of the handler, beyond its output. */
interface Executed extends ToolOutput {
  readonly tries: number
}

const execute = (attempt: Attempt, ready: Ready, done: Done): Effect.Effect<Executed> =>
  Effect.suspend(() => {
    let tries = 0
    const one = Effect.suspend(() =>
      intercepted(attempt, ready, (stage) => stage !== "trace", once(attempt, ready, { try: ++tries, done }))
    )
    const repeatable = ready.tool.effect !== "unsafe"
    const retried = repeatable
      ? one.pipe(
          Effect.flatMap((output) => (output.kind === "retry" ? Effect.fail(output) : Effect.succeed(output))),
          (outcome) => ifFails(outcome, Effect.retry(retries)),
          Effect.catch(Effect.succeed)
        )
      : one
    const whole = intercepted(attempt, ready, (stage) => stage === "trace", retried)
    // What an interceptor made is not known to be JSON.
    const clean = attempt.plugins.interceptors.length === 0 ? whole : Effect.map(whole, ToolResult.clean)
    return clean.pipe(
      Effect.catchDefect((defect) => Effect.succeed(broken(defect))), // of an interceptor: a handler's is caught in `once`
      Effect.map((output) => ({ ...output, tries }))
    )
  })

const intercepted = (
  { plugins, runId }: Attempt,
  { arguments: decoded, call: { callId, name, starts }, tool: { effect, openWorld } }: Omit<Ready, "parallel">,
  applies: (stage: string) => boolean,
  output: Effect.Effect<ToolOutput>
): Effect.Effect<ToolOutput> =>
  plugins.interceptors.length === 0
    ? output
    : plugins.interceptors.reduceRight(
        (next, { stage, tool: wrap }) =>
          wrap === undefined || !applies(stage)
            ? next
            : wrap({ runId, callId, name, start: starts + 1, effect, openWorld, arguments: decoded }, next),
        output
      )

/** One execution of the handler; total. */
const once = (
  attempt: Attempt,
  ready: Ready,
  { done, try: count }: { readonly try: number; readonly done: Done }
): Effect.Effect<ToolOutput> => {
  const { tool } = ready
  delete done.settle // of the try before: it says nothing about this one
  const timeout = Effect.sync(() => timedOut(tool))
  const kept = Effect.onExit(handler(attempt, ready, count), (exit) =>
    Effect.sync(() => {
      if (Exit.isSuccess(exit)) done.settle = ToolResult.success(tool, exit.value)
      else if (!Cause.hasInterruptsOnly(exit.cause)) done.settle = failed(tool, exit.cause)
    })
  )
  const handled = Effect.flatMap(kept, (value) => ToolResult.success(tool, value))
  const ended = Effect.catchCause(within(handled, tool.timeout, timeout), (cause) => failed(tool, cause))
  // It may have ended in the moment that it was given to end.
  return Effect.flatMap(ended, (output) =>
    output.error === "Timeout" ? (done.settle ?? Effect.succeed(output)) : Effect.succeed(output)
  )
}

const handler = (
  { context, journal, plugins, publish, runId }: Attempt,
  { arguments: decoded, call: { callId, name }, tool: { effect, openWorld, tool } }: Ready,
  count: number
): Effect.Effect<unknown, unknown> => {
  const { head, principal } = journal.state
  const { session } = head
  const handler: Tool.Handler<string> = context.mapUnsafe.get(tool.id)
  const own: ToolContext = {
    runId,
    callId,
    idempotencyKey: `${runId}/${callId}`,
    turn: head.turn,
    try: count,
    ...defined({ principal, session })
  }
  const info = { runId, callId, name, effect, openWorld }
  const preliminary = (value: unknown) =>
    Effect.sync(() => {
      const shown = plugins.interceptors.reduceRight(
        (next, { progress }) => (progress === undefined ? next : progress(info, next)),
        value
      )
      publish({ _tag: "ToolProgress", callId, value: shown })
    }).pipe(Effect.catchDefect(() => Effect.void)) // what no sanitizer has seen is shown to nobody
  return Effect.updateContext(
    Effect.suspend(() => handler.handler(decoded, { toolCallId: callId, preliminary })),
    (input: Context.Context<never>) => Context.add(Context.merge(handler.context, input), ToolContext, own)
  )
}

const timedOut = ({ effect, name, retryTimeout, timeout }: AgentTool): ToolOutput => {
  const limit = `${name} did not finish within ${Duration.format(timeout)}`
  const message = effect === "unsafe" ? `${limit}; outcome: unknown, it may have happened` : limit
  const kind: ToolOutput["kind"] = effect === "unsafe" ? "unknown" : retryTimeout ? "retry" : undefined
  return { ...ToolResult.errorOutput(message, "Timeout"), ...defined({ kind }) }
}

/** A cancel came in with the commit of the start. */
const cancelled: ToolOutput = {
  ...ToolResult.errorOutput("Cancelled; not executed.", "Cancelled"),
  kind: "interrupted"
}

const stopped = ({ effect, name }: AgentTool): ToolOutput =>
  effect === "readonly"
    ? { ...ToolResult.errorOutput(`${name} was interrupted`, "Interrupted"), kind: "interrupted" }
    : { ...ToolResult.errorOutput(`${name} was interrupted; outcome: unknown`, "Interrupted"), kind: "unknown" }

/** A handler that interrupts itself has failed; of an unsafe one nobody knows how far it came. */
const selfInterrupted = (tool: AgentTool): ToolOutput =>
  tool.effect === "readonly" ? ToolResult.errorOutput(`${tool.name} interrupted itself`, "Interrupted") : stopped(tool)

const broken = (defect: unknown): ToolOutput =>
  ToolResult.errorOutput(ToolResult.messageOf(defect), ToolResult.tagOf(defect))

const failed = (tool: AgentTool, cause: Cause.Cause<unknown>): Effect.Effect<ToolOutput> => {
  // By itself: where we interrupt it, nothing after it runs.
  if (Cause.hasInterruptsOnly(cause)) return Effect.succeed(selfInterrupted(tool))
  const reason = cause.reasons.find(Cause.isFailReason)
  if (reason === undefined) return Effect.succeed(broken(Cause.squash(cause)))
  const { error } = reason
  switch (ToolResult.kindOf(error)) {
    case "failure":
      return ToolResult.failure(tool, error)
    case "retry":
      return Effect.succeed({ ...broken(error), kind: "retry" })
    case "fatal":
      return Effect.succeed(fatal(tool, error))
  }
}

/** The tool's own Fatal, as the Run's. */
const fatal = (tool: AgentTool, error: unknown): ToolOutput => {
  const own = error instanceof Fatal && error.reason instanceof ToolFatal ? error.reason : undefined
  const message = own?.detail ?? ToolResult.messageOf(error)
  const data = own?.data === undefined ? undefined : { data: own.data }
  const reason = { _tag: "ToolFatal", tool: tool.name, detail: ToolResult.describe(message), ...data }
  return { ...ToolResult.errorOutput(message, "Fatal"), kind: "fatal", fatal: reason }
}

const finish = (
  { journal, plugins }: Attempt,
  { call, parallel, tool }: Ready,
  { output, startedAt }: { readonly output: ToolOutput & { readonly tries?: number }; readonly startedAt: number }
): Effect.Effect<boolean, JournalError> => {
  const completed: Completed = {
    _tag: "ToolCallCompleted",
    callId: call.callId,
    name: call.name,
    ...ToolResult.bound(output),
    ending: endingOf(output),
    ...(tool.effect === "readonly" ? { startedAt } : undefined),
    ...(output.tries === undefined || output.tries === 1 ? undefined : { tries: output.tries }),
    ...defined({ error: output.error, modelOutput: output.modelOutput, fatal: output.fatal })
  }
  const draft = plugins.interceptors.length === 0 ? completed : storable(completed)
  return journal.put(draft, { commit: parallel && tool.effect !== "readonly" })
}

type Completed = Extract<Draft, { readonly _tag: "ToolCallCompleted" }>

/** An interceptor may have made something that no reader would take; the effect happened all the same. */
const storable = (draft: Completed): Completed => {
  if (check(draft) === undefined) return draft
  const { _tag, callId, ending, fatal, isFailure, name, startedAt } = draft
  const came = ending === "unknown" ? "outcome: unknown" : ending
  const result = `${came}, output unavailable: an interceptor made it unreadable`
  const plain = {
    _tag,
    callId,
    name,
    ending,
    isFailure: isFailure === true,
    result,
    ...defined({ startedAt })
  } as const
  const whole = { ...plain, ...defined({ fatal }) }
  return check(whole) === undefined ? whole : plain
}

const endingOf = ({ kind }: ToolOutput): Ending =>
  kind === "unknown" ? "unknown" : kind === "interrupted" ? "cancelled" : "executed"
