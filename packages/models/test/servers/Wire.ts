/** The words that servers and protocols share: requests, rejections, frames, and how to look into JSON. */
import * as Predicate from "effect/Predicate"

export type JsonObject = { readonly [x: PropertyKey]: unknown }
export type Headers = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

export interface ModelRequest {
  readonly method: string
  readonly path: string
  readonly headers: Headers
  /** The JSON value; the text itself when it is no JSON. */
  readonly body: unknown
}

/** A request that the real API answers with an error. OpenAI names `param` and `code`, Anthropic the `type` alone. */
export interface Rejection {
  readonly status: number
  readonly message: string
  readonly type: string
  readonly code?: string
  readonly param?: string
}

/** One server-sent event. `text` marks the frame that carries a piece of text. */
export interface Frame {
  readonly event?: string
  readonly data: unknown
  readonly text?: true
}

/** One answer in both forms; `close` has the frames that say how it ended. */
export interface Answer {
  readonly json: unknown
  readonly open: ReadonlyArray<Frame>
  readonly content: ReadonlyArray<Frame>
  readonly close: ReadonlyArray<Frame>
}

export interface Options {
  /** The only key that is taken: "test-key" when left out. */
  readonly apiKey: string
  /** The models that exist; every name does when left out. */
  readonly models: ReadonlyArray<string> | undefined
  /** The model's window in tokens, counted as four characters each; endless when left out. */
  readonly window: number
}

export const object = (value: unknown): JsonObject => (Predicate.isReadonlyObject(value) ? value : {})
export const list = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])
export const objects = (value: unknown): ReadonlyArray<JsonObject> => list(value).map(object)
export const string = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

/** The value of a JSON text; undefined when it is none. */
export const parse = (text: string): unknown => {
  try {
    const value: unknown = JSON.parse(text)
    return value
  } catch {
    return undefined
  }
}

/** Four characters a token, as a rule of thumb; only what the model reads counts. */
export const tokens = (...parts: ReadonlyArray<unknown>): number =>
  Math.ceil(parts.reduce<number>((sum, part) => sum + (part === undefined ? 0 : JSON.stringify(part).length), 0) / 4)

export const duplicate = (values: ReadonlyArray<string>): string | undefined =>
  values.find((value, index) => values.indexOf(value) !== index)

export const sse = (frame: Frame): string =>
  (frame.event === undefined ? "" : `event: ${frame.event}\n`) +
  `data: ${typeof frame.data === "string" ? frame.data : JSON.stringify(frame.data)}\n\n`
