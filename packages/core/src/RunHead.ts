/**
 * Folds the small part of a Run that lists, outside writers and sweeps need.
 *
 * The head is stored beside each append. An outside writer reads it once, appends and writes the next head, without
 * the journal: `evolveHead` needs the head and the event alone.
 *
 * Invariants
 *   H1  The stored head equals the fold of the events.
 *   H2  A duplicate fact changes no counter.
 *   H3  A waiting Run that has nothing left to wait for is `running` without an owner, so that a sweep takes it (RI-058).
 *
 * @since 0.1.0
 */
import type { StoredOutcome } from "./Outcome.ts"
import type { Answer, Parent, Retry, RunEvent, Wait } from "./RunEvent.ts"
import { callId, callsOf } from "./CallId.ts"
import { spent, spentBelow } from "./Spent.ts"
import * as Usage from "./Usage.ts"
import { defined } from "./Defined.ts"

export { callId, callsOf, stepId } from "./CallId.ts"

export type Status = "accepted" | "running" | "waiting" | "completed" | "stopped" | "failed" | "cancelled"

/** How a call was decided. */
export type Decision = Answer | { readonly _tag: "Superseded" } | { readonly _tag: "Expired" }

/** A request that its call did not wait for (tell-model); it can be answered later. */
export interface Deferred {
  readonly id: string
  readonly name: string
  readonly digest: string
  readonly expiresAt?: number
}

export interface Head {
  readonly status: Status
  /** Since when it has this status; epoch ms. */
  readonly since: number
  readonly agent: string
  readonly version: string
  readonly session?: string
  readonly parent?: Parent
  readonly createdAt: number
  readonly updatedAt: number
  readonly started: boolean
  /** The plugins that say who may answer. */
  readonly answering?: ReadonlyArray<string>
  /** When a sweep should look at it again; epoch ms. */
  readonly wakeAt?: number
  readonly paused?: { readonly by: string; readonly since: number }
  readonly retry?: Retry & { readonly since: number }
  readonly cancelled?: { readonly by: string; readonly reason?: string }
  readonly waits: ReadonlyArray<Wait>
  readonly deferred: ReadonlyArray<Deferred>
  /** The decisions of the current turn. */
  readonly decisions: { readonly [callId: string]: Decision }
  readonly turn: number
  readonly turnOpen: boolean
  /** The calls of the current reply that have no result yet. */
  readonly open: ReadonlyArray<string>
  /** The ids of the last 32 messages. */
  readonly messages: ReadonlyArray<string>
  /** How far the window was compacted: whole turns, cleared results, and the turn in which it failed. */
  readonly compacted?: { readonly throughTurn: number; readonly clearedTurn: number; readonly failedTurn?: number }
  readonly attempts: number
  readonly toolCalls: number
  /** A sub-agent had a Run for a call of it. */
  readonly children?: true
  /** Model calls of sub-agents whose calls have a result. */
  readonly childTurns?: number
  readonly usage: Usage.Usage
  readonly costNanoUsd?: number
  /** The price of some usage is not known, so `costNanoUsd` is a lower bound. */
  readonly costUnknown?: true
}

export const empty: Head = {
  status: "accepted",
  since: 0,
  agent: "",
  version: "",
  createdAt: 0,
  updatedAt: 0,
  started: false,
  waits: [],
  deferred: [],
  decisions: {},
  turn: 0,
  turnOpen: false,
  open: [],
  messages: [],
  attempts: 0,
  toolCalls: 0,
  usage: Usage.zero
}

/** True if the Run has ended. */
export const isTerminal = (head: Head): boolean =>
  head.status !== "accepted" && head.status !== "running" && head.status !== "waiting"

/** A key that is left out rather than set to undefined. */
const without = <K extends keyof Head>(head: Head, ...keys: ReadonlyArray<K>): Head => {
  const copy = { ...head }
  for (const key of keys) delete copy[key]
  return copy
}

/** True if `event` is a fact that this head has counted already. */
export const isDuplicate = (head: Head, event: RunEvent): boolean => {
  switch (event._tag) {
    case "RunAccepted":
      return head.agent !== ""
    case "RunStarted":
      return head.started
    case "AttemptStarted":
      return event.attempt <= head.attempts
    case "TurnCompleted":
    case "TurnFailed":
      return !head.turnOpen || event.turn !== head.turn
    case "ToolCallCompleted":
      return !head.open.includes(event.callId)
    case "MessageReceived":
      return head.messages.includes(event.id)
    case "PauseRequested":
      return head.paused !== undefined
    case "PauseLifted":
      return head.paused === undefined
    case "CancelRequested":
      return head.cancelled !== undefined
    case "CallAnswered":
    case "WaitExpired":
      return !isPending(head, event.callId)
    case "RunReopened":
      return !isTerminal(head)
    case "CompactionCompleted":
      return (
        event.throughTurn <= (head.compacted?.throughTurn ?? 0) &&
        event.clearedTurn <= (head.compacted?.clearedTurn ?? 0)
      )
    case "CompactionFailed":
      return head.compacted?.failedTurn === head.turn
    default:
      return false
  }
}

