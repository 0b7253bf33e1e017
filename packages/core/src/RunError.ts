/**
 * Says how a verb can fail: exactly two classes, each with a tagged reason.
 *
 * `Retryable`: nothing is lost, come back. `Fatal`: do not. Both are schemas, so they can be stored and sent; they carry
 * no stack and no secret, and their messages are bounded. Each verb's signature lists only the reasons that it can have.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const RunId = { runId: Schema.String }
const Call = { ...RunId, callId: Schema.String }

// ---- reasons to come back

/** The model could not be reached, or refused for now, after all retries. */
export class ModelUnavailable extends Schema.TaggedError<ModelUnavailable>()("ModelUnavailable", {
  ...RunId,
  detail: Schema.String
}) {
  override readonly message = `Run ${this.runId}: the model is unavailable (${this.detail}). Nothing is lost; resume later.`
}

/** The model did not answer in time, after all retries. */
export class ModelTimeout extends Schema.TaggedError<ModelTimeout>()("ModelTimeout", {
  ...RunId,
  detail: Schema.String
}) {
  override readonly message = `Run ${this.runId}: the model did not answer in time (${this.detail}). Nothing is lost; resume later.`
}

/**
 * The checkpoint store did not answer, or cannot for now. What was asked may have happened, whole: an append is never half
 * written, but it may be there.
 */
export class StoreUnavailable extends Schema.TaggedError<StoreUnavailable>()("StoreUnavailable", {
  detail: Schema.String
}) {
  override readonly message = `The checkpoint store is unavailable: ${this.detail}`
}

/** Another Attempt drives this Run. */
export class RunBusy extends Schema.TaggedError<RunBusy>()("RunBusy", { ...RunId, owner: Schema.String }) {
  override readonly message = `Run ${this.runId} is being driven by ${this.owner}. Wait for it, or use Run.events to watch.`
}

/** A tool's handler says that the same call may succeed later. Retried where the tool's effect class allows it. */
export class ToolUnavailable extends Schema.TaggedError<ToolUnavailable>()("ToolUnavailable", {
  detail: Schema.String
}) {
  override readonly message = this.detail
}

// ---- reasons to stop

