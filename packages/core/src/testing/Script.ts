/**
 * Says what a scripted model answers: replies, errors, delays, streams, and functions of the request.
 *
 * One script serves `generateText` and `streamText`: whole parts become start, delta and end parts in a stream, and the
 * chunks of a stream become whole parts where nothing is streamed.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as AiError from "effect/ai/AiError"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import type { Usage } from "../Usage.ts"

/** One request that a model got. */
export interface Request {
  /** Counts from 1. */
  readonly number: number
  readonly method: "generateText" | "streamText"
  readonly messages: ReadonlyArray<Prompt.Message>
  /** The names of the tools that the model was told of. */
  readonly tools: ReadonlyArray<string>
  readonly toolChoice: unknown
  /** The results in the last message, if that is a tool message, in call order. */
  readonly results: ReadonlyArray<Prompt.ToolResultPart>
  /** SHA-256 of messages, tools and tool choice: equal for equal requests in every process. */
  readonly digest: Effect.Effect<string>
}

/** A call whose id may be left to the model: `c1`, `c2`, … over all of its requests. */
export interface CallPart extends Omit<Response.ToolCallPartEncoded, "id"> {
  readonly id?: string
}

/** One part of a reply, in effect/ai's encoded form. */
export type Part = Exclude<Response.PartEncoded, Response.ToolCallPartEncoded> | CallPart

export interface Ending {
  /** Default `tool-calls` if there is a call, else `stop`. */
  readonly finish?: Response.FinishReason
  /** Default 10 uncached input and 5 output tokens; `unknown` reports none. */
  readonly usage?: Partial<Usage> | "unknown"
}

export interface Reply extends Ending {
  readonly _tag: "Reply"
  readonly parts: ReadonlyArray<Part>
}

export interface Wait {
  readonly _tag: "Wait"
  readonly duration: Duration.Input
}

/** One part of a stream, or a wait before the next one. */
export type Chunk = Exclude<Response.StreamPartEncoded, Response.ToolCallPartEncoded> | Part | Wait

export interface Streamed extends Ending {
  readonly _tag: "Streamed"
  readonly chunks: ReadonlyArray<Chunk>
  /** The connection closes without a finish part. */
  readonly cut: boolean
}

export interface After {
  readonly _tag: "After"
  readonly duration: Duration.Input
  readonly entry: Entry
}

/** What a model does with one request. */
export type Entry =
  | Reply
  | Streamed
  | { readonly _tag: "Fail"; readonly error: AiError.AiError }
  | { readonly _tag: "Die"; readonly defect: unknown }
  | { readonly _tag: "Hang" }
  | After
  | ((request: Request) => Entry)

/** Entries in order, one per request; or one function for all requests, for scripts that crashes must not derail. */
export type Script = ReadonlyArray<Entry> | ((request: Request) => Entry)

/** A reply of these parts. Other replies can stand among them: `reply([text("a"), call("look", {})])`. */
export const reply = (parts: ReadonlyArray<Part | Reply>, ending: Ending = {}): Reply => ({
  _tag: "Reply",
  parts: parts.flatMap((part) => ("_tag" in part ? part.parts : [part])),
  ...ending
})

/** A reply of one text. */
export const text = (text: string, ending?: Ending): Reply => reply([{ type: "text", text }], ending)

/** A reply of one reasoning part; put it into a `reply` with what follows it. */
export const reasoning = (text: string, metadata?: Response.ReasoningPartMetadata): Reply =>
  reply([{ type: "reasoning", text, ...(metadata === undefined ? undefined : { metadata }) }])

/** A reply of one call; `params` as the model writes them, malformed ones too. */
export const call = (name: string, params: unknown, id?: string): Reply =>
  reply([{ type: "tool-call", name, params, ...(id === undefined ? undefined : { id }) }])

/** A reply of several calls, as `call(…)` or `[name, params, id?]`. */
export const calls = (
  all: ReadonlyArray<Reply | readonly [name: string, params: unknown, id?: string]>,
  ending?: Ending
): Reply =>
  reply(
    all.map((one) => ("_tag" in one ? one : call(...one))),
    ending
  )

/** The request fails with this reason, or this whole error. */
export const fail = (reason: AiError.AiErrorReason | AiError.AiError): Entry => ({
  _tag: "Fail",
  error: AiError.isAiError(reason) ? reason : AiError.make({ module: "ScriptedModel", method: "request", reason })
})

/** The adapter has a bug. */
export const die = (defect: unknown): Entry => ({ _tag: "Die", defect })

/** The same, but later. */
export const after = (duration: Duration.Input, entry: Entry): Entry => ({ _tag: "After", duration, entry })

/** No answer, ever. */
export const hang: Entry = { _tag: "Hang" }

/** A stream, chunk by chunk. Texts get their start and end; `cut: true` leaves the finish part out. */
export const stream = (
  chunks: ReadonlyArray<Chunk | Reply>,
  { cut = false, ...ending }: Ending & { readonly cut?: boolean } = {}
): Entry => ({
  _tag: "Streamed",
  chunks: chunks.flatMap((chunk): ReadonlyArray<Chunk> => ("parts" in chunk ? chunk.parts : [chunk])),
  cut,
  ...ending
})

/** In a stream: nothing for that long. */
export const wait = (duration: Duration.Input): Wait => ({ _tag: "Wait", duration })

/** In a stream: a piece of text. */
export const delta = (delta: string, id = "text"): Chunk => ({ type: "text-delta", id, delta })

/** In a stream: a piece of reasoning. */
export const thought = (delta: string, id = "reasoning"): Chunk => ({ type: "reasoning-delta", id, delta })

/** In a stream: a sign of life that says nothing. */
export const keepAlive: Chunk = delta("")

/** In a stream: an error of the provider, after which it closes (RI-065). */
export const error = (error: unknown): Chunk => ({ type: "error", error })