/** True if something of that id waits for an answer. */
export const isPending = (head: Head, id: string): boolean =>
  head.waits.some((wait) => isOf(wait, id)) || head.deferred.some((request) => request.id === id)

/** The head after `event`. */
export const evolveHead = (head: Head, event: RunEvent): Head => {
  if (isDuplicate(head, event)) return head
  const next = changes(head, event)
  return next.updatedAt === event.at ? next : { ...next, updatedAt: event.at }
}

const changes = (head: Head, event: RunEvent): Head => {
  switch (event._tag) {
    case "RunAccepted":
      return accepted(head, event)
    case "RunStarted":
      return { ...to(head, "running", event.at), started: true, ...defined({ answering: event.answering }) }
    case "AttemptStarted":
      return attemptStarted(head, event)
    case "TurnStarted":
      return { ...head, turn: event.turn, turnOpen: true, open: [], decisions: {} }
    case "TurnCompleted":
      return turnCompleted(head, event)
    case "TurnFailed":
      return { ...spent(head, event.usage, event.costNanoUsd), turnOpen: false }
    case "ToolCallStarted":
      return event.child === undefined ? head : { ...head, children: true }
    case "ToolCallCompleted":
      return toolCallCompleted(head, event)
    case "CompactionCompleted": {
      const { clearedTurn, costNanoUsd, throughTurn, usage } = event
      return { ...(usage ? spent(head, usage, costNanoUsd) : head), compacted: { throughTurn, clearedTurn } }
    }
    case "CompactionFailed": {
      const compacted = { throughTurn: 0, clearedTurn: 0, ...head.compacted, failedTurn: head.turn }
      return { ...spent(head, event.usage, event.costNanoUsd), compacted }
    }
    case "MessageReceived":
      return messageReceived(head, event)
    case "PauseRequested": {
      const paused = { ...head, paused: { by: event.by, since: event.at } }
      return head.status === "accepted" ? to(paused, "waiting", event.at) : paused
    }
    case "PauseLifted":
      return settle(without(head, "paused"), event.at)
    case "CancelRequested":
      // Whoever cancels may die before it has ended the sub-agents: a sweep does it then.
      return {
        ...(head.status === "waiting" ? { ...head, wakeAt: event.at } : head),
        cancelled: { by: event.by, ...defined({ reason: event.reason }) }
      }
    case "RunSuspended":
      return suspended(head, event)
    case "RunReopened":
      return to(without(head, "retry", "wakeAt"), "running", event.at)
    case "RunFinished":
      return {
        ...to(without(head, "wakeAt", "retry", "paused"), statusOf(event.outcome._tag), event.at),
        waits: [],
        open: []
      }
    case "RunForked":
      return forked(head, event)
    default:
      return waitChanges(head, event)
  }
}

/** What opens and closes waits. */
const waitChanges = (head: Head, event: RunEvent): Head => {
  switch (event._tag) {
    case "ApprovalRequested": {
      const { at, callId, digest, expiresAt, guard, mode, name, reason } = event
      const asked = { id: callId, name, digest, ...defined({ expiresAt }) }
      if (mode === "tell-model") {
        const others = head.deferred.filter(({ id }) => id !== callId) // asked again after a crash
        return { ...head, deferred: [...others, asked] }
      }
      return opened(head, { ...asked, kind: "approval", since: at, guard, ...defined({ reason }) })
    }
    case "ExternalRequested": {
      const { at, callId, digest, expiresAt, name } = event
      return opened(head, { id: callId, kind: "external", since: at, name, digest, ...defined({ expiresAt }) })
    }
    case "CallInDoubt": {
      const { at, callId, digest, name } = event
      return opened(head, { id: callId, kind: "in-doubt", since: at, name, ...defined({ digest }) })
    }
    case "ChildSuspended":
      return { ...closed(head, event.callId), waits: [...closed(head, event.callId).waits, ...event.waits] }
    case "ChildWoken": {
      const waits = head.waits.filter((wait) => wait.id !== event.id || wait.path?.join() !== event.path.join())
      if (waits.length === head.waits.length) return head
      // One sub-agent can go on while another one rests.
      const rests = head.status === "waiting" && head.paused === undefined && head.retry !== undefined
      return rests ? { ...head, waits, wakeAt: event.at } : settle({ ...head, waits }, event.at)
    }
    case "CallAnswered":
      return decided(head, event.callId, event.answer, event.at)
    case "WaitExpired":
      return decided(head, event.callId, { _tag: "Expired" }, event.at)
    case "CallRequeued":
      return closed(head, event.callId)
    default:
      return head
  }
}

const statusOf = (outcome: StoredOutcome["_tag"]): Status =>
  ({ Completed: "completed", Stopped: "stopped", Cancelled: "cancelled", Failed: "failed" } as const)[outcome]

const to = (head: Head, status: Status, at: number): Head =>
  head.status === status ? head : { ...head, status, since: at }

