/** Requests to generateContent, and a client that sends them. */
import * as Effect from "effect/Effect"
import type { ModelServer } from "./serve.ts"
import * as Wire from "./Wire.ts"

export const keyed = { "content-type": "application/json", "x-goog-api-key": "test-key" }

export interface Sent {
  readonly method?: string
  readonly stream?: boolean
  readonly headers?: Record<string, string>
}

export const post = (
  server: ModelServer,
  body: unknown,
  { headers = keyed, method = "POST", stream = false }: Sent = {}
) =>
  Effect.promise(async () => {
    const verb = stream ? "streamGenerateContent?alt=sse" : "generateContent"
    const sent = typeof body === "string" ? body : JSON.stringify(body)
    const url = `${server.url}/v1beta/models/gemini-test:${verb}`
    const response = await fetch(url, { method, headers, ...(method === "GET" ? {} : { body: sent }) })
    const text = await response.text()
    return { status: response.status, type: response.headers.get("content-type"), text, json: Wire.parse(text) }
  })

export const content = (role: string, ...parts: ReadonlyArray<unknown>) => ({ role, parts })
export const user = content("user", { text: "Hi" })
export const call = (id: string, name = "f", more: object = {}) => ({ functionCall: { id, name, args: {} }, ...more })
export const back = (id: string, name = "f", response: unknown = { content: "text" }) => ({
  functionResponse: { id, name, response }
})
export const said = (...parts: ReadonlyArray<unknown>) => content("model", ...parts)
export const results = (...parts: ReadonlyArray<unknown>) => content("user", ...parts)
export const chat = (...contents: ReadonlyArray<unknown>) => ({ contents })
