/**
 * Says what is wrong with a Run that has been through crashes, beside one that nothing happened to.
 *
 * Invariants
 *   X1  No effect of an unsafe tool takes place twice.
 *   X2  No finished effect is lost: its call has a result, and it is the one that the handler returned, byte by byte.
 *   X3  The history is one that providers take after every event.
 *   X4  The Run ends as it ends without crashes; a limit trips at the same count (RI-032).
 *   X5  The journal says everything once, and the stored head is its fold.
 *   X6  After a cancel is committed nothing is started.
 *   X7  When the Run has ended, so have all Runs below it, and nobody holds any of those.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { CheckpointStore } from "../CheckpointStore.ts"
import { canonical } from "../Digest.ts"
import type { Outcome } from "../Outcome.ts"
import type { RunEvent } from "../RunEvent.ts"
import * as RunState from "../RunState.ts"
import type { Execution } from "./CrashLedger.ts"
import { eventsOf, type Life, treeOf } from "./CrashRun.ts"
import * as PairingChecker from "./PairingChecker.ts"

/** All problems of a Run. */
export const problems = (one: Life, baseline: Life): Effect.Effect<ReadonlyArray<string>, unknown> =>
  Effect.gen(function* () {
    const { ledger, runId: rootId, store } = one
    const found = [...ledger.problems, ...effects(one, baseline)]
    for (const runId of yield* treeOf(store, rootId)) {
      const events = yield* eventsOf(store, runId)
      const state = RunState.fromEvents(events)
      const entry = yield* store.head(runId)
      const head = entry?.body ?? "null"
      if (canonical(JSON.parse(head)) !== canonical(state.head))
        found.push(`X5 the stored head is not the fold: ${head}`)
      found.push(...results(one, runId, events), ...shown(events, state), ...twice(events), ...afterCancel(events))
      if (runId === rootId) found.push(...ending(one, baseline, state))
      const left = state.outcome === undefined || (runId !== rootId && entry?.owner !== undefined)
      if (one.outcome !== undefined && left)
        found.push(`X7 ${runId} is ${state.head.status}, held by ${entry?.owner ?? "nobody"}`)
      const pairing = Effect.provideService(PairingChecker.ofRun(runId), CheckpointStore, store)
      for (const { problem, seq } of yield* pairing) found.push(`X3 ${runId} at ${seq}: ${problem}`)
    }
    return found
  })

const sum = (executions: ReadonlyArray<Execution>, by: (one: Execution) => string): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const one of executions) counts.set(by(one), (counts.get(by(one)) ?? 0) + one.happened)
  return counts
}

const what = ({ arguments: input, tool }: Execution): string => `${tool} ${input}`

/** Whether exactly the same must happen as without crashes: nobody spoke to the Run, and no limit cut it short. */
const isExact = ({ plan }: Life, { outcome }: Life): boolean =>
  plan.message === undefined && plan.cancel === undefined && outcome?._tag === "Completed"

/** X1, and the part of X2 that counts. */
const effects = (one: Life, baseline: Life): ReadonlyArray<string> => {
  const found: Array<string> = []
  const { executions } = one.ledger
  const expected = sum(baseline.ledger.executions, what)
  for (const [key, count] of sum(
    executions.filter(({ effect }) => effect === "unsafe"),
    ({ key, tool }) => `${tool} under the key ${key}`
  )) {
    if (count > 1) found.push(`X1 ${key} happened ${count} times`)
  }
  if (baseline.outcome?._tag !== "Completed") return found
  const got = sum(executions, what)
  const unsafe = new Set(executions.filter(({ effect }) => effect === "unsafe").map(what))
  for (const [call, count] of got) {
    if (unsafe.has(call) && count > (expected.get(call) ?? 0)) found.push(`X1 ${call} happened ${count} times`)
  }
  if (!isExact(one, baseline)) return found
  for (const [call, count] of expected) {
    if ((got.get(call) ?? 0) < count) found.push(`X2 ${call} happened ${got.get(call) ?? 0} times instead of ${count}`)
  }
  const keys = (all: ReadonlyArray<Execution>) =>
    new Set(all.filter(({ effect }) => effect === "idempotent").map((one) => `${one.callId} ${what(one)}`)).size
  const [now, then] = [keys(executions), keys(baseline.ledger.executions)]
  if (now > then) found.push(`X1 idempotent calls had ${now} keys instead of ${then}`)
  return found
}

type Completed = Extract<RunEvent, { readonly _tag: "ToolCallCompleted" }>

const completions = (events: ReadonlyArray<RunEvent>): ReadonlyArray<Completed> =>
  events.filter((event) => event._tag === "ToolCallCompleted")

