/**
 * Adds up what rules limit over a whole tree of Runs, and says how much of it a sub-agent may use.
 *
 * What is left of a limit is split evenly among the sub-agents that a reply calls and, where it has further calls that the
 * rules add up, those. Each gets its part when it is called; it can use no more, and its caller counts it until it ends.
 *
 * Invariants
 *   PT1  What all Runs of a tree use, those beside each other too, is within what a rule allows its root.
 *   PT2  A Run whose caller does not say how much it may use does not know what is left: such rules ask a person there.
 *
 * They hold for rules that get stricter as a sum grows.
 *
 * @since 0.1.0
 */
import type { RunState } from "@waystone/core"
import type { Memory } from "./PermissionMemory.ts"
import { type Rules, valuesAt } from "./PermissionRules.ts"

/** The guard's name in the journal. */
export const guardName = "permissions"

/** By `totalKey`. */
export type Sums = { readonly [key: string]: number }

export const plus = (a: Sums, b: Sums): Sums => {
  const sums: { [key: string]: number } = { ...a }
  for (const [key, amount] of Object.entries(b)) sums[key] = (sums[key] ?? 0) + amount
  return sums
}

/** Adds what a call uses. */
export const add = (policy: Rules, totals: { [key: string]: number }, name: string, args: unknown): void => {
  for (const { names, when } of policy.rules) {
    if (!names(name)) continue
    for (const { key, place, test } of when) {
      if (!test.totals) continue
      for (const value of valuesAt(args, place)) {
        if (typeof value === "number" && Number.isFinite(value)) totals[key] = (totals[key] ?? 0) + Math.max(0, value)
      }
    }
  }
}

type Call = RunState.RunState["calls"][number]

/** The reply whose calls are judged. */
export interface Reply {
  /** Calls beside the one that is judged that may run. */
  readonly ahead: ReadonlyArray<Pick<Call, "callId" | "name" | "arguments">>
  readonly calls: ReadonlyArray<Call>
  /** True for a call of a sub-agent. */
  readonly isBelow: (name: string) => boolean
}

export const noReply: Reply = { ahead: [], calls: [], isBelow: () => false }

/** The sums, with the calls ahead that are not in them yet. NaN if what Runs above have used is not known. */
export const spent = (policy: Rules, memory: Memory, reply: Reply): ((key: string) => number) => {
  const waiting = reply.ahead.filter(({ callId }) => memory.calls[callId]?.counted !== true)
  const totals: { [key: string]: number } = {}
  for (const { arguments: args, name } of waiting) add(policy, totals, name, parsed(args))
  const children = before(memory, reply)
  return (key) => {
    let sum = known(policy, memory, key) + (totals[key] ?? 0)
    for (const call of children) sum += partOf(policy, memory, reply, { call, key })
    return sum
  }
}

/** How much of each limit the sub-agent of a call may use; what is not known is left out. */
export const roomOf = (policy: Rules, memory: Memory, reply: Reply, call: Call): Sums => {
  const sums = spent(policy, memory, reply)
  // A person has been asked about it before, so it is one of those that are set aside for.
  const isKnown = before(memory, reply).some(({ callId }) => callId === call.callId)
  const room: { [key: string]: number } = {}
  for (const [key, bound] of policy.bounds) {
    const part = partOf(policy, memory, reply, { call, key })
    const others = sums(key) - (isKnown ? part : 0)
    const left = Math.max(0, Math.min(part, bound - others))
    if (Number.isFinite(left)) room[key] = left
  }
  return room
}

/** Sub-agents that may start beside the call, or before it, and for which nothing is set aside yet. */
const before = ({ below }: Memory, { ahead, calls, isBelow }: Reply): ReadonlyArray<Call> => {
  const may = new Set(ahead.map(({ callId }) => callId))
  return calls.filter(
    ({ callId, name, status }) =>
      isBelow(name) &&
      below[callId] === undefined &&
      (status === "asked" || status === "approved" || (status === "requested" && may.has(callId)))
  )
}

/** What is used and set aside, as far as events say. */
const known = ({ bounds }: Rules, { below, room, totals }: Memory, key: string): number => {
  let sum = totals[key] ?? 0
  for (const share of Object.values(below)) sum += share[key] ?? 0
  return room === undefined ? sum : sum + (bounds.get(key) ?? Number.NaN) - (room[key] ?? Number.NaN)
}

/** What is set aside for one sub-agent of the reply. */
const partOf = (
  policy: Rules,
  memory: Memory,
  { calls, isBelow }: Reply,
  { call, key }: { readonly call: Call; readonly key: string }
): number => {
  const reserved = call.reservations?.[guardName]?.[key]
  if (reserved !== undefined) return reserved
  const open = calls.filter(({ status }) => status === "requested" || status === "asked" || status === "approved")
  const below = open.filter(({ name }) => isBelow(name)).length
  const own = open.some(({ name }) => !isBelow(name) && policy.adds(name)) ? 1 : 0
  const left = (policy.bounds.get(key) ?? Number.NaN) - known(policy, memory, key)
  return Math.max(0, left) / Math.max(1, below + own)
}

/** Some models write their arguments as text. */
export const parsed = (params: unknown): unknown => {
  if (typeof params !== "string") return params
  try {
    return JSON.parse(params)
  } catch {
    return params
  }
}
