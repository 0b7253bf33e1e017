import { describe, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as AiError from "effect/ai/AiError"
import * as Prompt from "effect/ai/Prompt"
import * as LanguageModel from "effect/ai/LanguageModel"
import { CheckpointStore } from "../src/CheckpointStore.ts"
import * as Fallback from "../src/Fallback.ts"
import type * as Guard from "../src/Guard.ts"
import * as MemoryStore from "../src/MemoryStore.ts"
import { ModelInfo, ModelSettings, Prices } from "../src/ModelInfo.ts"
import * as Plugin from "../src/Plugin.ts"
import * as Run from "../src/Run.ts"
import * as Author from "../src/Author.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import { agentOf, during, failure, guard, journal, Kit, ofKind, status, steady } from "./support/turns.ts"

const { call, delta, fail, reasoning, reply, stream, text } = ScriptedModel
const input = { runId: "r", task: "go" }
const tools = Kit.toLayer({
  look: ({ at }) => Effect.succeed({ seen: at * 2 }),
  save: ({ text }) => Effect.succeed({ saved: text })
})

/** A model of that provider with a script of its own. */
const model = (provider: string, script: ScriptedModel.Script, more: Layer.Layer<never> = Layer.empty) =>
  Effect.map(ScriptedModel.make(script), (scripted) => ({
    ...scripted,
    layer: Layer.mergeAll(scripted.layer, Layer.succeed(ModelInfo, { provider, model: `${provider}-1` }), more)
  }))

/** One process over the store, with these models. */
const process = (models: Layer.Layer<LanguageModel.LanguageModel>, store: CheckpointStore["Service"]) =>
  Layer.mergeAll(models, Layer.succeed(CheckpointStore, store), tools, steady)

const counts = (models: ReadonlyArray<ScriptedModel.Record>) =>
  Effect.forEach(models, ({ requests }) => Effect.map(requests, ({ length }) => length))

class Guards extends Context.Service<Guards, Plugin.Plugin>()("test/Fallback/Guards") {}

const unauthorized = AiError.make({
  module: "test",
  method: "request",
  reason: AiError.reasonFromHttpStatus({ status: 401, http: { response: { status: 401, headers: {} } } })
})

const down = Array.from({ length: 5 }, () => status(503))
const signed = (provider: string, last: ScriptedModel.Reply) =>
  reply([
    reasoning("thinking", { [provider]: { signature: `${provider}-signed` } }),
    ...last.parts.map((part) => ({ ...part, metadata: { [provider]: { item: `${provider}-item` } } }))
  ])
const assistants = (messages: ReadonlyArray<Prompt.Message> = []) =>
  messages.flatMap((message) => (message.role === "assistant" ? message.content : []))

describe("fallback", () => {
  it.effect("models that have others to fall back to are followed by those", () =>
    Effect.gen(function* () {
      const down = [status(401)]
      const [a, b, c] = [yield* model("a", down), yield* model("b", down), yield* model("c", down)]
      const d = yield* model("d", [text("from d")])
      const models = Fallback.layer([Fallback.layer([a.layer, b.layer]), Fallback.layer([c.layer, d.layer])])
      const outcome = yield* Effect.flatMap(agentOf(), (agent) => Run.start(agent, input)).pipe(
        Effect.provide(process(models, yield* MemoryStore.make))
      )
      expect(outcome).toMatchObject({ output: "from d" })
      expect(yield* counts([a, b, c, d])).toEqual([1, 1, 1, 1])
    })
  )

  it.effect.each([true, false])(
    "RI-016 the second model is asked after four retries of the first (stream %s)",
    (stream) =>
      Effect.gen(function* () {
        const first = yield* model("a", down)
        const second = yield* model("b", [text("from b")])
        const store = yield* MemoryStore.make
        const events = yield* Effect.gen(function* () {
          const outcome = yield* during(Run.start(yield* agentOf({ stream }), input), "15 seconds")
          expect(outcome).toMatchObject({ _tag: "Completed", output: "from b" })
          return yield* journal("r")
        }).pipe(Effect.provide(process(Fallback.layer([first.layer, second.layer]), store)))
        expect(yield* counts([first, second])).toEqual([5, 1])
        expect(ofKind(events, "TurnStarted")).toMatchObject([{ provider: "a", model: "a-1" }])
        const [turn] = ofKind(events, "TurnCompleted")
        expect(turn?.tries?.map(({ failure, model, provider }) => [provider, model, failure?.status])).toEqual([
          ...down.map(() => [undefined, undefined, 503]),
          ["b", "b-1", undefined]
        ])
      })
  )

  const worthless: ReadonlyArray<readonly [string, ScriptedModel.Entry, string]> = [
    ["a request that is wrong", status(400), "ModelRejected"],
    ["a refusal", fail(new AiError.ContentPolicyError({ description: "no" })), "ModelRefusal"],
    ["a bug in the adapter", ScriptedModel.die(new Error("bug")), "ModelRejected"]
  ]
  it.effect.each(worthless)("does not ask another model after %s", ([, entry, tag]) =>
    Effect.gen(function* () {
      const first = yield* model("a", [entry])
      const second = yield* model("b", [])
      const layer = process(Fallback.layer([first.layer, second.layer]), yield* MemoryStore.make)
      const error = yield* failure(Effect.flatMap(agentOf(), (agent) => Run.start(agent, input))).pipe(
        Effect.provide(layer)
      )
      expect(error).toMatchObject({ _tag: "Fatal", reason: { _tag: tag } })
      expect(yield* counts([first, second])).toEqual([1, 0])
    })
  )

  const elsewhere: ReadonlyArray<readonly [string, ScriptedModel.Entry]> = [
    ["a key that is not taken", status(401)],
    ["a model that is not there", status(404)],
    ["a quota that is used up", fail(new AiError.QuotaExhaustedError({}))],
    ["a wait that is too long", status(429, { "retry-after": "3600" })]
  ]
  it.effect.each(elsewhere)("asks the second model at once after %s", ([, entry]) =>
    Effect.gen(function* () {
      const first = yield* model("a", [entry])
      const second = yield* model("b", [text("from b")])
      const layer = process(Fallback.layer([first.layer, second.layer]), yield* MemoryStore.make)
      const outcome = yield* Effect.flatMap(agentOf(), (agent) => Run.start(agent, input)).pipe(Effect.provide(layer))
      expect(outcome).toMatchObject({ output: "from b" })
      expect(yield* counts([first, second])).toEqual([1, 1])
    })
  )

  it.effect("when none answers the Run rests if one of them may be there again, whatever the last one said", () =>
    Effect.gen(function* () {
      const first = yield* model("a", [status(401)])
      const second = yield* model("b", down)
      const third = yield* model("c", [status(403)])
      const store = yield* MemoryStore.make
      const layer = process(Fallback.layer([first.layer, second.layer, third.layer]), store)
      yield* Effect.gen(function* () {
        const error = yield* during(failure(Run.start(yield* agentOf(), input)), "15 seconds")
        expect(error).toMatchObject({ _tag: "Retryable", reason: { _tag: "ModelUnavailable" } })
        const [failed] = ofKind(yield* journal("r"), "TurnFailed")
        expect(failed?.failure).toMatchObject({ status: 503 })
        expect(failed?.tries.map(({ provider }) => provider)).toEqual([undefined, "b", "b", "b", "b", "b", "c"])
      }).pipe(Effect.provide(layer))
      expect(yield* counts([first, second, third])).toEqual([1, 5, 1])
    })
  )

  it.effect("a request that only a fallback finds wrong does not end the Run while the first may be there again", () =>
    Effect.gen(function* () {
      const first = yield* model("a", down)
      const second = yield* model("b", [status(400)])
      const layer = process(Fallback.layer([first.layer, second.layer]), yield* MemoryStore.make)
      const error = yield* during(
        failure(Effect.flatMap(agentOf(), (agent) => Run.start(agent, input))),
        "15 seconds"
      ).pipe(Effect.provide(layer))
      expect(error).toMatchObject({ _tag: "Retryable", reason: { _tag: "ModelUnavailable" } })
    })
  )

  it.effect("RI-035 a fallback that repeats itself has answered: the Run stops, though the first may come back", () =>
    Effect.gen(function* () {
      const first = yield* model("a", down)
      const second = yield* model("b", [stream(Array.from({ length: 2000 }, () => delta("I will do it.\n")))])
      const layer = process(Fallback.layer([first.layer, second.layer]), yield* MemoryStore.make)
      const outcome = yield* during(
        Effect.flatMap(agentOf({ limits: { maxRepeats: 20 } }), (agent) => Run.start(agent, input)),
        "15 seconds"
      ).pipe(Effect.provide(layer))
      expect(outcome).toMatchObject({ _tag: "Stopped", reason: { _tag: "RepetitiveOutput" } })
    })
  )

  it.each([
    { wrote: { provider: "c", server: "x" }, reads: { provider: "c", server: "y", family: true }, foreign: true },
    { wrote: { provider: "c", server: "x" }, reads: { provider: "c", server: "x", family: true }, foreign: false },
    { wrote: { provider: "c" }, reads: { provider: "c", server: "y", family: true }, foreign: false },
    { wrote: { provider: "c", server: "x" }, reads: { provider: "c", server: "y" }, foreign: false },
    { wrote: { provider: "d", server: "x" }, reads: { provider: "c", server: "x" }, foreign: true },
    { wrote: {}, reads: { provider: "c", server: "x", family: true }, foreign: false }
  ])("what $wrote thought is foreign to $reads: $foreign", ({ foreign, reads, wrote }) => {
    const content = [Prompt.makePart("reasoning", { text: "hm" }), Prompt.makePart("text", { text: "so" })]
    const message = Prompt.makeMessage("assistant", { content, options: Author.mark(wrote) })
    const types = assistants(Author.readable([message], reads)).map(({ type }) => type)
    expect(types).toEqual(foreign ? ["text"] : ["reasoning", "text"])
  })

  it.effect("a fallback that does not say its server did not answer from that of the first", () =>
    Effect.gen(function* () {
      const first = yield* model("a", [status(401)], Layer.succeed(ModelInfo, { provider: "a", server: "x" }))
      const second = yield* model("a", [text("from b")])
      const layer = process(Fallback.layer([first.layer, second.layer]), yield* MemoryStore.make)
      const [turn] = yield* Effect.gen(function* () {
        yield* Run.start(yield* agentOf(), input)
        return ofKind(yield* journal("r"), "TurnCompleted")
      }).pipe(Effect.provide(layer))
      expect(turn?.tries?.at(-1)).toMatchObject({ server: "unknown" })
    })
  )

  it("what another provider ran itself is left out for this one", () => {
    const message = Prompt.makeMessage("assistant", {
      content: [
        Prompt.makePart("text", { text: "found" }),
        Prompt.makePart("tool-call", { id: "w", name: "web_search", params: {}, providerExecuted: true }),
        Prompt.makePart("tool-call", { id: "c", name: "look", params: {}, providerExecuted: false })
      ],
      options: Author.mark({ provider: "a" })
    })
    const idsFor = (provider: string) =>
      assistants(Author.readable([message], { provider })).flatMap((part) =>
        part.type === "tool-call" ? [part.id] : []
      )
    expect(idsFor("b")).toEqual(["c"])
    expect(idsFor("a")).toEqual(["w", "c"])
  })

  it.effect("signatures go only to the provider that wrote them, in another process too", () =>
    Effect.gen(function* () {
      const first = yield* model("a", [signed("a", call("look", { at: 1 })), status(401), text("from a")])
      const second = yield* model("b", [signed("b", call("look", { at: 2 }))])
      const store = yield* MemoryStore.make
      const agent = yield* agentOf({ limits: { maxTurns: 2 } })
      const models = Fallback.layer([first.layer, second.layer])
      const stopped = yield* Effect.provide(Run.start(agent, input), process(models, store))
      expect(stopped).toMatchObject({ _tag: "Stopped", reason: { _tag: "MaxTurns" } })
      const reopened = Run.resume(agent, { runId: "r", limits: { maxTurns: 3 } })
      expect(yield* Effect.provide(reopened, process(models, store))).toMatchObject({ output: "from a" })
      expect(yield* counts([first, second])).toEqual([3, 1])

      const [toSecond] = yield* second.requests
      expect(assistants(toSecond?.messages)).toMatchObject([{ type: "tool-call", params: { at: 1 }, options: {} }])
      expect(JSON.stringify(toSecond?.messages)).not.toMatch(/a-signed|a-item|thinking/)
      const last = (yield* first.requests)[2]
      expect(assistants(last?.messages).map(({ options, type }) => [type, options])).toEqual([
        ["reasoning", { a: { signature: "a-signed" } }],
        ["tool-call", { a: { item: "a-item" } }],
        ["tool-call", {}]
      ])
      expect(last?.results).toMatchObject([{ result: { seen: 4 } }])
    })
  )

  it.effect("a model of another provider that a later process uses gets no signatures either", () =>
    Effect.gen(function* () {
      const first = yield* model("a", [signed("a", call("look", { at: 1 }))])
      const second = yield* model("b", [text("done")])
      const store = yield* MemoryStore.make
      const agent = yield* agentOf({ limits: { maxTurns: 1 } })
      yield* Effect.provide(Run.start(agent, input), process(first.layer, store))
      yield* Effect.provide(Run.resume(agent, { runId: "r", limits: { maxTurns: 2 } }), process(second.layer, store))
      expect(JSON.stringify((yield* second.requests)[0]?.messages)).not.toMatch(/a-signed|a-item/)
    })
  )

  it.effect("RI-101 failed tries count, each at the price of its own model", () =>
    Effect.gen(function* () {
      const broken = stream([delta("half of an answer"), ScriptedModel.error({ type: "overloaded_error" })])
      const first = yield* model(
        "a",
        Array.from(down, () => broken)
      )
      const second = yield* model("b", [text("from b", { usage: { input: 7, output: 1 } })])
      const layer = process(Fallback.layer([first.layer, second.layer]), yield* MemoryStore.make)
      const prices = Layer.succeed(Prices, {
        cost: ({ provider }, used) => (used.input + used.output) * (provider === "b" ? 100 : 1)
      })
      const [turn] = yield* Effect.gen(function* () {
        yield* during(Run.start(yield* agentOf(), input), "15 seconds")
        return ofKind(yield* journal("r"), "TurnCompleted")
      }).pipe(Effect.provide(Layer.merge(layer, prices)))
      const tokens = turn?.tries?.map(({ usage }) => (usage?.input ?? 0) + (usage?.output ?? 0)) ?? []
      expect(tokens.length).toBe(6)
      expect(Math.min(...tokens)).toBeGreaterThan(0)
      const ofFirst = tokens.slice(0, 5).reduce((sum, one) => sum + one, 0)
      expect(turn?.costNanoUsd).toBe(ofFirst + 8 * 100)
      expect((turn?.usage.input ?? 0) + (turn?.usage.output ?? 0)).toBe(ofFirst + 8)
    })
  )

  it.effect("each model has its own settings, else those of the Run, and a guard's limit holds for all", () =>
    Effect.gen(function* () {
      const heard: Array<ModelSettings> = []
      const listening = (settings: Layer.Layer<never>) =>
        Layer.merge(
          Layer.effect(
            LanguageModel.LanguageModel,
            LanguageModel.make({
              generateText: () =>
                Effect.flatMap(ModelSettings, (now) => {
                  heard.push(now)
                  return Effect.fail(unauthorized)
                }),
              streamText: () => Stream.empty
            })
          ),
          settings
        )
      const own = Layer.succeed(ModelSettings, { temperature: 0.1, maxOutputTokens: 500 })
      const limit = guard((): Guard.Verdict => ({ _tag: "Allow", maxOutputTokens: 50 }))
      const layer = Layer.mergeAll(
        process(Fallback.layer([listening(Layer.empty), listening(own)]), yield* MemoryStore.make),
        Layer.succeed(ModelSettings, { seed: 7 }),
        Layer.succeed(Guards, { [Plugin.PluginId]: { name: "limit", guards: [limit] } })
      )
      const agent = yield* agentOf({ stream: false })
      yield* Effect.exit(Run.start(agent, input)).pipe(Effect.provide(layer))
      expect(heard).toEqual([
        { seed: 7, maxOutputTokens: 50 },
        { temperature: 0.1, maxOutputTokens: 50 }
      ])
    })
  )

  it.effect("whoever streams the Run hears that a try is void before the other model begins", () =>
    Effect.gen(function* () {
      const broken = stream([delta("half"), ScriptedModel.error(unauthorized)])
      const first = yield* model("a", [broken])
      const second = yield* model("b", [text("whole")])
      const layer = process(Fallback.layer([first.layer, second.layer]), yield* MemoryStore.make)
      const updates = yield* Effect.flatMap(agentOf(), (agent) => Stream.runCollect(Run.stream(agent, input))).pipe(
        Effect.provide(layer)
      )
      const said = updates.flatMap((update) => {
        if (update._tag === "TextDelta") return [`${update.try} ${update.text}`]
        return update._tag === "TryFailed" || update._tag === "TryStarted" ? [`${update.try} ${update._tag}`] : []
      })
      expect(said).toEqual(["1 half", "1 TryFailed", "2 TryStarted", "2 whole"])
    })
  )
})
