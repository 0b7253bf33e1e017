/**
 * Follows the calls of the current reply from the model's request to the result that the model will see.
 *
 * @since 0.1.0
 */
import type { Json } from "effect/Schema"
import type * as Messages from "./Messages.ts"
import type { EffectClass, Ending, ReplyPart, Reservations, Retry, RunEvent, ToolRecord, Wait } from "./RunEvent.ts"
import { callId, callsOf } from "./RunHead.ts"
import { wellFormed } from "./Text.ts"
import * as ToolName from "./ToolName.ts"
import { defined } from "./Defined.ts"

export type CallStatus =
  | "requested" // the model asked for it
  | "asked" // waits for a person
  | "external" // waits for a result from outside
  | "approved" // may start, and is not judged again
  | "started" // its start is committed
  | "in-doubt" // it had started and nobody knows how it ended
  | "child" // its sub-agent waits
  | "settled" // its result is decided and not yet written
  | "completed"

/** A result that was decided without running the tool. */
export interface Settled {
  readonly ending: Ending
  readonly isFailure: boolean
  readonly result: Json
}

/** One call of the current reply. */
export interface Call extends Messages.WireCall {
  readonly callId: string
  readonly name: string
  /** Encoded, as the model wrote them or as a person edited them. */
  readonly arguments: unknown
  readonly edited?: true
  readonly status: CallStatus
  readonly effect?: EffectClass
  readonly key?: string
  /** What guards set aside when they allowed it and another asked. */
  readonly reservations?: Reservations
  /** How often it was started. */
  readonly starts: number
  readonly settled?: Settled
  readonly result?: unknown
  readonly shown?: string
  readonly modelOutput?: ReadonlyArray<unknown>
  readonly isFailure?: boolean
  readonly waits?: ReadonlyArray<Wait>
  /** Its sub-agent rests after a failure of its model. */
  readonly retry?: Retry
  readonly child?: { readonly runId: string }
  readonly woken?: true
}

type EventOf<Tag extends RunEvent["_tag"]> = Extract<RunEvent, { readonly _tag: Tag }>

/** UTF-16 units of one reply; what is longer counts as cut off. */
export const maxReply = 1_000_000

/** UTF-16 units of the arguments of one call, as JSON. */
export const maxArguments = 256_000

/** Begins what is kept of arguments that are longer than that. */
export const tooLong = "arguments too long: "

/** The calls of a reply. Wire ids that are empty, taken or no text are replaced by ours, which are unique (RI-084). */
export const requested = (
  reply: ReadonlyArray<ReplyPart>,
  turn: number,
  tools: { readonly [name: string]: ToolRecord },
  taken: (id: string) => boolean
): ReadonlyArray<Call> => {
  const seen = new Set<string>()
  const free = (id: string) => id !== "" && !seen.has(id) && !taken(id)
  return callsOf(reply).map((part, index) => {
    let wireId = part.id === wellFormed(part.id) && free(part.id) ? part.id : `call_${turn}_${index}`
    while (!free(wireId)) wireId += "_"
    seen.add(wireId)
    return {
      callId: callId(turn, index),
      wireId,
      wireName: ToolName.toWire(part.name),
      name: nameOf(part.name, tools),
      arguments: part.params,
      status: "requested",
      starts: 0
    }
  })
}

const nameOf = (wire: string, tools: { readonly [name: string]: ToolRecord }): string =>
  Object.hasOwn(tools, wire) ? wire : (Object.keys(tools).find((name) => tools[name]?.wire === wire) ?? wire)

const failed = (ending: Ending, error: string): Settled => ({ ending, isFailure: true, result: { error } })

const settle = (call: Call, settled: Settled): Call => ({ ...call, status: "settled", settled })

/** A call of a reply that was cut off, rejected or not allowed to call: it gets a result and is not run. */
export const notExecuted = (call: Call, why: string): Call => settle(call, failed("not-executed", why))

/** A guard's no. */
export const refused = (call: Call, guard: string, message: string): Call =>
  settle(call, failed("refused", `Refused by ${guard}: ${message}`))

/** The call after an answer, or the same call if it did not wait for one of that kind. */
export const answered = (call: Call, { answer, by }: EventOf<"CallAnswered">): Call => {
  switch (answer._tag) {
    case "Approve":
      if (call.status !== "asked") return call
      return answer.edited === undefined
        ? { ...call, status: "approved" }
        : { ...call, status: "approved", arguments: answer.edited, edited: true }
    case "Deny":
      return call.status === "asked" ? settle(call, failed("refused", `Denied by ${by}: ${answer.reason}`)) : call
    case "Value":
      if (call.status !== "external") return call
      return settle(call, { ending: "answered", isFailure: false, result: answer.value })
    case "RunAgain":
      return call.status === "in-doubt" ? { ...call, status: "approved" } : call
    case "TakeResult":
      if (call.status !== "in-doubt") return call
      return settle(call, { ending: "answered", isFailure: false, result: answer.value })
    case "TellFailed":
      return call.status === "in-doubt" ? settle(call, failed("answered", `Failed: ${answer.reason}`)) : call
  }
}

const waitsForAnswer = (call: Call) => call.status === "asked" || call.status === "external"

/** The time to answer is over. */
export const expired = (call: Call): Call =>
  waitsForAnswer(call) ? settle(call, failed("expired", "Nobody answered in time; not executed.")) : call

/** The user said something else instead of answering (RI-009). */
export const superseded = (call: Call): Call =>
  waitsForAnswer(call)
    ? settle(call, failed("superseded", "Superseded by a new message from the user; not executed."))
    : call

/** Its start is committed. */
export const started = (call: Call, { child, effect, key, reservations }: EventOf<"ToolCallStarted">): Call => ({
  ...without(call),
  status: "started",
  effect,
  key,
  starts: call.starts + 1,
  // A sub-agent's call starts again whenever it goes on, and is not judged again.
  ...(child === undefined ? undefined : { child, ...defined({ reservations }) })
})

/** A call whose sub-agent rested until then may go on. */
export const due = (call: Call, at: number): Call =>
  call.status === "child" && call.retry !== undefined && call.retry.wakeAt <= at
    ? { ...without(call), status: "approved" }
    : call

/** What came between two starts is forgotten: the sub-agent is looked at anew. */
const without = (call: Call): Call => {
  const copy: { -readonly [Field in keyof Call]: Call[Field] } = { ...call }
  delete copy.retry
  delete copy.woken
  return copy
}

/** The call with its result. */
export const completed = (call: Call, event: EventOf<"ToolCallCompleted">): Call => ({
  ...call,
  status: "completed",
  isFailure: event.isFailure,
  result: event.result,
  ...defined({ shown: event.shown, modelOutput: event.modelOutput })
})

/** What the model is told about the calls, in call order. */
export const results = (calls: ReadonlyArray<Call>): ReadonlyArray<Messages.Result> =>
  calls.map(({ isFailure = true, modelOutput, result, shown, wireId, wireName }) => ({
    wireId,
    wireName,
    isFailure,
    result: shown ?? result,
    ...defined({ modelOutput })
  }))
