/**
 * Folds the events of a Run into what it has spent and what is set aside for what runs now.
 *
 * Invariants
 *   SP1  What is set aside stands in the event that begins a turn or a call, and what was spent in the one that ends it:
 *        a process that dies between them leaves both to be counted.
 *   SP2  A turn that was lost has spent all that was set aside for it: nobody knows better.
 *   SP3  A turn whose cost is unknown has spent what was set aside for its cost.
 *   SP4  An event costs O(calls of one reply). (Duplicates do not reach a guard's fold.)
 *
 * @since 0.1.0
 */
import { type RunEvent, Usage } from "@waystone/core"

/** The guard's name in the journal. */
export const guardName = "budget"

export const units = ["tokens", "costNanoUsd", "turns", "calls"] as const
export type Unit = (typeof units)[number]

/** An amount of each unit. */
export type Amounts = { readonly [U in Unit]: number }

export const none: Amounts = { tokens: 0, costNanoUsd: 0, turns: 0, calls: 0 }

export interface Spending {
  /** What turns and calls that have ended came to, lost ones included. */
  readonly spent: Amounts
  /** What is set aside for the turn and the calls that have begun and not ended. */
  readonly reserved: Amounts
  /** The number of the turn that has begun. */
  readonly turn?: number
  /** Calls that have begun. */
  readonly calls: ReadonlyArray<string>
  /** What is set aside for sub-agents whose calls have begun, by call id. */
  readonly below: { readonly [callId: string]: Amounts }
  /** Of a sub-agent's Run: what its caller set aside for it. Units that its caller does not limit are left out. */
  readonly share?: Partial<Amounts>
  /** What a person was asked about, by this guard or by it too: a call id, or `s<turn>`. */
  readonly asked: ReadonlyArray<string>
  /** How often a person has granted the budget once more. */
  readonly grants: number
  /** Calls of the current reply that a person agreed to; they share what was granted for the first of them. */
  readonly agreed: number
  /** The warning stands in the journal, since the last grant. */
  readonly warned: boolean
}

export const initial: Spending = {
  spent: none,
  reserved: none,
  calls: [],
  below: {},
  asked: [],
  grants: 0,
  agreed: 0,
  warned: false
}

/** What the Run has spent after one more event, for this limit of tool calls. */
export const foldFor =
  (calls: number) =>
  (before: Spending, event: RunEvent.RunEvent): Spending =>
    event._tag === "CallAnswered" ? answered(before, event, calls) : fold(before, event)

/** What the Run has spent after one more event. */
export const fold = (before: Spending, event: RunEvent.RunEvent): Spending => {
  switch (event._tag) {
    case "TurnStarted":
      return {
        ...before,
        turn: event.turn,
        reserved: plus(before.reserved, { ...none, ...event.reservations?.[guardName], turns: 1 }),
        asked: [],
        agreed: 0
      }
    case "TurnCompleted":
    case "TurnFailed":
      return turnEnded(before, event)
    case "AttemptStarted":
    case "RunForked":
    case "RunFinished":
      return before.turn === undefined ? before : turnLost(before)
    case "ToolCallStarted":
      return callStarted(before, event)
    case "ToolCallCompleted":
      return callEnded(before, event)
    case "CompactionCompleted":
    case "CompactionFailed":
      return { ...before, spent: plus(before.spent, paid(event)) }
    case "RunAccepted": {
      const share = event.parent?.share?.[guardName]
      return share === undefined ? before : { ...before, share }
    }
    default:
      return asking(before, event)
  }
}

/** A sub-agent's call starts again whenever its Run goes on: that sets nothing aside once more. */
const callStarted = (before: Spending, event: RunEvent.Of<"ToolCallStarted">): Spending => {
  const { callId, child, reservations } = event
  if (before.calls.includes(callId)) return before
  const calls = [...before.calls, callId]
  if (child === undefined) return { ...before, calls, reserved: plus(before.reserved, oneCall) }
  const share: Amounts = { ...none, ...reservations?.[guardName] }
  const reserved = plus(before.reserved, plus(share, oneCall))
  return { ...before, calls, below: { ...before.below, [callId]: share }, reserved }
}

const oneCall: Amounts = { ...none, calls: 1 }

