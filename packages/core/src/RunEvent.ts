/**
 * Names everything that can happen to a Run: the events of the journal, their fields and the format version.
 *
 * docs/events.md is the same table in words. A kind is a fact (it happened; staged again after a conflict) or an intent
 * (it announces what happens next; dropped after a conflict). What is stored is one JSON object a line.
 *
 * Invariants
 *   E1  An older format is migrated by ordered steps; a newer one is never guessed at.
 *   E2  What does not have the shape of its kind is reported with the path of the first bad field.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import {
  Answer,
  ChildTotals,
  Content,
  EffectClass,
  Ending,
  Failure,
  LimitChanges,
  Metadata,
  Parent,
  Principal,
  RejectKind,
  ReplyPart,
  Reservations,
  Retry,
  ToolRecord,
  Try,
  Wait
} from "./EventParts.ts"
import { checker } from "./EventShape.ts"
import { StopReason, StoredOutcome } from "./Outcome.ts"
import { Usage } from "./Usage.ts"

const { Array: List, Boolean: Bool, Json, Number: Num, Record, String: Str, Struct, TaggedStruct, optionalKey } = Schema

export * from "./EventParts.ts"

/** The format that this version writes. */
export const version = 1

const cost = { costNanoUsd: optionalKey(Num) }
const call = { callId: Str, name: Str }
const event = <const Tag extends string, const Fields extends Schema.Struct.Fields>(tag: Tag, fields: Fields) =>
  TaggedStruct(tag, { at: Num, ...fields })

/** One past-tense fact or intent of a Run. `at` is epoch ms on the writer's clock. */
export const RunEvent = Schema.Union([
  event("RunAccepted", {
    agent: Str,
    version: Str,
    task: Content,
    principal: optionalKey(Principal),
    session: optionalKey(Str),
    parent: optionalKey(Parent)
  }),
  event("RunStarted", {
    agent: Str,
    version: Str,
    tools: Record(Str, ToolRecord),
    plugins: List(Str),
    answering: optionalKey(List(Str))
  }),
  event("AttemptStarted", {
    attempt: Num,
    owner: Str,
    recovered: Bool,
    version: optionalKey(Str),
    plugins: optionalKey(List(Str)),
    without: optionalKey(List(Str)),
    answering: optionalKey(List(Str)),
    caller: optionalKey(Struct({ traceId: Str, spanId: Str, sampled: Bool }))
  }),
  event("ToolsChanged", { tools: Record(Str, ToolRecord) }),
  event("TurnStarted", {
    turn: Num,
    stream: Bool,
    provider: optionalKey(Str),
    model: optionalKey(Str),
    server: optionalKey(Str),
    settings: optionalKey(Metadata),
    reservations: optionalKey(Reservations),
    final: optionalKey(StopReason)
  }),
  event("TurnCompleted", {
    turn: Num,
    reply: List(ReplyPart),
    finish: Str,
    usage: Usage,
    ...cost,
    firstPartAt: optionalKey(Num),
    tries: optionalKey(List(Try)),
    responseId: optionalKey(Str),
    responseModel: optionalKey(Str),
    output: optionalKey(Json),
    rejected: optionalKey(Struct({ kind: RejectKind, feedback: Str }))
  }),
  event("TurnFailed", { turn: Num, failure: Failure, tries: List(Try), usage: Usage, ...cost }),
  event("ToolCallStarted", {
    ...call,
    effect: EffectClass,
    key: Str,
    arguments: optionalKey(Json),
    reservations: optionalKey(Reservations),
    child: optionalKey(Struct({ runId: Str }))
  }),
  event("ToolCallCompleted", {
    ...call,
    isFailure: Bool,
    result: Json,
    ending: Ending,
    startedAt: optionalKey(Num),
    tries: optionalKey(Num),
    error: optionalKey(Str),
    shown: optionalKey(Str),
    modelOutput: optionalKey(List(Json)),
    fatal: optionalKey(Json),
    child: optionalKey(ChildTotals)
  }),
  event("ApprovalRequested", {
    ...call,
    digest: Str,
    guard: Str,
    also: optionalKey(List(Str)),
    reason: optionalKey(Str),
    expiresAt: optionalKey(Num),
    reservations: optionalKey(Reservations),
    mode: optionalKey(Schema.Literal("tell-model"))
  }),
  event("ExternalRequested", { ...call, digest: Str, expiresAt: optionalKey(Num) }),
  event("CallInDoubt", { ...call, digest: optionalKey(Str) }),
  event("CallRequeued", { callId: Str, because: Schema.Literals(["idempotent", "never-started"]) }),
  event("CallAnswered", { callId: Str, answer: Answer, by: Str }),
  event("WaitExpired", { callId: Str }),
  event("MessageReceived", { id: Str, content: Content, by: optionalKey(Str) }),
  event("PauseRequested", { by: Str }),
  event("PauseLifted", { by: Str }),
  event("CancelRequested", { by: Str, reason: optionalKey(Str) }),
  event("VerdictGiven", {
    guard: Str,
    on: Str,
    verdict: Schema.Literals(["Allow", "Deny", "Ask", "Nudge", "Stop"]),
    message: optionalKey(Str),
    stop: optionalKey(StopReason),
    note: optionalKey(Json)
  }),
  event("RunSuspended", { retry: optionalKey(Retry) }),
  event("RunReopened", { by: Str, limits: optionalKey(LimitChanges) }),
  event("RunFinished", { outcome: StoredOutcome }),
  event("RunForked", { from: Struct({ runId: Str, seq: Num }), session: optionalKey(Str) }),
  event("ChildSuspended", { callId: Str, runId: Str, waits: List(Wait), retry: optionalKey(Retry) }),
  event("ChildWoken", { callId: Str, id: Str, path: List(Str) }),
  event("CompactionStarted", {
    throughTurn: Num,
    clearedTurn: optionalKey(Num),
    provider: optionalKey(Str),
    model: optionalKey(Str),
    reservations: optionalKey(Reservations)
  }),
  event("CompactionCompleted", {
    throughTurn: Num,
    clearedTurn: Num,
    summary: optionalKey(Str),
    usage: optionalKey(Usage),
    ...cost,
    tries: optionalKey(List(Try)),
    responseModel: optionalKey(Str)
  }),
  event("CompactionFailed", { throughTurn: Num, failure: Failure, usage: Usage, ...cost, tries: List(Try) })
])
export type RunEvent = typeof RunEvent.Type

