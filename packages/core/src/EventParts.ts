/**
 * Names the shapes that events share: replies, tools, tries, answers, waits.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { Usage } from "./Usage.ts"

const { Array: List, Boolean: Bool, Json, Number: Num, Record, String: Str, Struct, TaggedStruct, optionalKey } = Schema

/** Whatever a provider attaches to a part. */
export const Metadata = Record(Str, Json)
const Options = { options: optionalKey(Metadata) }

/** One part of a model's reply, in effect/ai's encoded form, provider metadata included (RI-092). */
export const ReplyPart = Schema.Union([
  Struct({ type: Schema.Literal("text"), text: Str, ...Options }),
  Struct({ type: Schema.Literal("reasoning"), text: Str, ...Options }),
  Struct({ type: Schema.Literal("file"), mediaType: Str, fileName: optionalKey(Str), data: Str, ...Options }),
  Struct({ type: Schema.Literal("tool-call"), id: Str, name: Str, params: Json, providerExecuted: Bool, ...Options }),
  Struct({
    type: Schema.Literal("tool-result"),
    id: Str,
    name: Str,
    isFailure: Bool,
    result: Json,
    providerExecuted: Bool,
    ...Options
  })
])
export type ReplyPart = typeof ReplyPart.Type

/** What a user says: text, or text and file parts in effect/ai's encoded form. */
export const Content = Schema.Union([Str, List(Json)])
export type Content = typeof Content.Type

export const EffectClass = Schema.Literals(["readonly", "idempotent", "unsafe"])
/** What running a tool twice would do: nothing, the same again, or harm. */
export type EffectClass = typeof EffectClass.Type

export const ToolRecord = Struct({
  digest: Str,
  effect: EffectClass,
  wire: optionalKey(Str),
  openWorld: optionalKey(Bool),
  destructive: optionalKey(Bool),
  external: optionalKey(Bool),
  polling: optionalKey(Bool),
  agent: optionalKey(Str),
  share: optionalKey(Record(Str, Num))
})
export type ToolRecord = typeof ToolRecord.Type

/** What guards set aside before a step, in their own units. */
export const Reservations = Record(Str, Record(Str, Num))
export type Reservations = typeof Reservations.Type

export const Failure = Struct({
  tag: Str,
  message: Str,
  retryable: Bool,
  status: optionalKey(Num),
  retryAfterMs: optionalKey(Num)
})
export type Failure = typeof Failure.Type

/** One request to a provider. */
export const Try = Struct({
  at: Num,
  endedAt: Num,
  firstPartAt: optionalKey(Num),
  provider: optionalKey(Str),
  model: optionalKey(Str),
  server: optionalKey(Str),
  responseModel: optionalKey(Str),
  failure: optionalKey(Failure),
  usage: optionalKey(Usage),
  costNanoUsd: optionalKey(Num)
})
export type Try = typeof Try.Type

export const Answer = Schema.Union([
  TaggedStruct("Approve", {
    digest: Str,
    edited: optionalKey(Json),
    scope: optionalKey(Schema.Literals(["call", "run"]))
  }),
  TaggedStruct("Deny", { digest: Str, reason: Str }),
  TaggedStruct("Value", { value: Json }),
  TaggedStruct("RunAgain", { digest: optionalKey(Str) }),
  TaggedStruct("TakeResult", { value: Json, digest: optionalKey(Str) }),
  TaggedStruct("TellFailed", { reason: Str, digest: optionalKey(Str) })
])
/** What a person or a system answers to a call that waits. */
export type Answer = typeof Answer.Type

export const Wait = Struct({
  id: Str,
  kind: Schema.Literals(["approval", "external", "in-doubt"]),
  since: Num,
  name: optionalKey(Str),
  digest: optionalKey(Str),
  reason: optionalKey(Str),
  guard: optionalKey(Str),
  expiresAt: optionalKey(Num),
  path: optionalKey(List(Str))
})
export type Wait = typeof Wait.Type

export const Principal = Struct({ id: Str, roles: optionalKey(List(Str)) })
/** On whose behalf a Run acts. */
export type Principal = typeof Principal.Type

export const Parent = Struct({
  runId: Str,
  callId: Str,
  rootId: Str,
  depth: Num,
  agents: List(Str),
  share: optionalKey(Reservations)
})
export type Parent = typeof Parent.Type

/** Limits that a reopened Run has instead of its agent's. `activeTimeMs` is in milliseconds. */
export const LimitChanges = Struct({
  maxTurns: optionalKey(Num),
  maxConsecutiveFailures: optionalKey(Num),
  maxCallsPerReply: optionalKey(Num),
  maxRepeats: optionalKey(Num),
  maxTreeTurns: optionalKey(Num),
  activeTimeMs: optionalKey(Num)
})
export type LimitChanges = typeof LimitChanges.Type

export const Ending = Schema.Literals([
  "executed",
  "reconciled",
  "invalid",
  "refused",
  "answered",
  "expired",
  "superseded",
  "cancelled",
  "unknown",
  "not-executed",
  "deferred"
])
/** How a call came to its result. */
export type Ending = typeof Ending.Type

export const RejectKind = Schema.Literals(["empty", "truncated", "output", "protocol"])
/** Why a reply was not accepted. */
export type RejectKind = typeof RejectKind.Type

/** What a sub-agent's Run came to. */
export const ChildTotals = Struct({
  runId: Str,
  usage: Usage,
  costNanoUsd: optionalKey(Num),
  costUnknown: optionalKey(Schema.Literal(true)),
  turns: Num,
  calls: optionalKey(Num),
  used: optionalKey(Reservations),
  who: optionalKey(Str)
})
export type ChildTotals = typeof ChildTotals.Type

export const Retry = Struct({ wakeAt: Num, count: Num, failure: Failure })
export type Retry = typeof Retry.Type
