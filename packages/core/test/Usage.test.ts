import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Response from "effect/ai/Response"
import { TestClock } from "effect/testing"
import * as Guard from "../src/Guard.ts"
import { ModelInfo, ModelSettings, Prices } from "../src/ModelInfo.ts"
import * as Run from "../src/Run.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import * as Usage from "../src/Usage.ts"
import { agentOf, during, failure, guard, journal, ofKind, scene, status, steady } from "./support/turns.ts"

const { call, delta, error, fail, hang, reply, stream, text, wait } = ScriptedModel
const input = { runId: "r", task: "go" }
const of = (usage: Partial<Usage.Usage>): Usage.Usage => ({ ...Usage.zero, ...usage })

const finish = (
  inputTokens: Response.FinishPartEncoded["usage"]["inputTokens"],
  outputTokens: Response.FinishPartEncoded["usage"]["outputTokens"] = { total: 0 }
): Response.FinishPartEncoded => ({ type: "finish", reason: "stop", usage: { inputTokens, outputTokens } })

/** Nano-USD a token. */
const prices = Layer.succeed(Prices, {
  cost: (_, { cacheRead, cacheWrite, input, output, reasoning }) =>
    10 * input + cacheRead + 12 * cacheWrite + 40 * (output + reasoning)
})

/** Only models of that name have a price. */
const pricesOf = (name: string) =>
  Layer.succeed(Prices, { cost: ({ model }, usage) => (model === name ? Usage.total(usage) : undefined) })

describe("classes of tokens", () => {
  it.effect.each([
    [
      "a total that includes the cached ones",
      finish({ total: 2006, cacheRead: 1920 }),
      { input: 86, cacheRead: 1920 },
      2780
    ],
    [
      "a count without the cached ones",
      finish({ uncached: 9, cacheRead: 17_102 }),
      { input: 9, cacheRead: 17_102 },
      17_192
    ],
    ["both", finish({ uncached: 9, cacheRead: 17_102, total: 17_111 }), { input: 9, cacheRead: 17_102 }, 17_192],
    [
      "tokens written to a cache",
      finish({ total: 100, cacheRead: 30, cacheWrite: 50 }),
      { input: 20, cacheRead: 30, cacheWrite: 50 },
      830
    ],
    ["a negative count, which says nothing", finish({ uncached: -5, cacheRead: -7, total: 9 }), { input: 9 }, 90],
    [
      "reasoning inside the output",
      finish({ total: 1 }, { total: 100, reasoning: 40 }),
      { input: 1, output: 60, reasoning: 40 },
      4010
    ],
    [
      "reasoning beside the text",
      finish({ total: 1 }, { text: 60, reasoning: 40 }),
      { input: 1, output: 60, reasoning: 40 },
      4010
    ]
  ] as const)("RI-166 no token is counted or paid twice: %s", ([, part, usage, costNanoUsd]) =>
    scene([reply([text("ok"), reply([part])])], () =>
      Effect.gen(function* () {
        expect(yield* Run.start(yield* agentOf(), input)).toMatchObject({ usage: of(usage) })
        const [turn] = ofKind(yield* journal("r"), "TurnCompleted")
        expect(turn).toMatchObject({ usage: of(usage), costNanoUsd })
        expect(yield* Run.get("r")).toMatchObject({ usage: of(usage), costNanoUsd })
      }).pipe(Effect.provide(prices))
    )
  )
})