/** The event of one kind. */
export type Of<Tag extends RunEvent["_tag"]> = Extract<RunEvent, { readonly _tag: Tag }>

/** An event before it is stamped with the time. */
export type Draft = RunEvent extends infer Event ? (Event extends unknown ? Omit<Event, "at"> : never) : never

/** An event with its time. */
export const stamp = (draft: Draft, at: number): RunEvent => Object.assign({ _tag: draft._tag, at }, draft) as RunEvent

/** The kinds that announce what happens next; a conflict drops them. */
export const intents: ReadonlySet<RunEvent["_tag"]> = new Set([
  "TurnStarted",
  "ToolCallStarted",
  "ApprovalRequested",
  "ExternalRequested",
  "CallInDoubt",
  "CallRequeued",
  "WaitExpired",
  "VerdictGiven",
  "RunSuspended",
  "RunFinished",
  "ChildSuspended",
  "CompactionStarted"
] as const)

/** True for an event that happened whatever else happened. */
export const isFact = (event: RunEvent): boolean => !intents.has(event._tag)

/** The stored line. JSON escapes NUL and lone surrogates, so it is well-formed text whatever the model wrote (RI-042). */
export const encode = (event: RunEvent): string => `{"v":${version},${JSON.stringify(event).slice(1)}`

/** Why a line is not an event of this version. */
export type Unreadable =
  | { readonly _tag: "Corrupt"; readonly path: string }
  | { readonly _tag: "TooNew"; readonly version: number }

/** Brings a record of version n to n + 1. */
export type Migration = (record: { readonly [field: string]: unknown }) => { readonly [field: string]: unknown }

/** Step n - 1 migrates version n. There is none yet: version 1 is the first. */
export const migrations: ReadonlyArray<Migration> = []

const shape = checker<RunEvent>(RunEvent)

/** The path of the first field of a draft that a reader would refuse; undefined if it can be stored. */
export const check = (draft: Draft): string | undefined => {
  try {
    return Result.match(decode(encode(stamp(draft, 0))), { onSuccess: () => undefined, onFailure: pathOf })
  } catch {
    return "$" // no JSON at all
  }
}

const pathOf = (unreadable: Unreadable): string => (unreadable._tag === "Corrupt" ? unreadable.path : "$.v")

/**
 * Reads a stored line. Every field that is there is checked by shape, which costs a third of a full schema decode
 * (FACTS 22); messages are decoded when they enter the Window.
 */
export const decode = (
  line: string,
  steps: ReadonlyArray<Migration> = migrations,
  current = steps.length + 1
): Result.Result<RunEvent, Unreadable> => {
  let record: unknown
  try {
    record = JSON.parse(line)
  } catch {
    return Result.fail({ _tag: "Corrupt", path: "$" })
  }
  if (typeof record !== "object" || record === null) return Result.fail({ _tag: "Corrupt", path: "$" })
  const found = "v" in record ? record.v : undefined
  if (typeof found !== "number" || !Number.isInteger(found) || found < 1) {
    return Result.fail({ _tag: "Corrupt", path: "$.v" })
  }
  if (found > current) return Result.fail({ _tag: "TooNew", version: found })
  const { v: _, ...body }: { readonly [field: string]: unknown } = { ...record }
  const migrated = steps.slice(found - 1).reduce((older, step) => step(older), body)
  return Result.mapError(shape(migrated), (path) => ({ _tag: "Corrupt", path }))
}