/** What a person was asked and has said, and what was noted. */
const asking = (before: Spending, event: RunEvent.RunEvent): Spending => {
  switch (event._tag) {
    case "ApprovalRequested":
      return event.guard === guardName || event.also?.includes(guardName) === true
        ? { ...before, asked: [...before.asked, event.callId] }
        : before
    case "CallAnswered":
      return answered(before, event, 1)
    case "WaitExpired":
      return { ...before, asked: before.asked.filter((id) => id !== event.callId) }
    case "MessageReceived": // closes what was asked about calls; an ask about a Step stays
      return { ...before, asked: before.asked.filter((id) => id.startsWith("s")) }
    case "VerdictGiven":
      return event.guard === guardName && event.verdict === "Allow" ? { ...before, warned: true } : before
    default:
      return before
  }
}

/** A yes grants the budget once more; the calls of one reply are granted together as many as one more budget has room for. */
const answered = (before: Spending, { answer, callId }: RunEvent.Of<"CallAnswered">, limit: number): Spending => {
  if (!before.asked.includes(callId)) return before
  const asked = before.asked.filter((id) => id !== callId)
  if (answer._tag !== "Approve") return { ...before, asked }
  if (callId.startsWith("s")) return { ...before, asked, grants: before.grants + 1, warned: false }
  const { agreed, grants } = before
  const covered = agreed % limit !== 0
  return { ...before, asked, agreed: agreed + 1, ...(covered ? undefined : { grants: grants + 1, warned: false }) }
}

type Settled = RunEvent.Of<"TurnCompleted" | "TurnFailed">

const turnEnded = (before: Spending, event: Settled): Spending => {
  const { turn: _, ...rest } = before
  const { calls, costNanoUsd } = before.reserved
  const used: Amounts = { ...paid(event), costNanoUsd: event.costNanoUsd ?? costNanoUsd, turns: 1 }
  return { ...rest, reserved: { ...none, calls }, spent: plus(before.spent, used) }
}

const turnLost = (before: Spending): Spending => {
  const { turn: _, ...rest } = before
  const { calls } = before.reserved
  return { ...rest, reserved: { ...none, calls }, spent: plus(before.spent, { ...before.reserved, calls: 0 }) }
}

/** Endings of calls that did something, or may have. */
const happened: ReadonlySet<string> = new Set(["executed", "reconciled", "unknown"])

const callEnded = (before: Spending, event: RunEvent.Of<"ToolCallCompleted">): Spending => {
  const { callId, ending } = event
  const started = before.calls.includes(callId)
  const { [callId]: share = none, ...below } = before.below
  // A readonly call begins without an event.
  const own = started || happened.has(ending) ? oneCall : none
  const spent = plus(before.spent, plus(own, usedBelow(event, share)))
  if (!started) return { ...before, spent }
  const calls = before.calls.filter((id) => id !== callId)
  return { ...before, spent, calls, below, reserved: minus(before.reserved, plus(share, oneCall)) }
}

/**
 * What a sub-agent's Run came to, lost turns included, as its own Budget counted it; without one, as its journal says. Where
 * nobody knows, all that was set aside for it (SP2, SP3).
 */
const usedBelow = ({ child, ending }: RunEvent.Of<"ToolCallCompleted">, share: Amounts): Amounts => {
  if (child === undefined) return ending === "unknown" ? share : none
  const told = child.used?.[guardName]
  if (told !== undefined) return { ...none, ...told }
  const { calls = 0, costUnknown, turns } = child
  const used = paid(child)
  const costNanoUsd = costUnknown === true ? Math.max(used.costNanoUsd, share.costNanoUsd) : used.costNanoUsd
  return { ...used, costNanoUsd, turns, calls }
}

const minus = (a: Amounts, b: Amounts): Amounts => ({
  tokens: a.tokens - b.tokens,
  costNanoUsd: a.costNanoUsd - b.costNanoUsd,
  turns: a.turns - b.turns,
  calls: a.calls - b.calls
})

const paid = (event: { readonly usage?: Usage.Usage; readonly costNanoUsd?: number }): Amounts => ({
  ...none,
  tokens: event.usage === undefined ? 0 : Usage.total(event.usage),
  costNanoUsd: event.costNanoUsd ?? 0
})

export const plus = (a: Amounts, b: Amounts): Amounts => ({
  tokens: a.tokens + b.tokens,
  costNanoUsd: a.costNanoUsd + b.costNanoUsd,
  turns: a.turns + b.turns,
  calls: a.calls + b.calls
})
