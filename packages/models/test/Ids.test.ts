import { describe, expect, it } from "@effect/vitest"
import { Agent, Fallback, MemoryStore, Run } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Prompt from "effect/ai/Prompt"
import * as AiSdk from "../src/AiSdk.ts"
import * as WirePrompt from "../src/WirePrompt.ts"
import { type Asked, json, serve } from "./Fake.ts"
import { agentOf, handlers, task, Tools } from "./Kit.ts"
import { anthropic, compatible, openaiChat, openaiResponses } from "./Wire.ts"

const kimi = "functions.weather:0"
const long = "x".repeat(100)
const calls = [kimi, long].map((id) => ({ id, name: "weather", args: '{"city":"Oslo"}' }))
const none = json({ error: { message: "no credit" } }, { status: 402 })

/** Every id of a call or a result in the requests after the first, in order. */
const idsIn = ({ body }: Asked): ReadonlyArray<string> =>
  [...JSON.stringify(body).matchAll(/"(?:tool_use_id|tool_call_id|call_id|id)":"((?:[^"\\]|\\.)*)"/g)].map(
    ([, id = ""]) => id
  )

const strict = [
  { name: "Anthropic", protocol: anthropic, valid: /^[a-zA-Z0-9_-]{1,64}$/ },
  { name: "OpenAI chat completions", protocol: openaiChat, valid: /^.{1,40}$/ },
  { name: "OpenAI responses", protocol: openaiResponses, valid: /^.{1,64}$/ }
]

describe("tool-call ids", () => {
  it.live.each(strict)(
    "I1 of another server reach $name in a form that it takes, results matching, and the journal keeps them",
    ({ protocol, valid }) =>
      Effect.gen(function* () {
        const first = yield* serve([compatible.streamed({ calls }), none])
        const second = yield* serve([protocol.streamed({ text: "4 degrees" })])
        const models = Fallback.layer([
          AiSdk.layer(compatible.model(first.url)),
          AiSdk.layer(protocol.model(second.url))
        ])
        const events = yield* Effect.gen(function* () {
          const outcome = yield* Run.start(agentOf(true), { runId: "r", task })
          expect(outcome).toMatchObject({ _tag: "Completed" })
          return yield* Stream.runCollect(Run.events("r"))
        }).pipe(Effect.provide(Layer.mergeAll(models, MemoryStore.layer, handlers)))
        const [asked] = second.asked
        const ids = asked === undefined ? [] : idsIn(asked)
        expect(ids).toHaveLength(4)
        expect(new Set(ids).size).toBe(2)
        expect(ids.slice(2)).toEqual(ids.slice(0, 2))
        for (const id of ids) expect(id).toMatch(valid)
        expect(JSON.stringify(events)).toContain(kimi)
        expect(JSON.stringify(events)).not.toContain(ids[0])
      }).pipe(Effect.scoped)
  )

  it.live("I3 of a compatible server go back to it as they were", () =>
    Effect.gen(function* () {
      const server = yield* serve([compatible.streamed({ calls }), compatible.streamed({ text: "4 degrees" })])
      yield* Run.start(agentOf(true), { runId: "r", task }).pipe(
        Effect.provide(Layer.mergeAll(AiSdk.layer(compatible.model(server.url)), MemoryStore.layer, handlers))
      )
      const [, asked] = server.asked
      expect(asked === undefined ? [] : idsIn(asked)).toEqual([kimi, long, kimi, long])
    }).pipe(Effect.scoped)
  )

  const wire = (...ids: ReadonlyArray<string>) =>
    WirePrompt.messages(
      Prompt.fromMessages([
        Prompt.makeMessage("assistant", {
          content: ids.map((id) =>
            Prompt.makePart("tool-call", { id, name: "now", params: {}, providerExecuted: false })
          )
        })
      ])
    ).flatMap(({ content }) =>
      typeof content === "string" ? [] : content.map((part) => ("toolCallId" in part ? part.toolCallId : ""))
    )

  it("I1 stay apart where their forms on the wire would meet, also with one that somebody has already", () => {
    const [first = ""] = wire("a.b")
    const all = wire("a.b", "a:b", "a_b", first)
    expect(new Set(all).size).toBe(4)
    expect(all.slice(2)).toEqual(["a_b", first])
  })

  it("I1 stay apart where they begin alike and their hashes are one", () => {
    const all = wire("functions.weather.today:8t", "functions.weather.today:fj")
    expect(new Set(all).size).toBe(2)
  })

  it.each([true, false])("I3 only a server of a family gets its own back as they are (%s)", (keepsOwn) => {
    const prompt = Prompt.fromMessages([
      Prompt.makeMessage("assistant", {
        content: [Prompt.makePart("tool-call", { id: kimi, name: "now", params: {}, providerExecuted: false })],
        options: { waystone: { provider: "p" } }
      })
    ])
    expect(JSON.stringify(WirePrompt.messages(prompt, keepsOwn)).includes(kimi)).toBe(keepsOwn)
  })

  it("I2 are the same in every request, and a good one stays as it is", () => {
    expect(wire("a.b", "c", "d:e").slice(0, 2)).toEqual(wire("a.b", "c"))
    expect(wire("toolu_01-A")).toEqual(["toolu_01-A"])
  })
})

describe("reasoning", () => {
  const thought = { text: "what A thought", signature: "" }
  const one = { thought, calls: [{ id: "c1", name: "weather", args: '{"city":"Oslo"}' }] }

  /** One Turn at the first model, the next at the second. */
  const moved = (first: Parameters<typeof AiSdk.layer>[0], second: Parameters<typeof AiSdk.layer>[0]) => {
    const agent = Agent.make("forecaster", { instructions: "Answer.", tools: [Tools], limits: { maxTurns: 1 } })
    return Effect.gen(function* () {
      yield* Effect.provide(Run.start(agent, { runId: "r", task }), AiSdk.layer(first))
      yield* Effect.provide(Run.resume(agent, { runId: "r", limits: { maxTurns: 2 } }), AiSdk.layer(second))
    }).pipe(Effect.provide(Layer.mergeAll(MemoryStore.layer, handlers)))
  }

  it.live("of one compatible server stays away from another of the same name, and goes back to its own", () =>
    Effect.gen(function* () {
      const a = yield* serve([compatible.streamed(one), compatible.streamed({ text: "4" })])
      const b = yield* serve([compatible.streamed({ text: "4" })])
      yield* moved(compatible.model(a.url), compatible.model(b.url))
      expect(JSON.stringify(b.asked[0]?.body)).not.toContain("what A thought")
      const own = yield* serve([compatible.streamed(one), compatible.streamed({ text: "4" })])
      yield* moved(compatible.model(own.url), compatible.model(own.url))
      expect(JSON.stringify(own.asked[1]?.body)).toContain("what A thought")
    }).pipe(Effect.scoped)
  )

  it.live("of a provider that is one vendor goes back to it through another address", () =>
    Effect.gen(function* () {
      const signed = { ...one, thought: { text: "what it thought", signature: "c2ln" } }
      const a = yield* serve([anthropic.streamed(signed)])
      const b = yield* serve([anthropic.streamed({ text: "4" })])
      yield* moved(anthropic.model(a.url), anthropic.model(b.url))
      expect(JSON.stringify(b.asked[0]?.body)).toContain("c2ln")
    }).pipe(Effect.scoped)
  )
})
