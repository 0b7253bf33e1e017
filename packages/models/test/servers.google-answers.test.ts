/** Answers of the fake generateContent endpoint, against goldens written after the public documentation, and what it signs. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Client from "./servers/client.ts"
import { back, chat, post, results, said, type Sent, user } from "./servers/googleClient.ts"
import * as Script from "./servers/Script.ts"
import { golden, reply } from "./servers/golden.ts"
import { serve } from "./servers/serve.ts"
import * as Wire from "./servers/Wire.ts"

const ask = (given: Script.Reply | Script.Fault, sent: Sent = {}) =>
  Effect.flatMap(serve({ protocol: "google", script: () => given }), (server) => post(server, chat(user), sent))

type Broken = (signed: Wire.JsonObject) => Wire.JsonObject

describe("a signature that google gave with a call", () => {
  const turn = Effect.fnUntraced(function* (change: Broken, ...more: ReadonlyArray<unknown>) {
    const reply: Script.Reply = { reasoning: { text: "Hm." }, calls: [{ name: "f" }, { name: "f" }] }
    const server = yield* serve({ protocol: "google", script: () => reply })
    const { json } = yield* post(server, chat(user))
    const parts = Wire.objects(Wire.object(Wire.objects(Wire.object(json)["candidates"])[0]?.["content"])["parts"])
    expect(parts.map((part) => typeof part["thoughtSignature"])).toEqual(["undefined", "string", "undefined"])
    const sent = parts.map((part) => (part["thoughtSignature"] === undefined ? part : change(part)))
    const answers = results(back("call_0_0"), back("call_0_1"))
    yield* post(server, chat(user, said(...sent), answers, ...more))
    return yield* server.rejected
  })
  const dropped: Broken = (part) => ({ ...part, thoughtSignature: undefined })

  it.live("comes back with it", () =>
    Effect.map(
      turn((part) => part),
      (rejected) => expect(rejected).toEqual([])
    )
  )

  it.live.each<{ how: string; change: Broken; message: RegExp }>([
    { how: "dropped", change: dropped, message: /missing a thought_signature.*`default_api:f`, position 2/ },
    {
      how: "replaced by the placeholder",
      change: (part) => ({ ...part, thoughtSignature: "skip_thought_signature_validator" }),
      message: /Thought signature is not valid/
    },
    {
      how: "changed",
      change: (part) => ({ ...part, thoughtSignature: `${String(part["thoughtSignature"])}x` }),
      message: /Thought signature is not valid/
    }
  ])("is missed where it is $how", ({ change, message }) =>
    Effect.map(turn(change), (rejected) => expect(rejected).toEqual([expect.stringMatching(message)]))
  )

  it.live("may be dropped when its turn is over", () =>
    Effect.map(turn(dropped, said({ text: "Done." }), user), (rejected) => expect(rejected).toEqual([]))
  )
})

describe("an answer of google", () => {
  it.live("is the documented JSON", () =>
    Effect.gen(function* () {
      const got = yield* ask(reply)
      expect([got.status, got.type]).toEqual([200, "application/json"])
      expect(got.json).toEqual(JSON.parse(yield* golden("google.json")))
    })
  )

  it.live("is the documented events", () =>
    Effect.gen(function* () {
      const got = yield* ask(reply, { stream: true })
      expect([got.status, got.type]).toEqual([200, "text/event-stream; charset=utf-8"])
      expect(Client.events(got.text)).toEqual(Client.events(yield* golden("google.sse")))
    })
  )

  it.live.each<{ given: Script.Reply; word: string }>([
    { given: { text: "a" }, word: "STOP" },
    { given: { text: "a", finish: "length" }, word: "MAX_TOKENS" },
    { given: { text: "a", finish: "content-filter" }, word: "SAFETY" },
    { given: { refusal: "No." }, word: "SAFETY" }
  ])("says $word of $given", ({ given, word }) =>
    Effect.map(ask(given), ({ json, text }) => {
      expect(Wire.objects(Wire.object(json)["candidates"])[0]?.["finishReason"]).toBe(word)
      expect(text).toContain(given.text ?? given.refusal)
    })
  )

  it.live("without a finish ends in good order before the event that says it", () =>
    Effect.map(ask({ text: "a b", finish: "missing" }, { stream: true }), ({ text }) => {
      expect(text).toContain('"b"')
      expect(text).not.toContain("finishReason")
    })
  )

  it.live("that signs a text brings the signature with its last event", () =>
    Effect.map(ask({ reasoning: { text: "Hm.", signature: "sealed" }, text: "a" }, { stream: true }), ({ text }) => {
      expect(JSON.stringify(Client.events(text).at(-1))).toContain('"thoughtSignature":"sealed"')
      expect(text.match(/sealed/g)).toHaveLength(1)
    })
  )

  it.live("that is overloaded is 503, and within a stream the same error as an event", () =>
    Effect.gen(function* () {
      const error = { error: { code: 503, message: expect.stringContaining("overloaded"), status: "UNAVAILABLE" } }
      const whole = yield* ask(Script.overloadInStream())
      expect([whole.status, whole.json]).toEqual([503, error])
      const { status, text } = yield* ask(Script.overloadInStream("He"), { stream: true })
      const events = Client.events(text)
      expect([status, events.at(-1)?.data]).toEqual([200, error])
      expect(JSON.stringify(events.at(-2))).toContain('"He"')
    })
  )
})