describe("RI-101 tries that fail are paid for", () => {
  const usage = { input: 100, output: 0 }
  const known: ScriptedModel.Chunk = finish({ total: 100 })

  it.effect("usage that was reported before an abort is counted as it is", () =>
    scene([stream([delta("a"), known, hangs])], () =>
      Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(Run.start(yield* agentOf(), input))
        yield* TestClock.adjust("1 second")
        yield* Fiber.interrupt(fiber)
        const [turn] = ofKind(yield* journal("r"), "TurnFailed")
        expect(turn).toMatchObject({ usage: of(usage), costNanoUsd: 1000, failure: { tag: "Interrupted" } })
        expect(turn?.usage).not.toHaveProperty("estimated")
        expect((yield* Run.get("r")).usage).toEqual(of(usage))
      }).pipe(Effect.provide(prices))
    )
  )
  const hangs = wait("1 hour")

  it.effect.each(["interrupt", "cancel", "deadline"])(
    "without a report an abort by %s counts an estimate that says so",
    (how) =>
      scene([stream([delta("x".repeat(100)), delta("y".repeat(100)), delta("z".repeat(200)), hangs])], () =>
        Effect.gen(function* () {
          const agent = yield* agentOf({ limits: { activeTime: "3 seconds" } })
          const fiber = yield* Effect.forkChild(Run.start(agent, input))
          yield* TestClock.adjust("1 second")
          if (how === "interrupt") yield* Fiber.interrupt(fiber)
          if (how === "cancel") yield* Run.cancel({ runId: "r", by: "me" })
          yield* TestClock.adjust("2 seconds")
          expect(fiber.pollUnsafe()).toBeDefined()
          const [turn] = ofKind(yield* journal("r"), "TurnFailed")
          expect(turn?.usage).toMatchObject({ output: 100, estimated: true })
          expect(turn?.usage.input).toBeGreaterThan(0)
          expect(turn?.costNanoUsd).toBe(10 * (turn?.usage.input ?? 0) + 4000)
          expect((yield* Run.get("r")).usage).toEqual(turn?.usage)
        }).pipe(Effect.provide(prices))
      )
  )

  it.effect("a failed try and the good one after it add up", () =>
    scene(
      [
        stream([delta("He"), known, error({ type: "overloaded_error" })]),
        text("Hello", { usage: { input: 120, output: 0 } })
      ],
      () =>
        Effect.gen(function* () {
          const outcome = yield* during(Run.start(yield* agentOf(), input), "1 second")
          expect(outcome).toMatchObject({ usage: of({ input: 220 }) })
          const [turn] = ofKind(yield* journal("r"), "TurnCompleted")
          expect(turn).toMatchObject({ usage: of({ input: 220 }), costNanoUsd: 2200 })
          expect(turn?.tries?.map(({ usage }) => usage)).toEqual([of({ input: 100 }), of({ input: 120 })])
        }).pipe(Effect.provide([prices, steady]))
    )
  )

  it.effect("a stream that is cut counts an estimate of what it had said", () =>
    scene([stream([delta("x".repeat(400))], { cut: true }), text("ok", { usage: { input: 1, output: 1 } })], () =>
      Effect.gen(function* () {
        yield* during(Run.start(yield* agentOf(), input), "1 second")
        const [turn] = ofKind(yield* journal("r"), "TurnCompleted")
        const [cut, good] = turn?.tries ?? []
        expect(cut?.usage).toMatchObject({ output: 100, estimated: true })
        expect(good?.usage).toEqual(of({ input: 1, output: 1 }))
        expect(turn?.usage).toEqual(Usage.add(cut?.usage ?? Usage.zero, good?.usage ?? Usage.zero))
      }).pipe(Effect.provide(steady))
    )
  )

  it.effect("a request that timed out without an answer counts its estimated input", () =>
    scene([hang, text("ok")], () =>
      Effect.gen(function* () {
        yield* during(Run.start(yield* agentOf(), input), "61 seconds")
        const [turn] = ofKind(yield* journal("r"), "TurnCompleted")
        expect(turn?.tries?.[0]?.usage).toMatchObject({ output: 0, estimated: true })
        expect(turn?.tries?.[0]?.usage?.input).toBeGreaterThan(0)
      }).pipe(Effect.provide(steady))
    )
  )

  it.effect.each([429, 503, 400])("a %i without parts costs nothing", (code) =>
    scene(code === 400 ? [status(400)] : [status(code), text("ok")], () =>
      Effect.gen(function* () {
        yield* Effect.ignore(during(Run.start(yield* agentOf(), input), "1 second"))
        const events = yield* journal("r")
        const [turn] = [...ofKind(events, "TurnCompleted"), ...ofKind(events, "TurnFailed")]
        expect(turn?.tries?.[0]?.usage).toEqual(Usage.zero)
        expect(turn).toMatchObject(
          code === 400 ? { usage: Usage.zero, costNanoUsd: 0 } : { usage: of({ input: 10, output: 5 }) }
        )
        expect(yield* Run.get("r")).not.toHaveProperty("costUnknown")
      }).pipe(Effect.provide([prices, steady]))
    )
  )

  const cost = (usage: AiError.ProviderMetadata[string]) =>
    new AiError.ContentPolicyError({ description: "no", metadata: { waystone: { usage } } })

  it.effect.each([
    {
      told: { inputTokens: { total: 90, cacheRead: 40 }, outputTokens: { total: 7 } },
      counted: of({ input: 50, cacheRead: 40, output: 7 })
    },
    { told: { inputTokens: { total: "90" }, outputTokens: {} }, counted: Usage.zero },
    { told: null, counted: Usage.zero }
  ])("what an adapter says that its error cost is counted, if it is usage: $told", ({ counted, told }) =>
    scene([fail(cost(told))], () =>
      Effect.gen(function* () {
        const error = yield* failure(Run.start(yield* agentOf(), input))
        expect(error).toMatchObject({ reason: { _tag: "ModelRefusal" } })
        const [turn] = ofKind(yield* journal("r"), "TurnFailed")
        expect(turn?.usage).toEqual(counted)
      })
    )
  )

  it.effect.each([true, false])("a provider that reports nothing gets an estimate, not 0 (stream %s)", (stream) =>
    scene([text("x".repeat(400), { usage: "unknown" })], () =>
      Effect.gen(function* () {
        const outcome = yield* Run.start(yield* agentOf({ stream }), input)
        expect(outcome).toMatchObject({ _tag: "Completed", usage: { output: 100, estimated: true } })
        expect(outcome.usage.input).toBeGreaterThan(0)
        const [turn] = ofKind(yield* journal("r"), "TurnCompleted")
        expect(turn?.costNanoUsd).toBe(10 * outcome.usage.input + 4000)
      }).pipe(Effect.provide(prices))
    )
  )

  it.effect.each([
    ["input", finish({ total: 9 }, {}), { input: 9, output: 100 }],
    ["output", finish({}, { total: 9 }), { output: 9 }]
  ] as const)("a provider that reports its %s only gets an estimate of the rest", ([, part, usage]) =>
    scene([reply([text("x".repeat(400)), reply([part])])], () =>
      Effect.gen(function* () {
        const outcome = yield* Run.start(yield* agentOf(), input)
        expect(outcome.usage).toMatchObject({ ...usage, estimated: true })
        expect(outcome.usage.input).toBeGreaterThan(0)
      })
    )
  )

  it.effect("a provider that reports zeros gets an estimate: no request is free", () =>
    scene([text("x".repeat(400), { usage: { input: 0, output: 0 } })], () =>
      Effect.gen(function* () {
        const outcome = yield* Run.start(yield* agentOf(), input)
        expect(outcome.usage).toMatchObject({ output: 100, estimated: true })
        expect(outcome.usage.input).toBeGreaterThan(0)
      })
    )
  )

  it.effect("the usage of a rejected reply counts", () =>
    scene([reply([], { usage: { input: 7, output: 0 } }), text("ok", { usage: { input: 8, output: 1 } })], () =>
      Effect.gen(function* () {
        expect(yield* Run.start(yield* agentOf(), input)).toMatchObject({ usage: of({ input: 15, output: 1 }) })
      })
    )
  )
})

