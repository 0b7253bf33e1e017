/**
 * Runs one call whose tool is an agent: a Run of its own, driven beside its caller's siblings.
 *
 * Invariants
 *   CH1  ToolCallStarted, with what was set aside, is committed before the Run of the sub-agent exists.
 *   CH2  The id of that Run is made of the caller's and the call's: whoever starts the call again finds it and goes on with it,
 *        and there is never a second one (RI-117).
 *   CH3  A Run that ended has ended all Runs below it first: no work, lease or question is left behind.
 *   CH4  What a Run below it waits for, its caller waits for; how it ended is the call's result, never silent.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Agent from "./Agent.ts"
import { type Attempt, type ChildError, type Driven, leaseMillis, toolOf } from "./Attempt.ts"
import type { Call } from "./Calls.ts"
import { CheckpointStore } from "./CheckpointStore.ts"
import * as ChildOutcome from "./ChildOutcome.ts"
import { defined } from "./Defined.ts"
import type { ToolOutput } from "./Interceptor.ts"
import type { Halt } from "./Interruption.ts"
import type { Settled } from "./InvalidCall.ts"
import type { JournalError } from "./Journal.ts"
import * as Outside from "./Outside.ts"
import { type CheckpointCorrupt, RunExists } from "./RunError.ts"
import type { Draft, Ending, Parent } from "./RunEvent.ts"
import { isTerminal } from "./RunHead.ts"
import { isEnding, type RunState } from "./RunState.ts"
import * as SubAgent from "./SubAgent.ts"
import * as Text from "./Text.ts"
import { type Ready, sanitized, still } from "./ToolCall.ts"
import * as ToolResult from "./ToolResult.ts"

/** Who drove a Run before may hold it until it notices, or until its lease ends. */
const busy = Schedule.spaced("500 millis")
/** After that, somebody is alive who does not notice a cancel: what becomes of the Run is theirs. */
const twoLeases = busy.pipe(Schedule.upTo({ times: (2 * leaseMillis) / 500 }))

/** Runs one call. False if it may not start or could not end: ask `Step.next`. */
export const run = (attempt: Attempt, ready: Ready, child: SubAgent.SubAgent): Effect.Effect<boolean, JournalError> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const { journal } = attempt
      const { call } = ready
      const task = taskOf(child, ready.arguments)
      const told = (output: ToolOutput, ending: Ending) =>
        journal.put(completed(call, { output, ending }), { commit: true })
      if (task === undefined)
        return yield* told(ToolResult.errorOutput("It got no task.", "InvalidArguments"), "invalid")
      const runId = yield* SubAgent.runIdOf(attempt.runId, call.callId)
      if (!(yield* restore(start(attempt, ready, runId)))) return false
      if (isEnding(journal.state)) return false // whoever ends the Run ends this call
      attempt.publish({ _tag: "CallStarted", callId: call.callId, name: call.name })
      const before = begins(attempt, ready, { child, task })
      const lets = () => attempt.draining.begun() || journal.state.head.paused !== undefined
      const drive = Effect.retry(
        attempt.drive({ agent: child.agent, runId, call, before, denies: child.approvals === "deny" }),
        { schedule: busy, while: (error) => isHeld(error) && !lets() }
      )
      const exit = yield* Effect.exit(restore(attempt.stoppable.run("tool", drive)))
      if (Exit.isSuccess(exit)) return yield* ended(attempt, ready, exit.value)
      const refused = exit.cause.reasons.find(Cause.isFailReason)?.error
      if (refused !== undefined && isRefusal(refused)) {
        return yield* told(ToolResult.errorOutput(refused.message, refused._tag), "invalid")
      }
      if (refused?._tag === "CheckpointCorrupt") return yield* told(damaged(refused), "unknown")
      // It let go between two of its steps, since its caller is paused or about to end; or somebody else goes on with it.
      const isLeft = Cause.hasInterruptsOnly(exit.cause) || (refused !== undefined && isHeld(refused))
      if (lets() && isLeft) return false
      if (refused?._tag === "Halted") return false
      return yield* Effect.failCause(journalCause(exit.cause))
    })
  )

/** Held by another owner. Where the caller is superseded as well, its watch notices and halts this. */
const isHeld = (error: ChildError | Halt): boolean =>
  error._tag === "RunBusy" || (error._tag === "OwnershipLost" && error.gone !== true)

type Refusal = Extract<ChildError, { readonly _tag: "RunExists" | "EncodeFailed" | "PluginMissing" }>

