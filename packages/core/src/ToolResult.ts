/**
 * Turns whatever a handler gives back into JSON that the journal can keep and the model can read.
 *
 * Invariants
 *   T1  It never fails and never throws: what cannot be encoded becomes "executed, output unavailable" (RI-047).
 *   T2  All text is well-formed (RI-041).
 *   T3  At most 1 MB is kept and 16 KB shown; head and tail stay and a marker says how much was cut.
 *   T4  An error says what helps the model in at most 2 KB, without a stack; a defect's also without paths (RI-012).
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as AiError from "effect/ai/AiError"
import * as Prompt from "effect/ai/Prompt"
import type { AgentTool } from "./AgentTool.ts"
import type { ToolOutput } from "./Interceptor.ts"
import { Fatal, Retryable } from "./RunError.ts"
import * as Text from "./Text.ts"

/** In UTF-16 units of the JSON text. */
export const maxKept = 1_000_000
export const maxShown = 16_000
export const maxError = 2_000

/** What goes into the event. */
export interface Bounded {
  readonly isFailure: boolean
  readonly result: Schema.Json
  readonly shown?: string
}

/** A success as output; the handler ran, whatever its result is. */
export const success = (tool: AgentTool, value: unknown): Effect.Effect<ToolOutput> =>
  Effect.suspend(() => tool.encodeSuccess(value)).pipe(
    Effect.flatMap((encoded) => Effect.sync(() => ({ ...output(encoded), ...modelOutput(tool, value) }))),
    Effect.catchCause((cause) => Effect.succeed(output(`executed, output unavailable: ${reasonOf(cause)}`)))
  )

const output = (result: unknown): ToolOutput => ({ isFailure: false, result: toJson(result) })

const encodePart = Schema.encodeUnknownSync(Schema.toCodecJson(Prompt.ToolModelOutputPart))

/** A mapping that throws maps nothing: the model then sees the result itself. */
const mapped = (tool: AgentTool["tool"], value: unknown): ReadonlyArray<Prompt.ToolModelOutputPart> | undefined => {
  try {
    return tool.toModelOutput?.(value)
  } catch {
    return undefined
  }
}

/** No provider takes an empty text; a file is never cut. */
const modelOutput = ({ tool }: AgentTool, value: unknown): Pick<ToolOutput, "modelOutput"> => {
  const parts = mapped(tool, value)?.flatMap((part): ReadonlyArray<Prompt.ToolModelOutputPart> => {
    if (part.type !== "text") return [part]
    return part.text.trim() === "" ? [] : [{ ...part, text: Text.middleOut(part.text, maxShown) }]
  })
  return parts === undefined || parts.length === 0 ? {} : { modelOutput: parts.map((part) => toJson(encodePart(part))) }
}

/** A typed failure of the tool, as its failure schema encodes it; else by its message. */
export const failure = (tool: AgentTool, error: unknown): Effect.Effect<ToolOutput> =>
  Effect.suspend(() => tool.encodeFailure(error)).pipe(
    Effect.map((encoded): ToolOutput => ({
      isFailure: true,
      result: bounded(harmless(withMessage(toJson(encoded), error))),
      error: tagOf(error)
    })),
    Effect.catchCause(() => Effect.succeed(errorOutput(messageOf(error), tagOf(error))))
  )

/** A schema drops an error's `message` where it is a getter, but that is what helps the model. */
const withMessage = (encoded: Schema.Json, error: unknown): Schema.Json => {
  if (typeof encoded !== "object" || encoded === null || Array.isArray(encoded) || "message" in encoded) return encoded
  const said = Predicate.hasProperty(error, "message") && typeof error.message === "string" && error.message !== ""
  return said ? { ...encoded, message: messageOf(error) } : encoded
}

/** A failure as the model may see it: no stacks, no folders of absolute paths, no secrets (RI-012). */
const harmless = (json: Schema.Json): Schema.Json => {
  if (typeof json === "string") return json.trim() === "" ? json : Text.safeMessage(json, maxError)
  if (typeof json !== "object" || json === null) return json
  if (Array.isArray(json)) return json.map(harmless)
  const kept = Object.entries(json).filter(([key]) => key !== "stack")
  return Object.fromEntries(kept.map(([key, value]) => [key, harmless(value)]))
}

/** An error result with a message of ours. */
export const errorOutput = (message: string, error: string): ToolOutput => ({
  isFailure: true,
  result: { error: describe(message) },
  error
})

