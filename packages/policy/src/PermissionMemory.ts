/**
 * Remembers of a Run what rules need: sums of arguments, and whether it has read anything from outside.
 *
 * Folded from events, so it survives crashes. It keeps numbers and the calls of the current reply, never the journal.
 *
 * Invariants
 *   M1  A call counts once, from the moment it may have had an effect, however often it is started; a call that was
 *       refused never counts. A call that failed counts: it may have had its effect.
 *   M2  The Run of a sub-agent has read from outside what its caller had read, and all, where its caller does not say.
 *
 * @since 0.1.0
 */
import { type RunEvent, RunHead } from "@waystone/core"
import { type Rules, valuesAt } from "./PermissionRules.ts"

interface Known {
  readonly arguments: unknown
  readonly counted: boolean
}

export interface Memory {
  readonly totals: { readonly [key: string]: number }
  /** The calls of the current reply. */
  readonly calls: { readonly [callId: string]: Known }
  /** Names of the tools that are explicitly OpenWorld. */
  readonly openWorld: ReadonlyArray<string>
  readonly untrusted: boolean
}

/** The guard's name in the journal. */
export const guardName = "permissions"

/** What a sub-agent's Run is given on its way: 1 if its caller has read from outside, 0 if it has not. */
export const inherits = "untrusted"

export const empty: Memory = { totals: {}, calls: {}, openWorld: [], untrusted: false }

type Completed = RunEvent.Of<"ToolCallCompleted">

/** Endings of calls that had, or may have had, an effect or a result from outside. */
const happened: ReadonlySet<Completed["ending"]> = new Set(["executed", "reconciled", "answered", "unknown"])

/** The memory after one more event, for these rules. */
export const fold =
  (policy: Rules) =>
  (memory: Memory, event: RunEvent.RunEvent): Memory => {
    switch (event._tag) {
      case "RunAccepted":
        return event.parent === undefined || event.parent.share?.[guardName]?.[inherits] === 0
          ? memory
          : { ...memory, untrusted: true }
      case "RunStarted":
      case "ToolsChanged":
        return {
          ...memory,
          openWorld: Object.keys(event.tools).filter((name) => event.tools[name]?.openWorld === true)
        }
      case "TurnCompleted":
        return replied(memory, event)
      case "CallAnswered": {
        const { answer, callId } = event
        return answer._tag === "Approve" && answer.edited !== undefined
          ? {
              ...memory,
              calls: {
                ...memory.calls,
                [callId]: { counted: false, ...memory.calls[callId], arguments: answer.edited }
              }
            }
          : memory
      }
      case "ToolCallStarted":
      case "ExternalRequested":
        return counted(policy, memory, event.callId, event.name)
      case "ToolCallCompleted":
        return happened.has(event.ending)
          ? outside(counted(policy, memory, event.callId, event.name), event.name)
          : memory
      default:
        return memory
    }
  }

const outside = (memory: Memory, name: string): Memory =>
  memory.untrusted || !memory.openWorld.includes(name) ? memory : { ...memory, untrusted: true }

const replied = (memory: Memory, { reply, turn }: RunEvent.Of<"TurnCompleted">): Memory => ({
  ...memory,
  untrusted: memory.untrusted || reply.some(({ type }) => type === "tool-result"),
  calls: Object.fromEntries(
    RunHead.callsOf(reply).map((part, index) => [
      RunHead.callId(turn, index),
      { arguments: parsed(part.params), counted: false }
    ])
  )
})

/** Some models write their arguments as text. */
export const parsed = (params: unknown): unknown => {
  if (typeof params !== "string") return params
  try {
    return JSON.parse(params)
  } catch {
    return params
  }
}

const counted = (policy: Rules, memory: Memory, callId: string, name: string): Memory => {
  const known = memory.calls[callId]
  if (known === undefined || known.counted) return memory
  const totals = { ...memory.totals }
  add(policy, totals, name, known.arguments)
  return { ...memory, totals, calls: { ...memory.calls, [callId]: { ...known, counted: true } } }
}

const add = (policy: Rules, totals: { [key: string]: number }, name: string, args: unknown): void => {
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

/** A call ahead of the one that is judged: it may run, and has not yet. */
export interface Ahead {
  readonly callId: string
  readonly name: string
  readonly arguments: unknown
}

/** The sums, with the calls ahead that are not in them yet. */
export const spent = (policy: Rules, memory: Memory, ahead: ReadonlyArray<Ahead>): ((key: string) => number) => {
  const waiting = ahead.filter(({ callId }) => memory.calls[callId]?.counted !== true)
  if (waiting.length === 0) return (key) => memory.totals[key] ?? 0
  const totals = { ...memory.totals }
  for (const { arguments: args, name } of waiting) add(policy, totals, name, parsed(args))
  return (key) => totals[key] ?? 0
}