const refusals: ReadonlySet<string> = new Set<Refusal["_tag"]>(["RunExists", "EncodeFailed", "PluginMissing"])
const isRefusal = (error: ChildError | Halt): error is Refusal => refusals.has(error._tag)

const journalCause = (cause: Cause.Cause<ChildError | Halt>): Cause.Cause<JournalError> =>
  Cause.fromReasons(
    cause.reasons.flatMap((reason): ReadonlyArray<Cause.Reason<JournalError>> => {
      if (!Cause.isFailReason(reason)) return [reason]
      const { error } = reason
      return error._tag === "Halted" || error._tag === "RunBusy" || isRefusal(error)
        ? []
        : [Cause.makeFailReason(error)]
    })
  )

/** The application's own code, told what a model wrote. */
const taskOf = ({ task }: SubAgent.SubAgent, parameters: unknown): string | undefined => {
  try {
    const text = Text.wellFormed(task(parameters))
    return text.trim() === "" ? undefined : text
  } catch {
    return undefined
  }
}

const start = (
  attempt: Attempt,
  { call, reservations, tool }: Ready,
  runId: string
): Effect.Effect<boolean, JournalError> =>
  attempt.journal.put(
    {
      _tag: "ToolCallStarted",
      callId: call.callId,
      name: call.name,
      effect: tool.effect,
      key: `${attempt.runId}/${call.callId}`,
      child: { runId },
      ...(call.edited === true ? { arguments: ToolResult.toJson(call.arguments) } : undefined),
      ...defined({ reservations })
    },
    { commit: true, still: still(call) }
  )

/** What the Run begins with, if it is not there yet. */
const begins =
  (
    { journal, runId, tree }: Attempt,
    { call, reservations }: Ready,
    { child, task }: { readonly child: SubAgent.SubAgent; readonly task: string }
  ) =>
  (state: RunState): Effect.Effect<ReadonlyArray<Draft>, RunExists> => {
    if (state.head.agent !== "") return Effect.as(isOurs(state, runId, call), [])
    const { name, version } = child.agent
    const parent: Parent = {
      runId,
      callId: call.callId,
      rootId: tree.rootId,
      depth: tree.depth + 1,
      agents: [...tree.agents, name],
      ...defined({ share: reservations })
    }
    const { head, principal } = journal.state
    const { session } = head
    return Effect.succeed([
      { _tag: "RunAccepted", agent: name, version, task, parent, ...defined({ principal, session }) }
    ])
  }

/** Somebody else may have taken that id. */
const isOurs = ({ head }: RunState, runId: string, { callId }: Call): Effect.Effect<void, RunExists> =>
  head.parent?.runId === runId && head.parent.callId === callId
    ? Effect.void
    : Effect.fail(new RunExists({ runId: head.parent?.runId ?? runId }))

/** The Run of the sub-agent ended or rests. */
const ended = Effect.fnUntraced(function* (
  attempt: Attempt,
  ready: Ready,
  driven: Driven
): Effect.fn.Return<boolean, JournalError> {
  const { journal, runId: caller, tree } = attempt
  const { call } = ready
  const { callId } = call
  const runId = yield* SubAgent.runIdOf(caller, callId)
  const { head, outcome } = driven.state
  if (outcome === undefined) {
    const waits = head.waits.map((wait) => ({ ...wait, path: [callId, ...(wait.path ?? [])] }))
    const { since: _, ...retry } = head.retry ?? { since: 0 }
    const rests: Draft = {
      _tag: "ChildSuspended",
      callId,
      runId,
      waits,
      ...("wakeAt" in retry ? { retry } : undefined)
    }
    return yield* journal.put(rests, {
      still: ({ calls }) => calls.some((one) => one.callId === callId && one.status === "started")
    })
  }
  const output = yield* sanitized(attempt, ready, Effect.succeed(ChildOutcome.output(runId, outcome)))
  const made = yield* journal.put(completed(call, { output, driven, runId, ending: "executed" }), { commit: true })
  tree.below.delete(callId)
  return made
})

/** The agent whose Run the call had begun, if it is not the one that its tool asks now. */
export const swapped = (
  attempt: Attempt,
  call: Call,
  { agent }: SubAgent.SubAgent
): Effect.Effect<string | undefined, JournalError> =>
  Effect.gen(function* () {
    const entry = yield* attempt.store.head(yield* SubAgent.runIdOf(attempt.runId, call.callId))
    return entry === undefined || entry.agent === agent.name ? undefined : entry.agent
  }).pipe(Effect.catchTag("CheckpointCorrupt", () => Effect.succeed(undefined))) // to drive it says so

