import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Tokens from "../src/Tokens.ts"
import * as Fake from "./Fake.ts"
import * as Kit from "./Kit.ts"
import * as Wire from "./Wire.ts"

/** The reply with these counters in place of all that it had, whatever they are called. */
const counting = ({ body = "", ...more }: Fake.Answer, value: string): Fake.Answer => ({
  ...more,
  body: body.replace(
    /"((?:prompt|completion|input|output)_tokens|(?:prompt|candidates)TokenCount)":\d+/g,
    `"$1":${value}`
  )
})

const forms = Wire.protocols.flatMap((protocol) => [true, false].map((stream) => ({ protocol, stream })))

describe.each(forms)("$protocol.name, stream: $stream", ({ protocol, stream }) => {
  const reply = stream ? protocol.streamed({ text: "Four." }) : protocol.whole({ text: "Four." })
  const usage = (value: string) =>
    Effect.gen(function* () {
      const server = yield* Fake.serve([counting(reply, value)])
      const { events, outcome } = yield* Kit.run(protocol.model(server.url), { stream }).pipe(Effect.provide(Kit.fast))
      const turn = events.flatMap(({ event }) => (event._tag === "TurnCompleted" ? [event] : []))[0]
      return { outcome, asked: server.asked.length, usage: turn?.usage }
    })

  it.live.each(["1e300", "9007199254740993", "-1"])(
    "U1 RI-101 counters that are %s cost no reply: both sides are estimated, and it says so",
    (value) =>
      Effect.gen(function* () {
        const got = yield* usage(value)
        expect(got).toMatchObject({ asked: 1, outcome: { _tag: "Completed", output: "Four." } })
        expect(got.usage).toMatchObject({ estimated: true, output: 2, cacheRead: 0 })
        expect(got.usage?.input).toBeGreaterThan(0)
      })
  )

  /** Those take no reply without its counters. */
  const strict = protocol === Wire.anthropic || protocol.name.includes("responses")
  it.live.skipIf(strict)(
    "U2 RI-101 counters that are null were not told: both sides are estimated, and it says so",
    () =>
      Effect.gen(function* () {
        const got = yield* usage("null")
        expect(got).toMatchObject({ asked: 1, outcome: { _tag: "Completed", output: "Four." } })
        expect(got.usage).toMatchObject({ estimated: true })
        expect(got.usage?.input).toBeGreaterThan(0)
      })
  )
})

it.each([
  ["a total of 0 that was told", { total: 0 }, { completion_tokens: 0 }, { total: 0 }],
  ["a total of 0 that was not", { total: 0, text: 0, reasoning: 0 }, { completion_tokens: null }, {}],
  ["a total of 0 without the provider's words", { total: 0 }, undefined, { total: 0 }],
  ["a wrong part", { total: 5, text: -7, reasoning: 12 }, undefined, {}],
  ["a wrong part without a total", { total: undefined, text: Number.NaN, reasoning: 1 }, undefined, {}],
  ["a part that is missing", { total: 5, text: undefined, reasoning: 1.4 }, undefined, { total: 5, reasoning: 1 }]
] as const)("U1 U2 of %s there is left what can be true", (_, outputTokens, raw, left) => {
  const inputTokens = { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined }
  const given = { inputTokens, outputTokens: { text: undefined, reasoning: undefined, ...outputTokens } }
  expect(Tokens.read(raw === undefined ? given : { ...given, raw }).outputTokens).toEqual(left)
})
