/** Bodies of the fake servers against goldens that were written by hand after the public documentation. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Client from "./servers/client.ts"
import { protocols, short } from "./servers/requests.ts"
import type * as Script from "./servers/Script.ts"
import { golden, reply } from "./servers/golden.ts"
import { serve } from "./servers/serve.ts"
import * as Wire from "./servers/Wire.ts"

const asked = (protocol: Client.Name) =>
  protocol === "openai-responses"
    ? { ...short[protocol], include: ["reasoning.encrypted_content"] }
    : { ...short[protocol], stream_options: { include_usage: true } }

const ask = (protocol: Client.Name, given: Script.Reply, more: object = {}) =>
  Effect.flatMap(serve({ protocol, script: () => given }), (server) =>
    Client.post(server, protocol, { ...asked(protocol), ...more })
  )

describe("a reply with reasoning, text and a call", () => {
  for (const protocol of protocols) {
    it.live(`is the documented JSON of ${protocol}`, () =>
      Effect.gen(function* () {
        const got = yield* ask(protocol, reply)
        expect([got.status, got.headers.get("content-type")]).toEqual([200, "application/json"])
        expect(got.json).toEqual(JSON.parse(yield* golden(`${protocol}.json`)))
      })
    )

    it.live(`is the documented events of ${protocol}`, () =>
      Effect.gen(function* () {
        const got = yield* ask(protocol, reply, { stream: true })
        expect([got.status, got.headers.get("content-type")]).toEqual([200, "text/event-stream; charset=utf-8"])
        expect(Client.events(got.text)).toEqual(Client.events(yield* golden(`${protocol}.sse`)))
      })
    )
  }
})

/** Where each protocol says why the model stopped. */
const stopped = {
  "openai-chat": (json: Wire.JsonObject) => Wire.objects(json["choices"])[0]?.["finish_reason"],
  "openai-responses": (json: Wire.JsonObject) => [json["status"], Wire.object(json["incomplete_details"])["reason"]],
  anthropic: (json: Wire.JsonObject) => json["stop_reason"]
}

const finishes: ReadonlyArray<readonly [string, Script.Reply, Readonly<Record<Client.Name, unknown>>]> = [
  [
    "stop",
    { text: "a" },
    { "openai-chat": "stop", "openai-responses": ["completed", undefined], anthropic: "end_turn" }
  ],
  [
    "length",
    { text: "a", finish: "length" },
    { "openai-chat": "length", "openai-responses": ["incomplete", "max_output_tokens"], anthropic: "max_tokens" }
  ],
  [
    "content-filter",
    { text: "a", finish: "content-filter" },
    { "openai-chat": "content_filter", "openai-responses": ["incomplete", "content_filter"], anthropic: "refusal" }
  ],
  [
    "refusal",
    { refusal: "No." },
    { "openai-chat": "stop", "openai-responses": ["completed", undefined], anthropic: "refusal" }
  ]
]

describe("the finish of a reply", () => {
  for (const protocol of protocols)
    for (const [name, given, expected] of finishes)
      it.live(`${name} is the word of ${protocol} for it`, () =>
        Effect.gen(function* () {
          const got = yield* ask(protocol, given)
          expect(stopped[protocol](Wire.object(got.json))).toEqual(expected[protocol])
          if (given.refusal !== undefined) expect(got.text).toContain(given.refusal)
        })
      )

  for (const protocol of protocols)
    it.live(`missing ends the stream of ${protocol} in good order without the frames that say it`, () =>
      Effect.gen(function* () {
        const whole = yield* ask(protocol, { text: "a b" }, { stream: true })
        const got = yield* ask(protocol, { text: "a b", finish: "missing" }, { stream: true })
        expect(whole.text.startsWith(got.text)).toBe(true)
        expect(whole.text.slice(got.text.length)).toMatch(/finish_reason":"stop|response\.completed|message_stop/)
        expect(got.text).not.toMatch(/finish_reason":"stop|response\.completed|message_(delta|stop)/)
        expect(got.text).toContain('"b"')
      })
    )
})

describe("a reply", () => {
  for (const protocol of protocols) {
    it.live(`of ${protocol} carries malformed arguments as they are`, () =>
      Effect.gen(function* () {
        const got = yield* ask(protocol, { calls: [{ name: "a", rawArgs: '{"x":' }] }, { stream: true })
        const pieces = [...got.text.matchAll(/"(?:arguments|partial_json|delta)":("(?:[^"\\]|\\.)*")/g)]
        expect(pieces.map(([, text]) => JSON.parse(text ?? '""')).join("")).toContain('{"x":')
      })
    )

    it.live(`of ${protocol} with a chosen id and no arguments has that id and an empty object`, () =>
      Effect.gen(function* () {
        const got = yield* ask(protocol, { calls: [{ name: "a", id: "mine" }] })
        expect(got.text).toMatch(/"(id|call_id)":"mine"/)
        expect(got.text).toMatch(/"arguments":"\{\}"|"input":\{\}/)
      })
    )
  }

  it.live("of openai-chat counts its usage in a stream only when asked", () =>
    Effect.gen(function* () {
      const got = yield* ask("openai-chat", { text: "a" }, { stream: true, stream_options: {} })
      expect(got.text).not.toContain("usage")
    })
  )

  it.live("of openai-responses seals its reasoning only when asked", () =>
    Effect.gen(function* () {
      const got = yield* ask("openai-responses", { reasoning: { text: "a" }, text: "b" }, { include: [] })
      expect(got.text).toContain('"rs_0"')
      expect(got.text).not.toContain("encrypted_content")
    })
  )

  it.live("of anthropic can hide its thinking", () =>
    Effect.gen(function* () {
      const got = yield* ask("anthropic", { reasoning: { text: "a", redacted: true, signature: "s" }, text: "b" })
      expect(Wire.object(got.json)["content"]).toEqual([
        { type: "redacted_thinking", data: "s" },
        { type: "text", text: "b" }
      ])
    })
  )
})
