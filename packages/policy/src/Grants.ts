/**
 * Folds from the events what a person has granted for longer than one call, and what the model has not been told yet.
 *
 * What it keeps grows with the answers of persons, never with the length of the Run.
 *
 * @since 0.1.0
 */
import type { Guard, RunEvent } from "@waystone/core"

/** What was asked, and not answered yet. */
interface Request {
  readonly name: string
  /** One for each guard that asked. */
  readonly keys: ReadonlyArray<string>
  /** Its call did not wait. */
  readonly deferred: boolean
  readonly expiresAt?: number
}

interface Grant {
  /** The call that was answered. */
  readonly from: string
  readonly by: string
}

/** For one call more; `usedBy` is that call. */
interface Once extends Grant {
  readonly usedBy?: string
}

export interface Memory {
  readonly requests: { readonly [callId: string]: Request }
  /** For the rest of the Run, by key. */
  readonly always: { readonly [key: string]: Grant }
  readonly once: { readonly [key: string]: Once }
  /** Answers to calls that did not wait. */
  readonly news: ReadonlyArray<string>
}

export const none: Memory = { requests: {}, always: {}, once: {}, news: [] }

type Asked = Pick<Guard.Question, "guard" | "digest">

/** The same guard asks about the same tool with the same arguments. */
const keyOf = ({ digest, guard }: Asked): string => `${digest} ${guard}`

/** What stands in the journal of a grant that lets a call pass. */
export interface Note extends Grant {
  readonly [field: string]: string
  readonly scope: "run" | "once"
  readonly key: string
}

/** The grant for what is asked about this call; one that lets one call pass still holds for that call after a crash. */
export const find = ({ always, once }: Memory, asked: Asked, callId: string): Note | undefined => {
  const key = keyOf(asked)
  const forAll = always[key]
  if (forAll !== undefined) return { scope: "run", key, from: forAll.from, by: forAll.by }
  const forOne = once[key]
  if (forOne === undefined || (forOne.usedBy !== undefined && forOne.usedBy !== callId)) return undefined
  return { scope: "once", key, from: forOne.from, by: forOne.by }
}

/** True if the same question of an earlier call can still be answered. */
export const isOpen = ({ requests }: Memory, asked: Asked, now: number): boolean =>
  Object.values(requests).some(
    ({ deferred, expiresAt = Number.POSITIVE_INFINITY, keys }) =>
      deferred && keys.includes(keyOf(asked)) && expiresAt > now
  )

/** `name` is the guard whose verdicts use the grants up. */
export const fold =
  (name: string) =>
  (memory: Memory, event: RunEvent.RunEvent): Memory => {
    switch (event._tag) {
      case "ApprovalRequested":
        return event.name === "" ? memory : asked(memory, event)
      case "CallAnswered":
        return answered(memory, event)
      case "WaitExpired":
        return expired(memory, event.callId)
      case "ToolCallCompleted":
        return memory.requests[event.callId]?.deferred === false ? closed(memory, event.callId) : memory
      case "VerdictGiven":
        return event.guard === name ? given(memory, event) : memory
      case "RunFinished":
        return { ...memory, requests: {} }
      default:
        return memory
    }
  }

type Of<Tag extends RunEvent.RunEvent["_tag"]> = RunEvent.Of<Tag>

const asked = (memory: Memory, event: Of<"ApprovalRequested">): Memory => {
  const { also = [], callId, digest, expiresAt, mode, name } = event
  const until = expiresAt === undefined ? {} : { expiresAt }
  const keys = [event.guard, ...also].map((guard) => keyOf({ guard, digest }))
  const request: Request = { name, keys, deferred: mode === "tell-model", ...until }
  return { ...memory, requests: { ...memory.requests, [callId]: request } }
}

const closed = (memory: Memory, callId: string): Memory => {
  const { [callId]: _, ...requests } = memory.requests
  return { ...memory, requests }
}

const answered = (memory: Memory, { answer, by, callId }: Of<"CallAnswered">): Memory => {
  const request = memory.requests[callId]
  if (request === undefined) return memory
  const next = closed(memory, callId)
  const { deferred, keys, name } = request
  const grants: { readonly [key: string]: Grant } = Object.fromEntries(keys.map((key) => [key, { from: callId, by }]))
  if (answer._tag === "Approve") {
    const always = answer.scope === "run" ? { ...next.always, ...grants } : next.always
    if (!deferred) return { ...next, always }
    const news = `${by} confirmed ${name} (${callId}). It is executed when you call it again with the same arguments.`
    return { ...next, always, once: { ...next.once, ...grants }, news: [...next.news, news] }
  }
  if (answer._tag !== "Deny" || !deferred) return next
  const news = `${by} refused ${name} (${callId}): ${answer.reason}. Do not call it again with the same arguments.`
  return { ...next, news: [...next.news, news] }
}

const expired = (memory: Memory, callId: string): Memory => {
  const request = memory.requests[callId]
  if (request === undefined) return memory
  const next = closed(memory, callId)
  if (!request.deferred) return next
  return { ...next, news: [...next.news, `Nobody confirmed ${request.name} (${callId}) in time; it was not executed.`] }
}

const given = (memory: Memory, { note, on, verdict }: Of<"VerdictGiven">): Memory => {
  if (verdict === "Nudge") return { ...memory, news: [] }
  if (typeof note !== "object" || note === null || !("key" in note) || typeof note["key"] !== "string") return memory
  const used = memory.once[note["key"]]
  if (note["scope"] !== "once" || used === undefined) return memory
  return { ...memory, once: { ...memory.once, [note["key"]]: { ...used, usedBy: on } } }
}
