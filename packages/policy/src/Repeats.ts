/**
 * Remembers the last calls and replies of a Run, and says how often in a row something of them repeats.
 *
 * It is the memory of LoopGuard: folded from events, bounded by its options, and the same after any crash.
 *
 * Invariants
 *   R1  Calls count in the order in which the model made them, however their results come in.
 *   R2  What comes from outside ends every repetition: a message of the user, a reopening, a call of a polling tool.
 *   R3  It holds at most `stopAt * longestCycle` calls and the open ones of one reply.
 *
 * @since 0.1.0
 */
import { type RunEvent, RunHead } from "@waystone/core"
import * as CallIdentity from "./CallIdentity.ts"

export interface Settings {
  readonly nudgeAt: number
  readonly stopAt: number
  readonly longestCycle: number
  readonly results: boolean
  readonly polling: ReadonlyArray<string>
  readonly cosmetic: { readonly [tool: string]: ReadonlyArray<string> }
}

/** Something that repeats. */
export interface Repeat {
  /** How often in a row; 0 or 1 is no repetition. */
  readonly count: number
  /** What, in words for the model. */
  readonly what: string
}

interface Open {
  readonly callId: string
  readonly arguments: unknown
  readonly done?: Done
}

/** A call that has its result; `counts` is undefined where the call says nothing about the model. */
interface Done {
  readonly counts?: "call" | "invalid" | "polling"
  readonly name: string
  readonly identity: string
}

interface Streak {
  readonly identity: string
  readonly count: number
}

export interface Memory {
  /** Tools that are annotated with ToolOptions.Polling. */
  readonly polling: ReadonlyArray<string>
  /** Calls of the last reply that wait for each other's results. */
  readonly open: ReadonlyArray<Open>
  /** The identities of the last calls, the newest last. */
  readonly calls: ReadonlyArray<string>
  readonly invalid: Streak
  readonly text: Streak
  /** The repetition that goes on: the model is to be told of it, and it has answered since. */
  readonly nudged: "no" | "said" | "heard"
}

const none: Streak = { identity: "", count: 0 }
export const initial: Memory = { polling: [], open: [], calls: [], invalid: none, text: none, nudged: "no" }

/** UTF-16 units from which on the same text counts although the calls beside it differ: shorter, it is a phrase. */
const tellingText = 200

/** Folds one event; `guard` is whose nudges count. */
export const fold =
  (guard: string, settings: Settings) =>
  (memory: Memory, event: RunEvent.RunEvent): Memory => {
    switch (event._tag) {
      case "RunStarted":
      case "ToolsChanged":
        return { ...memory, polling: Object.keys(event.tools).filter((name) => event.tools[name]?.polling === true) }
      case "MessageReceived":
      case "RunReopened":
        return { ...initial, polling: memory.polling, open: memory.open }
      case "VerdictGiven":
        return event.guard === guard && event.verdict === "Nudge" ? { ...memory, nudged: "said" } : memory
      case "TurnCompleted":
        return still(settings, replied(memory, event))
      case "ToolCallCompleted":
        return completed(settings, memory, event)
      default:
        return memory
    }
  }

/** What repeats most. */
export const worst = ({ longestCycle }: Settings, { calls, invalid, text }: Memory): Repeat => {
  const found: Array<Repeat> = [
    { count: invalid.count, what: `calls of ${invalid.identity} that are not valid` },
    { count: text.count, what: "the same words in your replies" }
  ]
  for (let period = 1; period <= longestCycle; period++) found.push(cycle(calls, period))
  return found.reduce((most, next) => (next.count > most.count ? next : most), { count: 0, what: "" })
}

/** How often the last `period` calls stand in a row at the end. */
const cycle = (calls: ReadonlyArray<string>, period: number): Repeat => {
  let same = 0
  for (let i = calls.length - 1 - period; i >= 0 && calls[i] === calls[i + period]; i--) same++
  const pattern = calls.slice(-period).map((call) => (call.length <= 300 ? call : `${call.slice(0, 300)}…`))
  return {
    count: calls.length < period ? 0 : 1 + Math.floor(same / period),
    what: `${period === 1 ? "the same call" : "the same calls one after the other"}, ${pattern.join(" then ")}`
  }
}

/** A repetition that has ended may be told of anew. */
const still = (settings: Settings, memory: Memory): Memory =>
  memory.nudged !== "no" && worst(settings, memory).count < settings.nudgeAt ? { ...memory, nudged: "no" } : memory

type EventOf<Tag extends RunEvent.RunEvent["_tag"]> = Extract<RunEvent.RunEvent, { readonly _tag: Tag }>

const replied = (memory: Memory, { reply, turn }: EventOf<"TurnCompleted">): Memory => {
  const calls = RunHead.callsOf(reply)
  const text = reply
    .flatMap((part) => (part.type === "text" ? [part.text.trim().replaceAll(/\s+/g, " ")] : []))
    .join(" ")
  const counts = text !== "" && (calls.length === 0 || text.length >= tellingText)
  return {
    ...memory,
    // A nudged Step is judged again before the model is asked: only a reply says that it was told.
    nudged: memory.nudged === "said" ? "heard" : memory.nudged,
    open: calls.map(({ params }, index) => ({ callId: RunHead.callId(turn, index), arguments: params })),
    text: counts ? again(memory.text, CallIdentity.ofJson(text)) : none
  }
}

const again = (streak: Streak, identity: string): Streak => ({
  identity,
  count: streak.identity === identity ? streak.count + 1 : 1
})

const completed = (settings: Settings, memory: Memory, event: EventOf<"ToolCallCompleted">): Memory => {
  const open = memory.open.map((call) =>
    call.callId === event.callId
      ? { ...call, done: doneOf(settings, memory, { event, arguments: call.arguments }) }
      : call
  )
  if (open.some((call) => call.done === undefined)) return { ...memory, open }
  let next: Memory = { ...memory, open: [] }
  for (const { done } of open) if (done !== undefined) next = taken(settings, next, done)
  return next
}

/** What an ending says about the model: nothing where a person or the end of the Run decided. */
const telling: ReadonlySet<string> = new Set(["executed", "reconciled", "refused", "answered", "expired", "unknown"])

const doneOf = (
  { cosmetic, polling, results }: Settings,
  memory: Memory,
  { event, arguments: args }: { readonly event: EventOf<"ToolCallCompleted">; readonly arguments: unknown }
): Done => {
  const { ending, name, result } = event
  const call = CallIdentity.ofCall(name, args, Object.hasOwn(cosmetic, name) ? (cosmetic[name] ?? []) : [])
  const identity = results ? `${call} = ${CallIdentity.ofJson(result)}` : call
  if (ending === "invalid") return { counts: "invalid", name, identity }
  if (!telling.has(ending)) return { name, identity }
  return { counts: polling.includes(name) || memory.polling.includes(name) ? "polling" : "call", name, identity }
}

const taken = (settings: Settings, memory: Memory, { counts, identity, name }: Done): Memory => {
  if (counts === undefined) return memory
  if (counts === "polling") return still(settings, { ...memory, calls: [], invalid: none, text: none })
  const calls = [...memory.calls, identity].slice(-settings.stopAt * settings.longestCycle)
  return still(settings, { ...memory, calls, invalid: counts === "invalid" ? again(memory.invalid, name) : none })
}
