import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fake from "./Fake.ts"
import * as Kit from "./Kit.ts"
import * as Wire from "./Wire.ts"

const first: Wire.Reply = {
  thought: { text: "Two look-ups.", signature: "c2lnbmF0dXJl" },
  text: "Let me see.",
  calls: [
    { id: "call_a", name: "weather", args: '{"city":"Oslo"}' },
    { id: "call_b", name: "now", args: "{}" }
  ]
}
const second: Wire.Reply = { text: "4 degrees at noon." }

describe.each(Wire.protocols)("$name", (protocol) => {
  const slug = protocol.name.toLowerCase().replace(/\W+/g, "-")
  const answers = (stream: boolean) =>
    [first, second].map((reply) => (stream ? protocol.streamed(reply) : protocol.whole(reply)))

  it.live.each([true, false])(
    "RI-059 RI-011 RI-092 carries two calls, their results and the signature back in the next request (stream: %s)",
    (stream) =>
      Effect.gen(function* () {
        const server = yield* Fake.serve(answers(stream))
        const { events, outcome } = yield* Kit.run(protocol.model(server.url), { stream })
        expect(outcome).toMatchObject({ _tag: "Completed", output: "4 degrees at noon." })
        expect(server.asked.length).toBe(2)
        const bodies = server.asked.map(({ body, path }) => ({ path, body }))
        yield* Effect.promise(() =>
          expect(`${JSON.stringify(bodies, null, 2)}\n`).toMatchFileSnapshot(
            `golden/${slug}${stream ? "-stream" : ""}.json`
          )
        )
        const turns = events.flatMap(({ event }) => (event._tag === "TurnCompleted" ? [event] : []))
        expect(turns.map(({ finish }) => finish)).toEqual(["tool-calls", "stop"])
        // Google's package does not say which model answered.
        expect(turns[0]?.responseModel).toBe(protocol === Wire.google ? undefined : "answering-model")
      })
  )
})

it.live("RI-011 OpenAI responses without storage gets the encrypted reasoning back right before its calls", () =>
  Effect.gen(function* () {
    const protocol = Wire.openaiResponses
    const server = yield* Fake.serve([first, second].map(protocol.streamed))
    const settings = { providerOptions: { openai: { store: false, include: ["reasoning.encrypted_content"] } } }
    yield* Kit.run(protocol.model(server.url), { stream: true, settings })
    const [, asked] = server.asked
    expect(asked?.body).toMatchObject({
      store: false,
      input: [
        { role: "developer" },
        { role: "user" },
        {
          type: "reasoning",
          id: "rs_1",
          encrypted_content: "c2lnbmF0dXJl",
          summary: [{ type: "summary_text", text: "Two look-ups." }]
        },
        { role: "assistant" },
        { type: "function_call", call_id: "call_a" },
        { type: "function_call", call_id: "call_b" },
        { type: "function_call_output", call_id: "call_a" },
        { type: "function_call_output", call_id: "call_b" }
      ]
    })
  })
)

it.live("gives what is known of the model to the journal, and the settings to the provider", () =>
  Effect.gen(function* () {
    const server = yield* Fake.serve([Wire.anthropic.whole(second)])
    const { events } = yield* Kit.run(Wire.anthropic.model(server.url), {
      stream: false,
      info: { window: 200_000, server: "127.0.0.1" },
      settings: { maxOutputTokens: 100, temperature: 0.5, stopSequences: ["END"], reasoning: "none", unknown: true }
    })
    const started = events.flatMap(({ event }) => (event._tag === "TurnStarted" ? [event] : []))
    expect(started).toMatchObject([{ provider: "anthropic", model: "claude-sonnet-4-5", server: "127.0.0.1" }])
    expect(started[0]?.settings).toMatchObject({ maxOutputTokens: 100 })
    expect(server.asked[0]?.body).toMatchObject({ max_tokens: 100, temperature: 0.5, stop_sequences: ["END"] })
    expect(server.asked[0]?.body).not.toHaveProperty("unknown")
  })
)
