/** Every fault of the fake servers as a client sees it. */
import { request } from "node:http"
import { setTimeout as wait } from "node:timers/promises"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Client from "./servers/client.ts"
import { protocols, short } from "./servers/requests.ts"
import * as Script from "./servers/Script.ts"
import { serve } from "./servers/serve.ts"
import * as Wire from "./servers/Wire.ts"

const streaming = (protocol: Client.Name) => ({ ...short[protocol], stream: true })
const forms = protocols.flatMap((protocol) => [
  [protocol, "JSON", short[protocol]] as const,
  [protocol, "SSE", streaming(protocol)] as const
])

const ask = (protocol: Client.Name, given: Script.Reply | Script.Fault, body: unknown) =>
  Effect.flatMap(serve({ protocol, script: () => given }), (server) => Client.post(server, protocol, body))

/** Reads until the end, an error, or `enough` characters; says what came and how it ended. */
const readUntil = async (response: Response, enough = Number.POSITIVE_INFINITY) => {
  const reader = response.body?.getReader()
  const chunks: Array<Uint8Array> = []
  const so = () => Buffer.concat(chunks)
  try {
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
      if (done || value === undefined) return { bytes: so(), end: "whole" }
      chunks.push(value)
      if (so().length >= enough) {
        await reader?.cancel()
        return { bytes: so(), end: "enough" }
      }
    }
  } catch {
    return { bytes: so(), end: "broken" }
  }
}

describe("status", () => {
  const codes: ReadonlyArray<readonly [Client.Name, number, object]> = [
    ["openai-chat", 429, { error: { type: "requests", code: "rate_limit_exceeded", param: null } }],
    ["openai-chat", 500, { error: { type: "server_error", code: null } }],
    ["openai-responses", 503, { error: { type: "service_unavailable_error", code: "server_is_overloaded" } }],
    ["openai-responses", 401, { error: { type: "invalid_request_error", code: "invalid_api_key" } }],
    ["anthropic", 429, { type: "error", error: { type: "rate_limit_error" } }],
    ["anthropic", 529, { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }],
    ["anthropic", 500, { type: "error", error: { type: "api_error" } }],
    ["anthropic", 413, { type: "error", error: { type: "request_too_large" } }]
  ]
  for (const [protocol, status, body] of codes)
    it.live(`${status} of ${protocol} has its error body and the headers of the script`, () =>
      Effect.gen(function* () {
        const got = yield* ask(protocol, Script.status(status, { "retry-after": "2" }), streaming(protocol))
        expect([got.status, got.headers.get("retry-after")]).toEqual([status, "2"])
        expect(got.json).toMatchObject(body)
      })
    )

  it.live("takes a body of one's own", () =>
    Effect.gen(function* () {
      const got = yield* ask("openai-chat", Script.status(502, {}, "<html>"), short["openai-chat"])
      expect([got.status, got.text]).toEqual([502, "<html>"])
    })
  )
})

describe("cutAt", () => {
  for (const [protocol, form, body] of forms)
    it.live(`gives exactly the first bytes of the ${form} of ${protocol} and then breaks`, () =>
      Effect.gen(function* () {
        const reply: Script.Reply = { text: "Grüße 🙂", calls: [{ name: "f" }] }
        const whole = Buffer.from((yield* ask(protocol, reply, body)).text)
        for (const byte of [0, 1, 17, Math.floor(whole.length / 2), whole.length - 1]) {
          const server = yield* serve({ protocol, script: () => Script.cutAt(byte, reply) })
          const response = yield* Client.open(server, protocol, body)
          const { bytes, end } = yield* Effect.promise(() => readUntil(response))
          expect([byte, response.status, end]).toEqual([byte, 200, "broken"])
          expect(bytes.equals(whole.subarray(0, byte))).toBe(true)
        }
      })
    )

  it.live("after the last byte leaves JSON whole and SSE without its end", () =>
    Effect.gen(function* () {
      const ends: Array<string> = []
      for (const body of [short.anthropic, streaming("anthropic")]) {
        const server = yield* serve({ protocol: "anthropic", script: () => Script.cutAt(1e9) })
        const response = yield* Client.open(server, "anthropic", body)
        ends.push((yield* Effect.promise(() => readUntil(response))).end)
      }
      expect(ends).toEqual(["whole", "broken"])
    })
  )
})

describe("hang", () => {
  it.live("sends nothing, and the client fails when the scope closes", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const server = yield* Scope.provide(serve({ protocol: "openai-chat", script: () => Script.hang }), scope)
      const fiber = yield* Effect.forkChild(Effect.exit(Client.open(server, "openai-chat", short["openai-chat"])))
      while ((yield* server.requests).length === 0) yield* Effect.promise(() => wait(5))
      yield* Scope.close(scope, Exit.void)
      expect(Exit.isFailure(yield* Fiber.join(fiber))).toBe(true)
    })
  )
})

