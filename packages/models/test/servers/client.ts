/** A plain client for tests of the fake servers: fetch with the right headers, and a reader of server-sent events. */
import * as Effect from "effect/Effect"
import type { ModelServer } from "./serve.ts"
import * as Wire from "./Wire.ts"

export interface Got {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The body as JSON; undefined when it is none. */
  readonly json: unknown
}

export interface SentEvent {
  readonly event: string | undefined
  /** The data as JSON; the text itself when it is none. */
  readonly data: unknown
}

const paths = { "openai-chat": "/v1/chat/completions", "openai-responses": "/v1/responses", anthropic: "/v1/messages" }

export type Name = keyof typeof paths

export const headersOf = (protocol: Name): Record<string, string> => ({
  "content-type": "application/json",
  ...(protocol === "anthropic"
    ? { "x-api-key": "test-key", "anthropic-version": "2023-06-01" }
    : { authorization: "Bearer test-key" })
})

/** Sends the body as it is when it is a string, else as JSON. Nothing is read from the answer. */
export const open = (
  server: ModelServer,
  protocol: Name,
  body: unknown,
  headers: Record<string, string> = headersOf(protocol)
): Effect.Effect<Response> =>
  Effect.promise((signal) =>
    fetch(server.url + paths[protocol], {
      method: "POST",
      headers,
      body: typeof body === "string" ? body : JSON.stringify(body),
      signal
    })
  )

export const post = (
  server: ModelServer,
  protocol: Name,
  body: unknown,
  headers?: Record<string, string>
): Effect.Effect<Got> =>
  Effect.flatMap(open(server, protocol, body, headers), (response) =>
    Effect.map(
      Effect.promise(() => response.text()),
      (text) => ({ status: response.status, headers: response.headers, text, json: Wire.parse(text) })
    )
  )

export const events = (text: string): ReadonlyArray<SentEvent> =>
  text
    .split("\n\n")
    .filter((block) => block !== "")
    .map((block) => {
      const field = (name: string) =>
        block
          .split("\n")
          .find((line) => line.startsWith(`${name}: `))
          ?.slice(name.length + 2)
      const data = field("data") ?? ""
      return { event: field("event"), data: Wire.parse(data) ?? data }
    })