/** X2: what happened has a result, and it is what the handler returned. */
const results = ({ ledger }: Life, runId: string, events: ReadonlyArray<RunEvent>): ReadonlyArray<string> => {
  const found: Array<string> = []
  const done = new Map(completions(events).map((event) => [`${runId}/${event.callId}`, event]))
  const own = ledger.executions.filter(({ happened, key }) => happened > 0 && key === `${runId}/${key.split("/")[1]}`)
  const happened = new Set(own.map(({ key }) => key))
  for (const key of happened) {
    const event = done.get(key)
    const { effect = "unsafe", tool = "" } = ledger.executions.find((one) => one.key === key) ?? {}
    if (event === undefined) {
      if (effect !== "readonly") found.push(`X2 ${tool} happened under ${key} and has no result`)
      continue
    }
    const returned = ledger.returned(key)
    const taken = event.ending === "executed" || event.ending === "reconciled"
    if (taken && !event.isFailure && returned !== undefined && canonical(event.result) !== returned) {
      found.push(`X2 the result of ${key} is ${canonical(event.result)}, its handler returned ${returned}`)
    }
    const unknown = event.ending === "unknown" || event.ending === "answered"
    if (!taken && !unknown && effect !== "readonly") found.push(`X2 ${tool} happened under ${key}: ${event.ending}`)
  }
  return found
}

/** X2: the model sees exactly what the journal says. */
const shown = (events: ReadonlyArray<RunEvent>, { calls, history }: RunState.RunState): ReadonlyArray<string> => {
  const [turn, index] = [1, 2]
  const at = (callId: string, part: number) => Number(/^t(\d+)\.(\d+)$/.exec(callId)?.[part] ?? 0)
  const open = new Set(calls.map(({ callId }) => callId))
  const first = new Map<string, Completed>()
  for (const event of completions(events)) if (!first.has(event.callId)) first.set(event.callId, event)
  const said = [...first.values()]
    .filter(({ callId }) => !open.has(callId))
    .toSorted((a, b) => at(a.callId, turn) - at(b.callId, turn) || at(a.callId, index) - at(b.callId, index))
    .map((event) => canonical(event.shown ?? event.result))
  const seen = history
    .slice()
    .flatMap((message) => (message.role === "tool" ? message.content : []))
    .map((part) => (part.type === "tool-result" ? canonical(part.result) : "an approval"))
  return canonical(said) === canonical(seen)
    ? []
    : [`X2 the history shows ${canonical(seen)}, the journal says ${canonical(said)}`]
}

/** X4. */
const ending = (one: Life, baseline: Life, { head }: RunState.RunState): ReadonlyArray<string> => {
  const { outcome, plan } = one
  if (outcome === undefined) return []
  if (plan.cancel !== undefined && outcome._tag === "Cancelled") return []
  const [got, expected] = [essence(outcome), essence(baseline.outcome)]
  if (got !== expected) return [`X4 it ended as ${got} instead of ${expected}`]
  if (outcome._tag !== "Stopped" || outcome.reason._tag !== "MaxTurns") return []
  const turns = baseline.outcome?.turns
  return head.turn === turns ? [] : [`X4 it stopped after ${head.turn} turns instead of ${turns}`]
}

const essence = (outcome: Outcome<unknown> | undefined): string =>
  outcome?._tag === "Stopped" ? `Stopped ${outcome.reason._tag}` : (outcome?._tag ?? "nothing")

/** X5: what can only be once is there once. */
const twice = (events: ReadonlyArray<RunEvent>): ReadonlyArray<string> => {
  const seen = new Set<string>()
  const found: Array<string> = []
  for (const event of events) {
    const name = once(event)
    if (name === undefined) continue
    if (seen.has(name)) found.push(`X5 ${name} is in the journal twice`)
    seen.add(name)
  }
  return found
}

const once = (event: RunEvent): string | undefined => {
  switch (event._tag) {
    case "RunAccepted":
    case "RunStarted":
    case "RunFinished":
      return event._tag
    case "AttemptStarted":
      return `attempt ${event.attempt}`
    case "TurnStarted":
    case "TurnCompleted":
      return `${event._tag} ${event.turn}`
    case "ToolCallCompleted":
      return `the result of ${event.callId}`
    default:
      return undefined
  }
}

const starts: ReadonlySet<string> = new Set(["TurnStarted", "ToolCallStarted", "ApprovalRequested", "CallRequeued"])

/** X6. */
const afterCancel = (events: ReadonlyArray<RunEvent>): ReadonlyArray<string> => {
  const at = events.findIndex(({ _tag }) => _tag === "CancelRequested")
  if (at === -1) return []
  return events
    .slice(at)
    .filter(({ _tag }) => starts.has(_tag))
    .map(({ _tag }) => `X6 ${_tag} after the cancel`)
}
