/**
 * What a test says that a fake model server answers: a Reply in neutral words, or a Fault.
 *
 * Each protocol writes a Reply in its own form, as JSON or as SSE, as the request's `stream` asks.
 */
import type * as Wire from "./Wire.ts"

/** Tokens in disjoint classes; each protocol adds them up in its own way. */
export interface Usage {
  readonly input: number
  readonly cacheRead?: number
  readonly cacheWrite?: number
  /** Text and tool calls, without reasoning. */
  readonly output: number
  readonly reasoning?: number
}

export interface Call {
  readonly name: string
  /** Any JSON value; `{}` when left out. */
  readonly args?: unknown
  /** The argument text as it goes over the wire, for arguments that no JSON value gives. */
  readonly rawArgs?: string
  /** The id that the result must name; made from the number of the reply and of the call when left out. */
  readonly id?: string
}

export interface Reasoning {
  readonly text: string
  /** Anthropic's signature, or the encrypted content of OpenAI responses; made from the text when left out. */
  readonly signature?: string
  /** Anthropic only: a `redacted_thinking` block whose data is the signature. */
  readonly redacted?: boolean
}

/**
 * Why the model stopped: `tool-calls` when there are calls, else `stop`. `missing` ends the stream in good order before
 * the frames that say so, which the real servers do when a proxy cuts them.
 */
export type Finish = "stop" | "length" | "tool-calls" | "content-filter" | "missing"

/** Parts go out in this order: reasoning, text (or refusal), calls. An empty Reply has no part at all. */
export interface Reply {
  readonly reasoning?: Reasoning
  readonly text?: string
  readonly refusal?: string
  readonly calls?: ReadonlyArray<Call>
  readonly finish?: Finish
  /** 10 input and 5 output tokens when left out. */
  readonly usage?: Usage
}

export type Fault =
  | {
      readonly fault: "status"
      readonly status: number
      readonly headers: Wire.Headers
      readonly body: string | undefined
    }
  | { readonly fault: "cutAt"; readonly byte: number; readonly reply: Reply }
  | { readonly fault: "hang" }
  | { readonly fault: "keepAliveHang" }
  | { readonly fault: "overloadInStream"; readonly text: string }
  | {
      readonly fault: "slow"
      readonly bytes: number
      readonly piece: number
      readonly onWrite: ((bytes: number) => void) | undefined
    }
  | { readonly fault: "raw"; readonly body: string; readonly contentType: string | undefined }

/** Answers with that status; the body is the protocol's own error body for it when left out. */
export const status = (status: number, headers: Wire.Headers = {}, body?: string): Fault => ({
  fault: "status",
  status,
  headers,
  body
})

/**
 * Closes the socket after that many bytes of the body, without the mark of its end. JSON carries the full
 * `content-length`, so a cut at or after its last byte is a complete answer; SSE is chunked, so it never is.
 */
export const cutAt = (byte: number, reply: Reply = { text: "Hello there" }): Fault => ({ fault: "cutAt", byte, reply })

/** Takes the request and sends nothing, not even headers. */
export const hang: Fault = { fault: "hang" }

/** Sends headers and then, every 10 ms and for ever, what this protocol sends to keep a connection open. */
export const keepAliveHang: Fault = { fault: "keepAliveHang" }

/** 200, some text, then this protocol's overload error as an event; not streaming it is the overload status. */
export const overloadInStream = (text = "He"): Fault => ({ fault: "overloadInStream", text })

/**
 * A body of at least that many bytes, made while the client reads it. `piece` is the size of one text delta (1,000
 * characters). The frames that repeat the whole text at the end hold one piece only. `onWrite` gets the running total
 * of bytes that were made.
 */
export const slow = (options: {
  readonly bytes: number
  readonly piece?: number
  readonly onWrite?: (bytes: number) => void
}): Fault => ({ fault: "slow", bytes: options.bytes, piece: options.piece ?? 1000, onWrite: options.onWrite })

/** 200 with that body, as `text/event-stream` or `application/json` as the request asks, or as `contentType` says. */
export const raw = (body: string, contentType?: string): Fault => ({ fault: "raw", body, contentType })

/** Gets the request's body and its number, counted from 0 over the requests that broke no rule. */
export type Script = (body: Wire.JsonObject, number: number) => Reply | Fault

export const usageOf = (reply: Reply): Required<Usage> => ({
  cacheRead: 0,
  cacheWrite: 0,
  reasoning: 0,
  ...(reply.usage ?? { input: 10, output: 5 })
})

export const finishOf = (reply: Reply): Exclude<Finish, "missing"> =>
  reply.finish === undefined || reply.finish === "missing"
    ? (reply.calls ?? []).length > 0
      ? "tool-calls"
      : "stop"
    : reply.finish

export const argumentsOf = (call: Call): string => call.rawArgs ?? JSON.stringify(call.args ?? {})

/** Text in the pieces that a stream sends: words with the white space after them. */
export const words = (text: string): ReadonlyArray<string> => text.match(/\s*\S+\s*|\s+/g) ?? []

/** Arguments in the two pieces that a stream sends; never cuts a character in two. */
export const halves = (text: string): ReadonlyArray<string> => {
  const characters = Array.from(text)
  const middle = Math.ceil(characters.length / 2)
  return [characters.slice(0, middle).join(""), characters.slice(middle).join("")].filter((half) => half !== "")
}