/**
 * Ends the Run of a call whose caller ends, or can no longer go on with it, and says what the call came to: why it cannot go
 * on, if that is given and the Run had not ended by itself.
 */
export const end = Effect.fnUntraced(function* (
  attempt: Attempt,
  call: Call,
  why?: Settled
): Effect.fn.Return<Draft, JournalError> {
  const { journal, runId: caller, store, tree } = attempt
  const runId = yield* SubAgent.runIdOf(caller, call.callId)
  const found = yield* Effect.result(store.head(runId))
  if (Result.isFailure(found)) {
    if (found.failure._tag === "CheckpointCorrupt") return lost(call, found.failure)
    return yield* found.failure
  }
  const entry = found.success
  const never = ToolResult.errorOutput("Cancelled; not executed.", "Cancelled")
  if (entry === undefined) return completed(call, { output: never, ending: "cancelled", ...defined({ why }) })
  const cancel = journal.state.head.cancelled ?? {
    by: `run ${caller}`,
    reason: "the Run that called it ended, or lost its tool"
  }
  const before = (state: RunState): Effect.Effect<ReadonlyArray<Draft>, RunExists> =>
    Effect.as(
      isOurs(state, caller, call),
      state.outcome === undefined && state.head.cancelled === undefined ? [{ _tag: "CancelRequested", ...cancel }] : []
    )
  const known = toolOf(attempt, call.name)?.child?.agent
  const agent = known?.name === entry.agent ? known : Agent.make(entry.agent, { instructions: "" })
  // Whoever holds it ends it as soon as that is said to it.
  const said = Outside.append(runId, ({ head }) =>
    Effect.succeed<ReadonlyArray<Draft>>(
      isTerminal(head) || head.cancelled !== undefined ? [] : [{ _tag: "CancelRequested", ...cancel }]
    )
  ).pipe(Effect.provideService(CheckpointStore, store), Effect.ignore)
  const drive = Effect.tapError(attempt.drive({ agent, runId, call, before, denies: true }), (error) =>
    isHeld(error) ? said : Effect.void
  )
  const ends = yield* Effect.result(Effect.retry(drive, { schedule: twoLeases, while: isHeld }))
  tree.below.delete(call.callId)
  if (Result.isSuccess(ends)) {
    const isOurDoing = ends.success.state.outcome?._tag === "Cancelled"
    return came(call, runId, ends.success, isOurDoing ? why : undefined)
  }
  const { failure } = ends
  if (failure._tag === "CheckpointCorrupt") return lost(call, failure)
  if (failure._tag !== "RunBusy" && !isHeld(failure) && !isRefusal(failure)) return yield* failure
  return completed(call, { output: unknown(runId), ending: "unknown" })
})

/** The event of a call whose Run was ended from outside. */
export const came = (call: Call, runId: string, driven: Driven, why?: Settled): Draft =>
  driven.state.outcome === undefined
    ? completed(call, { output: unknown(runId), ending: "unknown" })
    : completed(call, {
        output: ChildOutcome.output(runId, driven.state.outcome),
        driven,
        runId,
        ending: "executed",
        ...defined({ why })
      })

/** The event of a call whose Run cannot be read: it is kept as it is, and holds up nobody. */
export const lost = (call: Call, error: CheckpointCorrupt): Draft =>
  completed(call, { output: damaged(error), ending: "unknown" })

const damaged = ({ message }: CheckpointCorrupt): ToolOutput =>
  ToolResult.errorOutput(`What became of the sub-agent is not known. ${message}`, "CheckpointCorrupt")

const unknown = (runId: string): ToolOutput =>
  ToolResult.errorOutput(`What became of the sub-agent ${runId} is not known.`, "Unknown")

interface Came {
  readonly output: ToolOutput
  readonly ending: Ending
  readonly runId?: string
  readonly driven?: Driven
  /** The result, instead of what the Run says. */
  readonly why?: Settled
}

const completed = ({ callId, name }: Call, { driven, ending, output, runId, why }: Came): Draft => ({
  _tag: "ToolCallCompleted",
  callId,
  name,
  ...ToolResult.bound(why ?? output),
  ending: why?.ending ?? ending,
  ...defined({ error: why === undefined ? output.error : why.error, modelOutput: output.modelOutput }),
  ...(driven === undefined || runId === undefined ? undefined : { child: ChildOutcome.totals(runId, driven) })
})
