import { describe, expect, it } from "@effect/vitest"
import { Agent, MemoryStore, Run } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as AiSdk from "../src/AiSdk.ts"
import * as Kit from "./Kit.ts"
import type * as Script from "./servers/Script.ts"
import { serve } from "./servers/serve.ts"
import * as Wire from "./servers/Wire.ts"
import { spoken } from "./Spoken.ts"

const Report = Schema.Struct({ celsius: Schema.Number })
/** What was said so far, wherever the protocol has it. */
const said = (body: Wire.JsonObject = {}) => Wire.objects(body["messages"] ?? body["input"])
const good = '{"celsius":4}'

describe.each(spoken.flatMap((one) => [true, false].map((stream) => ({ ...one, stream }))))(
  "an agent with an output schema, over $protocol (stream: $stream)",
  ({ model, protocol, stream }) => {
    const agent = Agent.make("a", { instructions: "Report.", tools: [Kit.Tools], output: Report, stream })

    /** How the Run ends if the model replies so, and what was asked. */
    const ran = Effect.fnUntraced(function* (replies: ReadonlyArray<Script.Reply>) {
      const server = yield* serve({ protocol, script: (_, number) => replies[number] ?? { text: "one too many" } })
      const layer = Layer.mergeAll(AiSdk.layer(model(server.url)), MemoryStore.layer, Kit.handlers)
      const result = yield* Effect.result(Effect.provide(Run.start(agent, { runId: "r", task: "go" }), layer))
      expect(yield* server.rejected).toEqual([])
      return { result, bodies: (yield* server.requests).map(({ body }) => Wire.object(body)) }
    })
    const texts = (...all: ReadonlyArray<string>) => all.map((text) => ({ text }))

    it.live("RI-086 is told the JSON Schema, and completes with its type after calls, fenced or not", () =>
      Effect.gen(function* () {
        const call = { calls: [{ name: "weather", args: { city: "Oslo" } }] }
        const { bodies, result } = yield* ran([call, { text: `Here:\n\`\`\`json\n${good}\n\`\`\`` }])
        expect(result).toMatchObject({ success: { _tag: "Completed", output: { celsius: 4 }, attempts: 1 } })
        expect(bodies.length).toBe(2)
        for (const body of bodies) expect(JSON.stringify(body)).toMatch(/JSON Schema.*celsius/)
      })
    )

    it.live.each([
      { answer: "no", issue: "not JSON" },
      { answer: 'Sure! {"celsius":4}', issue: "not JSON" },
      { answer: '{"celsius":4,}', issue: "not JSON" },
      { answer: '{"celsius":"four"}', issue: "celsius" }
    ])("RI-086 asks again for $answer, with what is wrong", ({ answer, issue }) =>
      Effect.gen(function* () {
        const { bodies, result } = yield* ran(texts(answer, good))
        expect(result).toMatchObject({ success: { output: { celsius: 4 }, attempts: 2 } })
        expect(bodies.length).toBe(2)
        const [wrong, feedback] = said(bodies[1]).slice(-2)
        expect(JSON.stringify(wrong)).toContain(JSON.stringify(answer).slice(1, -1))
        expect(JSON.stringify(feedback)).toContain(issue)
      })
    )

    it.live("RI-163 says that it took three answers", () =>
      Effect.gen(function* () {
        const { bodies, result } = yield* ran(texts("bad", "worse", good))
        expect(result).toMatchObject({ success: { output: { celsius: 4 }, attempts: 3 } })
        expect(bodies.length).toBe(3)
      })
    )

    it.live("RI-163 fails after three answers that do not match, with their count and what is wrong", () =>
      Effect.gen(function* () {
        const { bodies, result } = yield* ran(texts("bad", "worse", '{"celsius":"x"}'))
        expect(result).toMatchObject({
          failure: {
            _tag: "Fatal",
            reason: { _tag: "OutputInvalid", attempts: 3, issues: expect.stringContaining("celsius") }
          }
        })
        expect(bodies.length).toBe(3)
      })
    )

    it.live("RI-150 ends with a refusal after one request", () =>
      Effect.gen(function* () {
        const { bodies, result } = yield* ran([{ refusal: "I cannot tell the weather." }])
        expect(result).toMatchObject({ failure: { _tag: "Fatal", reason: { _tag: "ModelRefusal" } } })
        expect(bodies.length).toBe(1)
      })
    )
  }
)