/** The provider refused the request itself (bad request, authentication, quota), or stayed away for eight rests. */
export class ModelRejected extends Schema.TaggedError<ModelRejected>()("ModelRejected", {
  ...RunId,
  detail: Schema.String,
  status: Schema.optionalKey(Schema.Number),
  /** It refused nothing: it was away, or too busy, until the Run had rested eight times in a row. */
  away: Schema.optionalKey(Schema.Literal(true))
}) {
  override readonly message = `Run ${this.runId}: no answer from the provider${this.status === undefined ? "" : ` (${this.status})`}: ${this.detail}`
}
/** The model refused to answer. */
export class ModelRefusal extends Schema.TaggedError<ModelRefusal>()("ModelRefusal", {
  ...RunId,
  detail: Schema.String
}) {
  override readonly message = `Run ${this.runId}: the model refused: ${this.detail}`
}
/** The final output never matched the agent's schema. */
export class OutputInvalid extends Schema.TaggedError<OutputInvalid>()("OutputInvalid", {
  ...RunId,
  attempts: Schema.Number,
  issues: Schema.String
}) {
  override readonly message = `Run ${this.runId}: ${this.attempts} replies did not match the output schema: ${this.issues}`
}
/** The model answered nothing, or only reasoning, three times in a row. */
export class EmptyResponse extends Schema.TaggedError<EmptyResponse>()("EmptyResponse", RunId) {
  override readonly message = `Run ${this.runId}: the model answered nothing three times in a row.`
}
/** Stored bytes of a Run cannot be read; `seq` is 0 where it is no event's. They are never changed, and deleted only by `Run.remove(…, { force: true })`. */
export class CheckpointCorrupt extends Schema.TaggedError<CheckpointCorrupt>()("CheckpointCorrupt", {
  ...RunId,
  seq: Schema.Number,
  path: Schema.String
}) {
  override readonly message = `Run ${this.runId}${this.seq === 0 ? "" : `: event ${this.seq}`} is damaged at ${this.path}. It was left as it is.`
}
/** The store as a whole cannot be read (its file, its tables), so no Run in it can be. Nothing was changed or deleted. */
export class StoreCorrupt extends Schema.TaggedError<StoreCorrupt>()("StoreCorrupt", {
  /** Which one: a path, a URL without secrets. */
  store: Schema.String,
  /** What is wrong with it. */
  detail: Schema.String
}) {
  override readonly message = `The checkpoint store ${this.store} is damaged: ${this.detail}. It was left as it is.`
}
/** Stored by a newer version of Waystone. */
export class CheckpointTooNew extends Schema.TaggedError<CheckpointTooNew>()("CheckpointTooNew", {
  ...RunId,
  seq: Schema.Number,
  version: Schema.Number
}) {
  override readonly message = `Run ${this.runId}: event ${this.seq} has format version ${this.version}. Upgrade @waystone/core.`
}
/** A fork was asked for at a position that is not the end of an append. */
export class CheckpointNotFound extends Schema.TaggedError<CheckpointNotFound>()("CheckpointNotFound", {
  ...RunId,
  at: Schema.Number
}) {
  override readonly message = `Run ${this.runId} has no checkpoint at ${this.at}: it must be the end of an append (see Run.checkpoints).`
}
/** Another Attempt took the Run over, or the Run is `gone`: it was removed meanwhile. This Attempt ended without effect. */
export class OwnershipLost extends Schema.TaggedError<OwnershipLost>()("OwnershipLost", {
  ...RunId,
  gone: Schema.optionalKey(Schema.Literal(true))
}) {
  override readonly message =
    this.gone === true
      ? `There is no Run ${this.runId} any more: it was removed while this attempt drove it. This attempt ended, and wrote nothing more.`
      : `Run ${this.runId} was taken over by another owner. This attempt ended; the Run goes on there.`
}
/** The id is in use for another agent or task. */
export class RunExists extends Schema.TaggedError<RunExists>()("RunExists", RunId) {
  override readonly message = `Run ${this.runId} exists with another agent or task. Choose another run id.`
}
/** The id is not one: 1 to 128 of `A-Z a-z 0-9 . _ : -`. */
export class RunIdInvalid extends Schema.TaggedError<RunIdInvalid>()("RunIdInvalid", RunId) {
  override readonly message = `"${this.runId.slice(0, 140)}" is no run id: 1 to 128 of A-Z a-z 0-9 . _ : -`
}
/** There is no Run of that id. */
export class RunNotFound extends Schema.TaggedError<RunNotFound>()("RunNotFound", RunId) {
  override readonly message = `There is no Run ${this.runId}.`
}
/** The Run has ended. */
export class RunTerminal extends Schema.TaggedError<RunTerminal>()("RunTerminal", { ...RunId, status: Schema.String }) {
  override readonly message = `Run ${this.runId} is ${this.status}.`
}
/** The Run has not ended. */
export class RunNotTerminal extends Schema.TaggedError<RunNotTerminal>()("RunNotTerminal", {
  ...RunId,
  status: Schema.String
}) {
  override readonly message = `Run ${this.runId} is ${this.status}: cancel it first${this.status === "waiting" ? ", or use force" : ""}.`
}
/** It is the Run of a sub-agent: it is driven, answered, cancelled and removed through its root, whose id this names. */
export class RunIsChild extends Schema.TaggedError<RunIsChild>()("RunIsChild", { ...RunId, rootId: Schema.String }) {
  override readonly message = `Run ${this.runId} is the Run of a sub-agent: do this with its root, ${this.rootId}.`
}
/** That call waits for no such answer. */
export class NotPending extends Schema.TaggedError<NotPending>()("NotPending", {
  ...Call,
  path: Schema.optionalKey(Schema.Array(Schema.String))
}) {
  override readonly message = `Run ${this.runId}: ${[...(this.path ?? []), this.callId].join("/")} waits for no such answer.`
}
/** That call was decided before; `decision` is what counts. */
export class AlreadyDecided extends Schema.TaggedError<AlreadyDecided>()("AlreadyDecided", {
  ...Call,
  decision: Schema.Json
}) {
  override readonly message = `Run ${this.runId}: ${this.callId} was decided before.`
}
/** The answer names other arguments than the ones that wait. */
export class DigestMismatch extends Schema.TaggedError<DigestMismatch>()("DigestMismatch", Call) {
  override readonly message = `Run ${this.runId}: the digest is not that of ${this.callId}. Look at the call again before answering.`
}
/** The time to answer is over. */
export class ApprovalExpired extends Schema.TaggedError<ApprovalExpired>()("ApprovalExpired", Call) {
  override readonly message = `Run ${this.runId}: the time to answer ${this.callId} is over.`
}
/** This person may not answer. */
export class MayNotAnswer extends Schema.TaggedError<MayNotAnswer>()("MayNotAnswer", { ...Call, by: Schema.String }) {
  override readonly message = `Run ${this.runId}: ${this.by} may not answer ${this.callId}.`
}
/** The value or the edited arguments do not fit the tool's schema. */
export class AnswerInvalid extends Schema.TaggedError<AnswerInvalid>()("AnswerInvalid", {
  ...Call,
  issues: Schema.String
}) {
  override readonly message = `Run ${this.runId}: the answer to ${this.callId} does not fit: ${this.issues}`
}
/** The Run killed its process again and again in one place. */
export class Poisoned extends Schema.TaggedError<Poisoned>()("Poisoned", { ...RunId, recoveries: Schema.Number }) {
  override readonly message = `Run ${this.runId} died ${this.recoveries} times in one place. Find out why before you reopen it.`
}
/** A guard or interceptor that this Run was started with is not there. */
export class PluginMissing extends Schema.TaggedError<PluginMissing>()("PluginMissing", {
  ...RunId,
  missing: Schema.Array(Schema.String)
}) {
  override readonly message = `Run ${this.runId} was started with ${this.missing.join(", ")}. Provide the Layer, or resume with { without: [...] }.`
}
/** The agent's tools cannot be used together, or its configuration has a field out of range. */
export class ToolkitInvalid extends Schema.TaggedError<ToolkitInvalid>()("ToolkitInvalid", {
  agent: Schema.String,
  detail: Schema.String
}) {
  override readonly message = `Agent ${this.agent}: ${this.detail}`
}
/** A tool's handler ended the Run; `data` is the tool's own error. */
export class ToolFatal extends Schema.TaggedError<ToolFatal>()("ToolFatal", {
  tool: Schema.String,
  detail: Schema.String,
  data: Schema.optionalKey(Schema.Json)
}) {
  override readonly message = this.tool === "" ? this.detail : `Tool ${this.tool} ended the Run: ${this.detail}`
}
/** The application's own input cannot be stored as JSON. */
export class EncodeFailed extends Schema.TaggedError<EncodeFailed>()("EncodeFailed", {
  what: Schema.String,
  detail: Schema.String
}) {
  override readonly message = `${this.what} cannot be stored: ${this.detail}`
}
/** A field of a verb's input is out of range. Nothing was asked of the store. */
export class InputInvalid extends Schema.TaggedError<InputInvalid>()("InputInvalid", {
  /** Which one, with its verb: `Run.list: after.updatedAt`. */
  field: Schema.String,
  detail: Schema.String
}) {
  override readonly message = `${this.field} ${this.detail}`
}