const bounded = (result: Schema.Json): Schema.Json =>
  JSON.stringify(result).length <= maxError ? result : { error: fitting(JSON.stringify(result)) }

/** A message for the model: bounded, without stack and paths. */
export const describe = (message: string): string => fitting(Text.safeMessage(message, maxError))

/** Cut where its JSON text, which escapes some characters, is too long for an error. */
const fitting = (text: string): string => {
  const size = JSON.stringify(text).length
  const max = maxError - 100
  return size <= max ? text : fitting(Text.head(text, Math.floor((text.length * max) / size)))
}

/** The name of an error, for spans and guards. */
export const tagOf = (error: unknown): string => {
  try {
    if (Predicate.hasProperty(error, "_tag") && typeof error._tag === "string") {
      return tag(error._tag === "AiError" && AiError.isAiError(error) ? error.reason._tag : error._tag)
    }
    return error instanceof Error ? tag(error.name) : "Error"
  } catch {
    return "Error"
  }
}

const tag = (name: string): string => Text.head(Text.wellFormed(name), 100)

/** A message of anything that can be thrown; total. */
export const messageOf = (error: unknown): string => {
  try {
    if (typeof error === "string") return error
    if (Predicate.hasProperty(error, "message") && typeof error.message === "string" && error.message !== "") {
      return error.message
    }
    return `${tagOf(error)} ${JSON.stringify(error) ?? String(error)}`
  } catch {
    return "the tool failed without a readable message"
  }
}

/** What a handler's failure means for the call: try again, end the Run, or tell the model. */
export const kindOf = (error: unknown): "retry" | "fatal" | "failure" => {
  if (error instanceof Retryable || (AiError.isAiError(error) && error.isRetryable)) return "retry"
  return error instanceof Fatal ? "fatal" : "failure"
}

/** The same output, surely JSON and well-formed; throws the path of what is not. */
export const clean = ({ modelOutput, ...output }: ToolOutput): ToolOutput => ({
  ...output,
  result: toJson(output.result),
  ...(modelOutput === undefined ? undefined : cleanParts(modelOutput))
})

/** Parts that are none are left out: the model then sees the result. */
const cleanParts = (parts: ReadonlyArray<Schema.Json>): Pick<ToolOutput, "modelOutput"> => {
  try {
    const json = toJson(parts)
    decodeParts(json)
    return Array.isArray(json) ? { modelOutput: json } : {}
  } catch {
    return {}
  }
}

const decodeParts = Schema.decodeUnknownSync(Schema.toCodecJson(Schema.Array(Prompt.ToolModelOutputPart)))

/** Keeps at most `maxKept`, and what the model is shown where that is too long for it. */
export const bound = ({ isFailure, result }: Pick<ToolOutput, "isFailure" | "result">): Bounded => {
  const text = typeof result === "string" ? result : JSON.stringify(result)
  if (text.length <= maxShown) return { isFailure, result }
  const kept = text.length <= maxKept ? result : Text.middleOut(text, maxKept)
  return { isFailure, result: kept, shown: Text.middleOut(text, maxShown) }
}

/** JSON with well-formed text and nothing that JSON has no word for; throws the path of what has none. */
export const toJson = (value: unknown): Schema.Json => {
  const text = JSON.stringify(value, (key, part: unknown) => {
    if (typeof part === "bigint") throw new Unencodable(key)
    if (typeof part === "string") return Text.wellFormed(part)
    return part instanceof Uint8Array ? `<${part.length} bytes>` : part
  })
  if (text === undefined) return null
  const json: Schema.Json = JSON.parse(text)
  return text.includes("\\ud") ? wellFormedKeys(json) : json
}

/** Keys cannot be renamed while they are written; the escape of a lone surrogate says that there may be one. */
const wellFormedKeys = (json: Schema.Json): Schema.Json => {
  if (typeof json !== "object" || json === null) return json
  if (Array.isArray(json)) return json.map(wellFormedKeys)
  return Object.fromEntries(Object.entries(json).map(([key, part]) => [Text.wellFormed(key), wellFormedKeys(part)]))
}

class Unencodable extends Error {
  constructor(path: string) {
    super(path === "" ? "a bigint" : `${path} is a bigint`)
  }
}

const reasonOf = (cause: Cause.Cause<unknown>): string =>
  Text.safeMessage(messageOf(Cause.squash(cause)).replaceAll("\n", " "), 200)