type EventOf<Tag extends RunEvent["_tag"]> = Extract<RunEvent, { readonly _tag: Tag }>

const accepted = (head: Head, event: EventOf<"RunAccepted">): Head => ({
  ...head,
  status: "accepted",
  since: event.at,
  createdAt: event.at,
  agent: event.agent,
  version: event.version,
  ...defined({ session: event.session, parent: event.parent })
})

const attemptStarted = (head: Head, event: EventOf<"AttemptStarted">): Head => {
  const due = head.retry === undefined || event.at >= head.retry.wakeAt
  return {
    ...to(due ? without(head, "retry", "wakeAt") : head, "running", event.at),
    attempts: event.attempt,
    turnOpen: false,
    version: event.version ?? head.version,
    ...defined({ answering: event.answering })
  }
}

const turnCompleted = (head: Head, event: EventOf<"TurnCompleted">): Head => ({
  ...spent(head, event.usage, event.costNanoUsd),
  turnOpen: false,
  open: callsOf(event.reply).map((_, index) => callId(event.turn, index))
})

const toolCallCompleted = (head: Head, event: EventOf<"ToolCallCompleted">): Head => {
  const next = event.child === undefined ? head : spentBelow(head, event.child)
  const ran = event.ending === "executed" || event.ending === "reconciled"
  return {
    ...next,
    open: head.open.filter((id) => id !== event.callId),
    waits: closed(head, event.callId).waits,
    toolCalls: ran ? head.toolCalls + 1 : head.toolCalls
  }
}

const messageReceived = (head: Head, event: EventOf<"MessageReceived">): Head => {
  const superseded = head.waits.filter((wait) => supersedes(wait))
  const decisions = { ...head.decisions }
  for (const wait of superseded) decisions[wait.id] = { _tag: "Superseded" }
  const messages = [...head.messages, event.id].slice(-32)
  return settle(
    { ...head, messages, decisions, waits: head.waits.filter((wait) => !superseded.includes(wait)) },
    event.at
  )
}

/** A user's message takes the place of an answer to a call, but not of one about a Step, a child or a doubt (RI-009). */
const supersedes = (wait: Wait): boolean =>
  wait.path === undefined && wait.kind !== "in-doubt" && !wait.id.startsWith("s")

const suspended = (head: Head, event: EventOf<"RunSuspended">): Head => {
  const retry = event.retry === undefined ? head.retry : { ...event.retry, since: event.at }
  return { ...to(head, "waiting", event.at), ...defined({ retry }), ...due(head.waits, retry?.wakeAt) }
}

/** When the first of these waits is over, or that other time has come. */
const due = (waits: Head["waits"], other = Number.POSITIVE_INFINITY): Pick<Head, "wakeAt"> => {
  const wakeAt = Math.min(other, ...waits.map((wait) => wait.expiresAt ?? Number.POSITIVE_INFINITY))
  return wakeAt === Number.POSITIVE_INFINITY ? {} : { wakeAt }
}

const forked = (head: Head, { at, session }: EventOf<"RunForked">): Head => {
  const { parent: _, ...root } = without(head, "retry", "wakeAt")
  const waiting = head.waits.length > 0 || head.paused !== undefined
  return {
    ...to(root, isTerminal(head) ? head.status : waiting ? "waiting" : "accepted", at),
    ...(waiting ? due(head.waits, head.retry === undefined ? head.wakeAt : undefined) : undefined),
    ...defined({ session }),
    attempts: 0,
    turnOpen: false
  }
}

const opened = (head: Head, wait: Wait): Head => {
  const { [wait.id]: _, ...decisions } = head.decisions
  const next = { ...head, decisions, waits: [...closed(head, wait.id).waits, wait] }
  return head.status === "accepted" ? to(next, "waiting", wait.since) : next // a fork whose call is in doubt
}

/** Closes all waits of a call, those of its child included. */
const closed = (head: Head, id: string): Head => {
  const waits = head.waits.filter((wait) => !isOf(wait, id) && !isBelow(wait, id))
  return waits.length === head.waits.length ? head : { ...head, waits }
}

/** A sub-agent's call may have the same id. */
const isOf = (wait: Wait, id: string): boolean => wait.id === id && wait.path === undefined

const isBelow = (wait: Wait, id: string): boolean => wait.path !== undefined && wait.path[0] === id

const decided = (head: Head, id: string, decision: Decision, at: number): Head => {
  const waits = head.waits.filter((wait) => !isOf(wait, id))
  const deferred = head.deferred.filter((request) => request.id !== id)
  const next = { ...head, waits, deferred, decisions: { ...head.decisions, [id]: decision } }
  return waits.length === head.waits.length ? next : settle(next, at)
}

/** After something that was waited for has come. */
const settle = (head: Head, at: number): Head => {
  if (head.status !== "waiting" || head.paused !== undefined || head.retry !== undefined) return head
  if (head.waits.length > 0) return { ...head, wakeAt: at }
  return to(without(head, "wakeAt"), head.started ? "running" : "accepted", at)
}