const beats = {
  "openai-chat": ": keep-alive\n\n",
  "openai-responses": ": keep-alive\n\n",
  anthropic: 'event: ping\ndata: {"type":"ping"}\n\n'
}

describe("keepAliveHang", () => {
  for (const [protocol, form, body] of forms)
    it.live(`sends only what says nothing as ${form} of ${protocol}`, () =>
      Effect.gen(function* () {
        const beat = form === "JSON" ? "\n" : beats[protocol]
        const server = yield* serve({ protocol, script: () => Script.keepAliveHang })
        const response = yield* Client.open(server, protocol, body)
        const { bytes, end } = yield* Effect.promise(() => readUntil(response, 3 * beat.length))
        expect([bytes.toString().replaceAll(beat, ""), end]).toEqual(["", "enough"])
      })
    )
})

describe("overloadInStream", () => {
  const frames: Readonly<Record<Client.Name, object>> = {
    "openai-chat": {
      event: undefined,
      data: { error: { type: "service_unavailable_error", code: "server_is_overloaded" } }
    },
    "openai-responses": {
      event: "error",
      data: { type: "error", error: { code: "server_is_overloaded" }, sequence_number: expect.any(Number) }
    },
    anthropic: { event: "error", data: { type: "error", error: { type: "overloaded_error", message: "Overloaded" } } }
  }
  const statuses = { "openai-chat": 503, "openai-responses": 503, anthropic: 529 }
  for (const protocol of protocols) {
    it.live(`of ${protocol} is 200, text, then its error event and nothing more`, () =>
      Effect.gen(function* () {
        const got = yield* ask(protocol, Script.overloadInStream("He"), streaming(protocol))
        const events = Client.events(got.text)
        expect(got.status).toBe(200)
        expect(events.at(-1)).toMatchObject(frames[protocol])
        expect(JSON.stringify(events.at(-2))).toContain('"He"')
      })
    )

    it.live(`of ${protocol} is the status when nothing is streamed`, () =>
      Effect.map(ask(protocol, Script.overloadInStream(), short[protocol]), (got) =>
        expect(got.status).toBe(statuses[protocol])
      )
    )
  }
})

describe("slow", () => {
  for (const [protocol, form, body] of forms)
    it.live(`makes a valid ${form} of ${protocol} with so many bytes`, () =>
      Effect.gen(function* () {
        const got = yield* ask(protocol, Script.slow({ bytes: 50_000, piece: 100 }), body)
        expect(got.text.length).toBeGreaterThanOrEqual(50_000)
        expect(got.text.length).toBeLessThan(55_000)
        const parsed = form === "JSON" ? [got.json] : Client.events(got.text).map(({ data }) => data)
        expect(parsed.filter((data) => typeof data !== "object" && data !== "[DONE]")).toEqual([])
        const numbers = parsed.map((data) => Wire.object(data)["sequence_number"])
        if (protocol === "openai-responses" && form === "SSE") expect(numbers).toEqual([...parsed.keys()])
      })
    )

  it.live("waits for a client that does not read, and stops when it goes", () =>
    Effect.gen(function* () {
      const bytes = 200_000_000
      let made = 0
      const fault = Script.slow({ bytes, onWrite: (total) => (made = total) })
      const server = yield* serve({ protocol: "openai-chat", script: () => fault })
      const client = request(server.url + "/v1/chat/completions", {
        method: "POST",
        headers: Client.headersOf("openai-chat")
      })
      client.on("response", (response) => response.pause())
      client.on("error", () => {})
      client.write(JSON.stringify(streaming("openai-chat")))
      client.end()
      let before = -1
      while (made === 0 || made !== before) {
        before = made
        yield* Effect.promise(() => wait(100))
      }
      expect(made).toBeLessThan(bytes / 4)
      client.destroy()
      yield* Effect.promise(() => wait(100))
      expect(made).toBeLessThan(bytes / 2)
    })
  )
})

describe("raw", () => {
  it.live("is 200 with that body, typed as the request asks", () =>
    Effect.gen(function* () {
      const json = yield* ask("anthropic", Script.raw("<html>"), short.anthropic)
      const sse = yield* ask("anthropic", Script.raw("data: {\n\n"), streaming("anthropic"))
      const html = yield* ask("anthropic", Script.raw("<p>", "text/html"), short.anthropic)
      const seen = [json, sse, html].map((got) => [got.status, got.headers.get("content-type"), got.text])
      expect(seen).toEqual([
        [200, "application/json", "<html>"],
        [200, "text/event-stream", "data: {\n\n"],
        [200, "text/html", "<p>"]
      ])
    })
  )
})