export const RetryableReason = Schema.Union([
  ModelUnavailable,
  ModelTimeout,
  StoreUnavailable,
  RunBusy,
  ToolUnavailable
])
export type RetryableReason = typeof RetryableReason.Type

export const FatalReason = Schema.Union([
  ModelRejected,
  ModelRefusal,
  OutputInvalid,
  EmptyResponse,
  CheckpointCorrupt,
  StoreCorrupt,
  CheckpointTooNew,
  CheckpointNotFound,
  OwnershipLost,
  RunExists,
  RunIdInvalid,
  RunNotFound,
  RunTerminal,
  RunNotTerminal,
  RunIsChild,
  NotPending,
  AlreadyDecided,
  DigestMismatch,
  ApprovalExpired,
  MayNotAnswer,
  AnswerInvalid,
  Poisoned,
  PluginMissing,
  ToolkitInvalid,
  ToolFatal,
  EncodeFailed,
  InputInvalid
])
export type FatalReason = typeof FatalReason.Type

/** Nothing is lost: come back, at `wakeAt` (epoch ms) if it is given. */
export class Retryable extends Schema.TaggedError<Retryable>()("Retryable", {
  reason: RetryableReason,
  wakeAt: Schema.optionalKey(Schema.Number)
}) {
  override readonly message = this.reason.message
}

/** Coming back will not help. */
export class Fatal extends Schema.TaggedError<Fatal>()("Fatal", { reason: FatalReason }) {
  override readonly message = this.reason.message
}

/** A `Retryable` that can only have these reasons. */
export interface RetryableFor<Tag extends RetryableReason["_tag"]> extends Retryable {
  readonly reason: Extract<RetryableReason, { readonly _tag: Tag }>
}

/** A `Fatal` that can only have these reasons. */
export interface FatalFor<Tag extends FatalReason["_tag"]> extends Fatal {
  readonly reason: Extract<FatalReason, { readonly _tag: Tag }>
}

/** What a reason is as a verb's error. */
export type Lift<Reason> = Reason extends RetryableReason
  ? RetryableFor<Reason["_tag"]>
  : Reason extends FatalReason
    ? FatalFor<Reason["_tag"]>
    : Reason

const retryableTags: ReadonlySet<string> = new Set<RetryableReason["_tag"]>([
  "ModelUnavailable",
  "ModelTimeout",
  "StoreUnavailable",
  "RunBusy",
  "ToolUnavailable"
])

const isRetryable = (reason: RetryableReason | FatalReason): reason is RetryableReason => retryableTags.has(reason._tag)

/** The class of a reason; its type knows which reason it is. */
export const classOf = <Reason extends RetryableReason | FatalReason>(reason: Reason): Lift<Reason> => {
  const error = isRetryable(reason) ? new Retryable({ reason }) : new Fatal({ reason })
  return error as Lift<Reason>
}

/** Inside, effects fail with reasons; a verb fails with their classes. */
export const lift = <A, Reason extends RetryableReason | FatalReason, R>(
  effect: Effect.Effect<A, Reason, R>
): Effect.Effect<A, Lift<Reason>, R> => Effect.mapError(effect, classOf)
