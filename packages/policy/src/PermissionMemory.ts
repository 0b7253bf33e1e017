/**
 * Remembers of a Run what rules need: sums of arguments, and whether it has read anything from outside.
 *
 * Folded from events, so it survives crashes. It keeps numbers and the calls of the current reply, never the journal.
 *
 * Invariants
 *   M1  A call counts once, from the moment it may have had an effect, however often it is started; a call that was
 *       refused never counts. A call that failed counts: it may have had its effect.
 *   M3  What sub-agents use counts as their caller's own: all that they may use while they work, what they used once they end.
 *   M2  The Run of a sub-agent has read from outside what its caller had read, and all, where its caller does not say.
 *
 * @since 0.1.0
 */
import { type RunEvent, RunHead } from "@waystone/core"
import type { Rules } from "./PermissionRules.ts"
import * as Totals from "./PermissionTotals.ts"

interface Known {
  readonly arguments: unknown
  readonly counted: boolean
}

export interface Memory {
  /** With what ended sub-agents have used. */
  readonly totals: Totals.Sums
  /** What sub-agents that are at work may use, by call id. */
  readonly below: { readonly [callId: string]: Totals.Sums }
  /** Of a sub-agent's Run: what its caller said that it may use. */
  readonly room?: Totals.Sums
  /** The calls of the current reply. */
  readonly calls: { readonly [callId: string]: Known }
  /** Names of the tools that are explicitly OpenWorld. */
  readonly openWorld: ReadonlyArray<string>
  readonly untrusted: boolean
}

/** What a sub-agent's Run is given on its way: 1 if its caller has read from outside, 0 if it has not. */
export const inherits = "untrusted"

export const empty: Memory = { totals: {}, below: {}, calls: {}, openWorld: [], untrusted: false }

const { guardName } = Totals

type Completed = RunEvent.Of<"ToolCallCompleted">

/** Endings of calls that had, or may have had, an effect or a result from outside. */
const happened: ReadonlySet<Completed["ending"]> = new Set(["executed", "reconciled", "answered", "unknown"])

/** The memory after one more event, for these rules. */
export const fold =
  (policy: Rules) =>
  (memory: Memory, event: RunEvent.RunEvent): Memory => {
    switch (event._tag) {
      case "RunAccepted":
        return event.parent === undefined ? memory : below(memory, event.parent.share?.[guardName])
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
        return event.child === undefined
          ? counted(policy, memory, event.callId, event.name)
          : called(policy, memory, event)
      case "ExternalRequested":
        return counted(policy, memory, event.callId, event.name)
      case "ToolCallCompleted":
        return settled(
          happened.has(event.ending) ? outside(counted(policy, memory, event.callId, event.name), event.name) : memory,
          event
        )
      default:
        return memory
    }
  }

const below = (memory: Memory, share: Totals.Sums = {}): Memory => ({
  ...memory,
  room: share,
  untrusted: memory.untrusted || share[inherits] !== 0
})

/** A sub-agent is at work; it starts again whenever its Run goes on, with what it was given first. */
const called = (policy: Rules, memory: Memory, event: RunEvent.Of<"ToolCallStarted">): Memory => {
  const { callId, name, reservations } = event
  return {
    ...counted(policy, memory, callId, name),
    below: { [callId]: reservations?.[guardName] ?? {}, ...memory.below }
  }
}

/** What a sub-agent has used takes the place of what it might have used; nobody knows better where it is not said (M3). */
const settled = (memory: Memory, { callId, child, ending }: Completed): Memory => {
  const { [callId]: share, ...below } = memory.below
  if (share === undefined) return memory
  const used = child?.used?.[guardName] ?? (child !== undefined || happened.has(ending) ? share : {})
  return { ...memory, below, totals: Totals.plus(memory.totals, used) }
}

/** All that a Run has used, with those below it. */
export const used = ({ totals }: Memory): Totals.Sums => totals

const outside = (memory: Memory, name: string): Memory =>
  memory.untrusted || !memory.openWorld.includes(name) ? memory : { ...memory, untrusted: true }

const replied = (memory: Memory, { reply, turn }: RunEvent.Of<"TurnCompleted">): Memory => ({
  ...memory,
  untrusted: memory.untrusted || reply.some(({ type }) => type === "tool-result"),
  calls: Object.fromEntries(
    RunHead.callsOf(reply).map((part, index) => [
      RunHead.callId(turn, index),
      { arguments: Totals.parsed(part.params), counted: false }
    ])
  )
})

const counted = (policy: Rules, memory: Memory, callId: string, name: string): Memory => {
  const known = memory.calls[callId]
  if (known === undefined || known.counted) return memory
  const totals = { ...memory.totals }
  Totals.add(policy, totals, name, known.arguments)
  return { ...memory, totals, calls: { ...memory.calls, [callId]: { ...known, counted: true } } }
}