describe("times of a turn", () => {
  const parts = stream([wait(100), delta("a"), wait(100), delta("b"), wait(100), delta("c")])

  it.effect("RI-033 the events say when the first part came and when the reply ended, with its usage", () =>
    scene([parts], () =>
      Effect.gen(function* () {
        yield* TestClock.adjust("1 minute")
        yield* during(Run.start(yield* agentOf(), input), 300)
        const events = yield* journal("r")
        expect(ofKind(events, "TurnStarted")).toMatchObject([{ at: 60_000 }])
        expect(ofKind(events, "TurnCompleted")).toMatchObject([
          { at: 60_300, firstPartAt: 60_100, usage: of({ input: 10, output: 5 }), finish: "stop" }
        ])
      })
    )
  )

  it.effect("RI-033 an aborted turn says so, when, and what it had used", () =>
    scene([parts], () =>
      Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(Run.start(yield* agentOf(), input))
        yield* TestClock.adjust(150)
        yield* Fiber.interrupt(fiber)
        const [turn] = ofKind(yield* journal("r"), "TurnFailed")
        expect(turn).toMatchObject({ at: 150, failure: { tag: "Interrupted" }, usage: { output: 1, estimated: true } })
        expect(turn?.tries).toMatchObject([{ at: 0, firstPartAt: 100, endedAt: 150 }])
      })
    )
  )

  it.effect("RI-033 each try has its own times", () =>
    scene([stream([wait(50), delta("He"), wait(50), error({ type: "api_error" })]), parts], () =>
      Effect.gen(function* () {
        yield* during(Run.start(yield* agentOf(), input), 1400)
        const [turn] = ofKind(yield* journal("r"), "TurnCompleted")
        expect(turn).toMatchObject({ at: 1400, firstPartAt: 1200 })
        expect(turn?.tries).toMatchObject([
          { at: 0, firstPartAt: 50, endedAt: 100 },
          { at: 1100, firstPartAt: 1200, endedAt: 1400 }
        ])
      }).pipe(Effect.provide(steady))
    )
  )
})

