import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Kit from "./Kit.ts"
import type * as Script from "./servers/Script.ts"
import { serve } from "./servers/serve.ts"
import { google, spoken } from "./Spoken.ts"

/** Models of OpenAI and Google think unasked; there `thinking` says that the request carries what they thought. */
const asked = [...spoken, google].flatMap((one) => [
  ...(one.protocol === "anthropic" ? [] : [{ ...one, settings: {} }]),
  ...(one.protocol === "openai-chat" ? [] : [{ ...one, settings: one.thinking }])
])

const reasoned = (protocol: string, reply: Script.Reply): Script.Reply =>
  protocol === "openai-chat" ? reply : { ...reply, reasoning: { text: "Let me think." } }

describe.each(asked.flatMap((one) => [true, false].map((stream) => ({ ...one, stream }))))(
  "$protocol with $settings (stream: $stream)",
  ({ model, protocol, settings, stream }) => {
    it.live("RI-059 RI-011 a server as strict as the real one takes every request of a whole conversation", () =>
      Effect.gen(function* () {
        const replies: ReadonlyArray<Script.Reply> = [
          { text: "First.", calls: [{ name: "weather", args: { city: "Oslo" } }, { name: "now" }] },
          { calls: [{ name: "weather", args: { city: 7 } }] },
          { calls: [{ name: "toString" }, { name: "no_such_tool" }] },
          {
            calls: [
              { name: "weather", args: { city: "Rome" } },
              { name: "weather", args: { city: "Oslo" } }
            ]
          },
          { text: "4 degrees." }
        ]
        const server = yield* serve({
          protocol,
          script: (_, number) => reasoned(protocol, replies[number] ?? { text: "?" })
        })
        const { outcome } = yield* Kit.run(model(server.url), { stream, settings })
        expect(yield* server.rejected).toEqual([])
        expect(outcome).toMatchObject({ _tag: "Completed", output: "4 degrees." })
        expect((yield* server.requests).length).toBe(replies.length)
      })
    )
  }
)

describe.each(asked.filter(({ protocol }) => protocol.startsWith("openai")))("$protocol with $settings", (one) => {
  it.live("RI-116 takes the conversation after arguments that were no JSON", () =>
    Effect.gen(function* () {
      const replies: ReadonlyArray<Script.Reply> = [
        { calls: [{ name: "weather", rawArgs: '{"city":"Os' }] },
        { text: "4 degrees." }
      ]
      const server = yield* serve({
        protocol: one.protocol,
        script: (_, number) => reasoned(one.protocol, replies[number] ?? { text: "?" })
      })
      const { outcome } = yield* Kit.run(one.model(server.url), { stream: true, settings: one.settings })
      expect(yield* server.rejected).toEqual([])
      expect(outcome).toMatchObject({ _tag: "Completed", output: "4 degrees." })
    })
  )
})

describe.each([...spoken, google])("$protocol", ({ model, protocol }) => {
  it.live.each([
    { what: "a wrong key", server: { apiKey: "another-key" }, status: 401 },
    { what: "more than its window", server: { window: 1 }, status: 400 },
    { what: "a model that there is not", server: { models: ["another-model"] }, status: 404 }
  ])("$what is told once, and the Run fails with what the provider said", ({ server: options, status }) =>
    Effect.gen(function* () {
      const server = yield* serve({ protocol, script: () => ({ text: "?" }), ...options })
      const { events, outcome } = yield* Kit.run(model(server.url), { stream: true })
      expect(outcome).toMatchObject({ _tag: "Failed", error: { reason: { _tag: "ModelRejected" } } })
      const failed = events.flatMap(({ event }) => (event._tag === "TurnFailed" ? [event.failure] : []))
      // OpenAI responses say 400 of a model that there is not, Google of a wrong key.
      const badRequest = protocol === "openai-responses" ? 404 : protocol === "google" ? 401 : undefined
      const said = status === badRequest ? 400 : status
      expect(failed).toMatchObject([{ status: said, retryable: false }])
      expect((yield* server.requests).length).toBe(1)
    })
  )
})
