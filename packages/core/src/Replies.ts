/**
 * Reads what a model answered: the parts to store, the finish reason, the usage, and why a reply is not acceptable.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as AiError from "effect/ai/AiError"
import * as Prompt from "effect/ai/Prompt"
import * as Response from "effect/ai/Response"
import { checker } from "./EventShape.ts"
import type { Reply } from "./Interceptor.ts"
import { maxArguments, maxReply, tooLong } from "./Calls.ts"
import { failureOf, type Table } from "./ModelRetry.ts"
import { type Failure, type Of, ReplyPart } from "./RunEvent.ts"
import * as Text from "./Text.ts"
import * as ToolResult from "./ToolResult.ts"

/** How a try failed: with an error, or because it was stopped. */
export type TryError = AiError.AiError | "stopped"

export const errorOf = (exit: Exit.Exit<unknown, AiError.AiError>): TryError | undefined => {
  if (Exit.isSuccess(exit)) return undefined
  const failed = exit.cause.reasons.find(Cause.isFailReason)
  return failed === undefined ? "stopped" : failed.error
}

/** A failure as an event keeps it. */
export const stored = (error: TryError, table: Table, now: number): Failure => {
  if (error === "stopped") return { tag: "Interrupted", message: "stopped", retryable: true }
  const { class: _, ...failure } = failureOf(error, table, now)
  return failure
}

/** A bug below the model's interface; it fails the Turn, never the process. */
export const defect = (defect: unknown): AiError.AiError =>
  AiError.make({
    module: "Waystone",
    method: "turn",
    reason: new AiError.UnknownError({ description: Text.safeMessage(ToolResult.messageOf(defect), 500) })
  })

/** The provider may have worked for a request that was stopped, broke off or got no legible reply, not if it refused. */
export const wasInFlight = (error: TryError): boolean =>
  error === "stopped" ||
  error.reason._tag === "InvalidOutputError" ||
  (error.reason._tag === "UnknownError" && "waystone" in error.reason.metadata)

/** UTF-16 units of all text of a prompt, roughly. */
export const lengthOf = (prompt: Prompt.Prompt): number =>
  prompt.content.reduce((sum, message) => sum + JSON.stringify(message.content).length, 0)

/** What the provider said about usage. */
export const usageOf = (parts: ReadonlyArray<Response.AnyPart>): Response.Usage | undefined =>
  parts.findLast((part) => part.type === "finish")?.usage

const spent = Schema.decodeUnknownOption(
  Schema.Struct({ metadata: Schema.Struct({ waystone: Schema.Struct({ usage: Response.Usage }) }) })
)

/** What a reply cost that its adapter made an error of, a refusal for one: `waystone.usage` in the reason's metadata. */
export const usageOfError = ({ reason }: AiError.AiError): Response.Usage | undefined =>
  Option.getOrUndefined(spent(reason))?.metadata.waystone.usage

/** A reply as TurnCompleted keeps it. */
export const read = ({
  firstPartAt,
  parts
}: Reply): Pick<
  Of<"TurnCompleted">,
  "reply" | "finish" | "firstPartAt" | "responseId" | "responseModel" | "rejected"
> => {
  const reply = Prompt.fromResponseParts(parts).content.flatMap((message) =>
    message.role === "assistant" ? message.content.flatMap(encodePart) : []
  )
  const last = parts.findLast((part) => part.type === "finish")
  const finish = last?.reason ?? "length"
  const metadata = parts.findLast((part) => part.type === "response-metadata")
  return {
    reply,
    finish,
    ...(firstPartAt === undefined ? undefined : { firstPartAt }),
    ...(metadata?.id === undefined ? undefined : { responseId: metadata.id }),
    ...(metadata?.modelId === undefined ? undefined : { responseModel: metadata.modelId }),
    ...rejected(reply, finish, brokenProtocol(last))
  }
}

const shape = checker(Schema.Array(ReplyPart))

/** Says where a reply is none that could be read again: its model bypassed effect's own checks. */
export const unreadable = (reply: ReadonlyArray<ReplyPart>): string | undefined => {
  const result = shape(reply)
  return Result.isSuccess(result) ? undefined : `the model's reply is damaged at ${result.failure}`
}

/** What an adapter wants the model to hear of a reply that it cannot read: `waystone.protocol` of its finish part. */
const brokenProtocol = (finish: Response.FinishPart | undefined): string | undefined => {
  const own = finish?.metadata["waystone"]
  const feedback = typeof own === "object" && own !== null && "protocol" in own ? own.protocol : undefined
  return typeof feedback === "string" ? Text.head(Text.wellFormed(feedback), maxFeedback) : undefined
}

/** UTF-16 units of an adapter's feedback: an error and what it quotes. */
const maxFeedback = 4000

/** Why a reply cannot stand: it was cut off, its adapter cannot read it, or it says nothing (RI-138, RI-129). */
const rejected = (
  reply: ReadonlyArray<ReplyPart>,
  finish: string,
  protocol: string | undefined
): Pick<Of<"TurnCompleted">, "rejected"> => {
  if (finish === "length") {
    const feedback = "Your last reply was cut off at the output limit. Answer more briefly, or in smaller steps."
    return { rejected: { kind: "truncated", feedback } }
  }
  if (protocol !== undefined) return { rejected: { kind: "protocol", feedback: protocol } }
  const says = reply.some((part) => part.type !== "reasoning" && !(part.type === "text" && part.text.trim() === ""))
  if (says || finish === "content-filter") return {}
  return { rejected: { kind: "empty", feedback: "Your last reply was empty. Answer, or call a tool." } }
}

/** One part, JSON-safe and well-formed; approval parts never enter a history (SPEC 4). */
const encodePart = (part: Prompt.AssistantMessagePart): ReadonlyArray<ReplyPart> => {
  const options = Object.keys(part.options).length === 0 ? undefined : { options: part.options }
  switch (part.type) {
    case "text":
    case "reasoning":
      return [{ type: part.type, text: Text.head(Text.wellFormed(part.text), maxReply), ...options }]
    case "file":
      return typeof part.data === "string"
        ? [{ type: "file", mediaType: part.mediaType, data: part.data, ...options }]
        : []
    case "tool-call": {
      const { id, name, params, providerExecuted } = part
      return [{ type: "tool-call", id, name, params: bounded(safeJson(params)), providerExecuted, ...options }]
    }
    case "tool-result": {
      const { id, isFailure, name, providerExecuted, result } = part
      return [{ type: "tool-result", id, name, isFailure, result: safeJson(result), providerExecuted, ...options }]
    }
    case "tool-approval-request":
      return []
  }
}

/** Arguments that are too long are kept as the beginning of their text, which no schema takes for arguments. */
const bounded = (params: Schema.Json): Schema.Json => {
  const text = JSON.stringify(params)
  return text.length <= maxArguments ? params : `${tooLong}${Text.head(text, 1000)}`
}

/** What JSON has no word for becomes null: the tool's schema then says what is wrong (RI-122). */
const safeJson = (value: unknown) => {
  try {
    return ToolResult.toJson(value)
  } catch {
    return null
  }
}
