import { describe, expect, it } from "@effect/vitest"
import { Agent, MemoryStore, Run } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as AiSdk from "../src/AiSdk.ts"
import * as Fake from "./Fake.ts"
import * as Kit from "./Kit.ts"
import * as Wire from "./Wire.ts"

const done: Wire.Reply = { text: "done" }
const calling = (name: string, args: string): Wire.Reply => ({ calls: [{ id: "call_a", name, args }] })

/** The names in a request, wherever the protocol has them. */
const namesIn = (body: unknown): ReadonlyArray<string> => {
  const names: Array<string> = []
  JSON.stringify(body, (key, value: unknown) => {
    if (key === "name" && typeof value === "string") names.push(value)
    return value
  })
  return names
}

const valid = /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/

describe.each(Wire.protocols.flatMap((protocol) => [true, false].map((stream) => ({ ...protocol, stream }))))(
  "$name (stream: $stream)",
  (protocol) => {
    const answers = (replies: ReadonlyArray<Wire.Reply>) =>
      replies.map((reply) => (protocol.stream ? protocol.streamed(reply) : protocol.whole(reply)))

    const discards = protocol.stream && [Wire.openaiChat.name, Wire.compatible.name].includes(protocol.name)
    it.live(
      discards
        ? "a call without a name costs one more request: its package has thrown the stream away"
        : "a call without a name fails alone: it gets an error result, and the call beside it runs",
      () =>
        Effect.gen(function* () {
          const calls = [
            { id: "call_a", name: "", args: "{}" },
            { id: "call_b", name: "weather", args: '{"city":"Oslo"}' }
          ]
          const server = yield* Fake.serve(answers([{ calls }, done]))
          const { events, outcome } = yield* Kit.run(protocol.model(server.url), { stream: protocol.stream }).pipe(
            Effect.provide(Kit.fast)
          )
          expect(outcome).toMatchObject({ _tag: "Completed", output: "done" })
          expect(server.asked.length).toBe(2)
          const results = events.flatMap(({ event }) => (event._tag === "ToolCallCompleted" ? [event.ending] : []))
          expect(results).toEqual(discards ? [] : ["invalid", "executed"])
        })
    )

    it.live.each(["toString", "constructor", "__proto__", "hasOwnProperty", "a"])(
      "a tool named %s is called, and its call keeps its name in the next request",
      (name) =>
        Effect.gen(function* () {
          const tool = Tool.make(name, { parameters: Schema.Struct({}), success: Schema.String })
          const tools = Toolkit.make(tool.annotate(Tool.Readonly, true))
          const agent = Agent.make("a", { instructions: "i", tools: [tools], stream: protocol.stream })
          const handlers = tools.toLayer({ [name]: () => Effect.succeed("ran") })
          // The model calls the tool by the name that it was given.
          const first = (asked: Fake.Asked) => {
            const wire = namesIn(asked.body["tools"])[0] ?? ""
            const reply = calling(wire, "{}")
            return protocol.stream ? protocol.streamed(reply) : protocol.whole(reply)
          }
          const server = yield* Fake.serve([first, ...answers([done])])
          const outcome = yield* Run.start(agent, { runId: "r", task: "go" }).pipe(
            Effect.provide(Layer.mergeAll(AiSdk.layer(protocol.model(server.url)), MemoryStore.layer, handlers))
          )
          expect(outcome).toMatchObject({ _tag: "Completed", output: "done" })
          const [offered, later] = server.asked.map(({ body }) => body)
          const [wire = ""] = namesIn(offered?.["tools"])
          expect(wire).toMatch(valid)
          expect(wire in Object.prototype).toBe(false)
          expect(namesIn(later?.["messages"] ?? later?.["input"] ?? later?.["contents"])).toContain(wire)
          expect(JSON.stringify(later)).toContain("ran")
        })
    )

    it.live.each(["toString", "constructor", "my tool!", "ünder.score"])(
      "a call to %s, which is no tool, is answered as an unknown one and goes back under a valid name",
      (name) =>
        Effect.gen(function* () {
          const server = yield* Fake.serve(answers([calling(name, "{}"), done]))
          const { events, outcome } = yield* Kit.run(protocol.model(server.url), { stream: protocol.stream })
          expect(outcome).toMatchObject({ _tag: "Completed", output: "done" })
          const results = events.flatMap(({ event }) => (event._tag === "ToolCallCompleted" ? [event] : []))
          expect(results).toMatchObject([{ name, ending: "invalid", isFailure: true }])
          const body = server.asked[1]?.body ?? {}
          const names = namesIn(body["messages"] ?? body["input"] ?? body["contents"])
          expect(names.length).toBeGreaterThan(0)
          for (const one of names) expect(one).toMatch(valid)
        })
    )

    const odd = '{"city":"Oslo","__proto__":{"x":1},"constructor":{"prototype":{}}}'

    it.live("a __proto__ key among the arguments costs neither the reply nor the call", () =>
      Effect.gen(function* () {
        const server = yield* Fake.serve(answers([calling("weather", odd), done]))
        const { events, outcome } = yield* Kit.run(protocol.model(server.url), { stream: protocol.stream })
        expect(outcome).toMatchObject({ _tag: "Completed", output: "done" })
        expect(server.asked.length).toBe(2)
        const turns = events.flatMap(({ event }) => (event._tag === "TurnCompleted" ? [event] : []))
        if (protocol.name === Wire.google.name && protocol.stream) {
          // Here arguments are no text within the event, and the package cannot go on behind it: the model is asked again.
          expect(turns).toMatchObject([{ turn: 1, tries: [{ failure: { tag: "ModelUnavailable" } }, {}] }])
          return
        }
        const part = turns[0]?.reply.find(({ type }) => type === "tool-call")
        expect(JSON.stringify(part?.type === "tool-call" ? part.params : undefined)).toBe(odd)
        const results = events.flatMap(({ event }) => (event._tag === "ToolCallCompleted" ? [event] : []))
        expect(results).toMatchObject([{ ending: "executed", isFailure: false }])
      })
    )
  }
)