describe("slots", () => {
  it.effect("ModelInfo and the model that answered stand in the events", () =>
    scene(
      [reply([{ type: "response-metadata", id: "resp_1", modelId: "large-2026" }, text("ok").parts[0] ?? hangs])],
      () =>
        Effect.gen(function* () {
          yield* Run.start(yield* agentOf(), input)
          const events = yield* journal("r")
          expect(ofKind(events, "TurnStarted")).toMatchObject([
            { provider: "acme", model: "large", server: "api.acme.test" }
          ])
          expect(ofKind(events, "TurnCompleted")).toMatchObject([{ responseId: "resp_1", responseModel: "large-2026" }])
        }).pipe(
          Effect.provideService(ModelInfo, { provider: "acme", model: "large", server: "api.acme.test", window: 1000 })
        )
    )
  )
  const hangs = { type: "text", text: "" } as const

  it.effect("without ModelInfo nothing is made up", () =>
    scene([text("ok")], () =>
      Effect.gen(function* () {
        yield* Run.start(yield* agentOf(), input)
        const [turn] = ofKind(yield* journal("r"), "TurnStarted")
        expect(Object.keys(turn ?? {}).toSorted()).toEqual(["_tag", "at", "stream", "turn"])
      })
    )
  )

  it.effect("a price that is not known marks the cost of the Run as unknown, also if other turns have one", () =>
    scene([call("look", { at: 1 }), text("ok"), text("ok")], () =>
      Effect.gen(function* () {
        const agent = yield* agentOf()
        const run = (runId: string, model: string) =>
          Run.start(agent, { runId, task: "go" }).pipe(Effect.provideService(ModelInfo, { model }))
        yield* run("r", "priced")
        expect(yield* Run.get("r")).toMatchObject({ costNanoUsd: 30 })
        expect(yield* Run.get("r")).not.toHaveProperty("costUnknown")
        yield* run("s", "other")
        expect(yield* Run.get("s")).toMatchObject({ costUnknown: true })
        expect(yield* Run.get("s")).not.toHaveProperty("costNanoUsd")
        expect(ofKind(yield* journal("s"), "TurnCompleted")[0]).not.toHaveProperty("costNanoUsd")
      }).pipe(Effect.provide(pricesOf("priced")))
    )
  )

  const bug = () => {
    throw new Error("no such model")
  }

  it.effect.each([
    ["is NaN", () => Number.NaN],
    ["is infinite", () => Infinity],
    ["cannot be computed", bug]
  ] as const)("a price that %s counts as unknown and leaves the journal readable", ([, cost]) =>
    scene([call("look", { at: 1 }), text("ok")], () =>
      Effect.gen(function* () {
        expect(yield* Run.start(yield* agentOf(), input)).toMatchObject({ _tag: "Completed", output: "ok" })
        expect(ofKind(yield* journal("r"), "TurnCompleted")).toHaveLength(2)
        expect(yield* Run.get("r")).toMatchObject({ costUnknown: true })
      }).pipe(Effect.provideService(Prices, { cost }))
    )
  )

  it.effect("costs are whole nano-USD", () =>
    scene([text("ok")], () =>
      Effect.gen(function* () {
        yield* Run.start(yield* agentOf(), input)
        expect(ofKind(yield* journal("r"), "TurnCompleted")).toMatchObject([{ costNanoUsd: 3 }])
      }).pipe(Effect.provideService(Prices, { cost: () => 2.6 }))
    )
  )

  const most = (maxOutputTokens: number, name: string) =>
    guard(({ proposal }) => (proposal._tag === "Step" ? { _tag: "Allow", maxOutputTokens } : Guard.allow), name)

  it.effect.each([
    [
      "are read by the model and recorded",
      { temperature: 0.5, maxOutputTokens: 900 },
      [],
      { temperature: 0.5, maxOutputTokens: 900 }
    ],
    [
      "are lowered by a guard",
      { temperature: 0.5, maxOutputTokens: 900 },
      [most(100, "a")],
      { temperature: 0.5, maxOutputTokens: 100 }
    ],
    ["are not raised by a guard", { maxOutputTokens: 900 }, [most(1000, "a")], { maxOutputTokens: 900 }],
    [
      "take the lowest of several guards",
      {},
      [most(300, "a"), most(200, "b"), most(400, "c")],
      { maxOutputTokens: 200 }
    ],
    ["are not recorded where there are none", {}, [], undefined]
  ] as const)("ModelSettings %s", ([, settings, guards, expected]) =>
    Effect.forEach([true, false], (stream) => {
      const seen: Array<unknown> = []
      const answer = Effect.gen(function* () {
        seen.push(yield* ModelSettings)
        return [{ type: "text", text: "ok" } as const, finish({ total: 1 }, { total: 1 })]
      })
      const parts = [
        { type: "text-start", id: "1" },
        { type: "text-delta", id: "1", delta: "ok" },
        { type: "text-end", id: "1" },
        finish({ total: 1 })
      ] as const
      const model = LanguageModel.make({
        generateText: () => answer,
        streamText: () => Stream.unwrap(Effect.as(answer, Stream.fromIterable<Response.StreamPartEncoded>(parts)))
      })
      return scene(
        [],
        () =>
          Effect.gen(function* () {
            yield* Run.start(yield* agentOf({ stream }), input)
            expect(seen).toEqual([expected ?? {}])
            expect(ofKind(yield* journal("r"), "TurnStarted")[0]?.settings).toEqual(expected)
          }).pipe(
            Effect.provideService(ModelSettings, settings),
            Effect.provide(Layer.effect(LanguageModel.LanguageModel, model))
          ),
        { guards }
      )
    })
  )

  it.effect("a refused request leaves its costs known", () =>
    scene([status(400)], () =>
      Effect.gen(function* () {
        yield* failure(Run.start(yield* agentOf(), input))
        expect(yield* Run.get("r")).toMatchObject({ costNanoUsd: 0, usage: Usage.zero })
      })
    )
  )
})