describe.each([Wire.openaiChat, Wire.compatible, Wire.openaiResponses])("$name", (protocol) => {
  it.live.each([
    { how: "a code fence", args: '```json\n{"city":"Oslo"}\n```' },
    { how: "two objects", args: '{"city":"Oslo"}{"city":"Rome"}' },
    { how: "no quotes", args: "{city:Oslo}" },
    { how: "a trailing comma", args: '{"city":"Oslo",}' },
    { how: "half an object", args: '{"city":"Os' },
    { how: "a list", args: '["Oslo"]' },
    { how: "a word", args: '"Oslo"' }
  ])("RI-116 arguments with $how stay as they were written, are answered, and go back as an object", ({ args }) =>
    Effect.gen(function* () {
      const server = yield* Fake.serve([calling("weather", args), done].map(protocol.streamed))
      const { events, outcome } = yield* Kit.run(protocol.model(server.url), { stream: true })
      expect(outcome).toMatchObject({ _tag: "Completed" })
      const turns = events.flatMap(({ event }) => (event._tag === "TurnCompleted" ? [event] : []))
      const part = turns[0]?.reply.find(({ type }) => type === "tool-call")
      const kept = part?.type === "tool-call" ? part.params : undefined
      expect(kept).toEqual(args.startsWith("[") ? ["Oslo"] : args)
      const results = events.flatMap(({ event }) => (event._tag === "ToolCallCompleted" ? [event] : []))
      expect(results).toMatchObject([{ ending: "invalid", isFailure: true }])
      const sent: Array<unknown> = []
      JSON.stringify(server.asked[1]?.body, (key, value: unknown) => {
        if (key === "arguments" && typeof value === "string") sent.push(JSON.parse(value))
        return value
      })
      expect(sent).toEqual([{ malformed_arguments: kept }])
    })
  )

  it.live("RI-116 a brace in a string ends no argument", () =>
    Effect.gen(function* () {
      const server = yield* Fake.serve([calling("weather", '{"city":"}"}'), done].map(protocol.streamed))
      const { events } = yield* Kit.run(protocol.model(server.url), { stream: true })
      const results = events.flatMap(({ event }) => (event._tag === "ToolCallCompleted" ? [event] : []))
      expect(results).toMatchObject([{ ending: "executed", isFailure: false }])
    })
  )
})

it.live("RI-153 a call has one id from its first delta on, also where the server gives it none", () =>
  Effect.gen(function* () {
    const server = yield* Fake.serve([
      Wire.compatible.streamed({ calls: [{ id: "", name: "weather", args: '{"city":"Oslo"}' }] })
    ])
    const parts = yield* Kit.withModel(Wire.compatible.model(server.url), (model) =>
      Stream.runCollect(
        model.streamText({ prompt: "go", disableToolCallResolution: true, toolCallValidation: "deferred" })
      )
    )
    const ids = parts.flatMap((part) => (part.type.startsWith("tool-") && "id" in part ? [part.id] : []))
    expect(ids.length).toBe(4)
    expect(new Set(ids).size).toBe(1)
    expect(ids[0]).not.toBe("")
  })
)
