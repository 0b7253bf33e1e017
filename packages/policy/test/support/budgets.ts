/** Set-up of the tests about budgets: a tool, a model that uses all that it may, and what was journaled. */
import { Agent, type CheckpointStore, MemoryStore, ModelInfo, ModelRetry, Run, type RunEvent } from "@waystone/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"

export const Pay = Tool.make("pay", { parameters: Schema.Struct({ n: Schema.Number }), success: Schema.String })
export const Look = Tool.make("look", { parameters: Schema.Struct({ n: Schema.Number }), success: Schema.String })
  .annotate(Tool.Readonly, true)
  .annotate(Tool.Destructive, false)
export const Kit = Toolkit.make(Pay, Look)
export const handlers = Kit.toLayer({
  pay: ({ n }) => Effect.succeed(`paid ${n}`),
  look: ({ n }) => Effect.succeed(`seen ${n}`)
})

export const agent = Agent.make("spender", {
  instructions: "Spend.",
  tools: [Kit],
  stream: false,
  limits: { maxTurns: 40, maxConsecutiveFailures: 40, activeTime: "1 hour" }
})

export const info = { provider: "p", model: "m", maxOutput: 40, window: 100_000 }

/** In nano-USD a token; each class has another price. */
export const prices = { input: 1, cacheRead: 0.5, cacheWrite: 3, output: 5, reasoning: 7 }
export const Priced = Layer.succeed(ModelInfo.Prices, {
  cost: ({ model }, usage) =>
    model === "m"
      ? usage.input * prices.input +
        usage.cacheRead * prices.cacheRead +
        usage.cacheWrite * prices.cacheWrite +
        usage.output * prices.output +
        usage.reasoning * prices.reasoning
      : undefined
})

/** What a provider has charged for, whoever lived to hear of it. */
export interface Ledger {
  requests: number
  tokens: number
  costNanoUsd: number
  /** Requests that told of no tools. */
  toolless: number
}
export const ledger = (): Ledger => ({ requests: 0, tokens: 0, costNanoUsd: 0, toolless: 0 })

export type Next = (
  number: number,
  options: LanguageModel.ProviderOptions
) => ReadonlyArray<Response.PartEncoded> | "fail"

export const calling =
  (name: "pay" | "look", count = 1): Next =>
  (number) =>
    Array.from({ length: count }, (_, i) => ({ type: "tool-call", id: `c${number}_${i}`, name, params: { n: i } }))
export const saying = (text: string): ReadonlyArray<Response.PartEncoded> => [{ type: "text", text }]

/** A provider at its worst: every byte is a token of the dearest class, and every answer is as long as it may be. */
export const greedy = (spent: Ledger, next: Next, model: ModelInfo.ModelInfo = info) =>
  Layer.merge(
    Layer.succeed(ModelInfo.ModelInfo, model),
    Layer.effect(
      LanguageModel.LanguageModel,
      LanguageModel.make({
        generateText: (options) =>
          Effect.map(ModelInfo.ModelSettings, ({ maxOutputTokens }) => {
            const { prompt, tools } = options
            const bytes = (value: unknown) => Buffer.byteLength(JSON.stringify(value))
            const messages = prompt.content.reduce((sum, message) => sum + bytes(message), 0)
            const schemas = tools.reduce(
              (sum, tool) => sum + bytes([tool.name, tool.description ?? "", JSON.stringify(Tool.getJsonSchema(tool))]),
              0
            )
            const input = messages + schemas
            const output = Math.min(maxOutputTokens ?? Infinity, model.maxOutput ?? Infinity)
            spent.requests++
            spent.tokens += input + output
            spent.costNanoUsd += input * prices.cacheWrite + output * prices.reasoning
            if (tools.length === 0) spent.toolless++
            const parts = tools.length === 0 ? saying("all that I know") : next(spent.requests, options)
            const calls = parts !== "fail" && parts.some(({ type }) => type === "tool-call")
            const finish: Response.FinishPartEncoded = {
              type: "finish",
              reason: parts === "fail" ? "error" : calls ? "tool-calls" : "stop",
              usage: {
                inputTokens: { uncached: 0, total: input, cacheRead: 0, cacheWrite: input },
                outputTokens: { total: output, text: 0, reasoning: output }
              },
              response: undefined
            }
            return [...(parts === "fail" ? [] : parts), finish]
          }),
        streamText: () => Stream.die(new Error("not streamed"))
      })
    )
  )

export const eventsOf = (
  runId = "r"
): Effect.Effect<ReadonlyArray<RunEvent.RunEvent>, never, CheckpointStore.CheckpointStore> =>
  Run.events(runId, { follow: false }).pipe(
    Stream.map(({ event }) => event),
    Stream.runCollect,
    Effect.orDie
  )

export const only = <Tag extends RunEvent.RunEvent["_tag"]>(
  events: ReadonlyArray<RunEvent.RunEvent>,
  tag: Tag
): ReadonlyArray<RunEvent.Of<Tag>> => events.filter((event): event is RunEvent.Of<Tag> => event._tag === tag)

export const input = { runId: "r", task: "go" }

/** One Run with this budget; what came of it, what was journaled, and what it really cost. */
export const spent = <E>(
  budget: Layer.Layer<never, E> | Layer.Layer<unknown, E>,
  next: Next,
  {
    model = info,
    more = Layer.empty
  }: { readonly model?: ModelInfo.ModelInfo; readonly more?: Layer.Layer<never> } = {}
) =>
  Effect.suspend(() => {
    const paid = ledger()
    const live = Layer.mergeAll(greedy(paid, next, model), handlers, budget, more, MemoryStore.layer)
    return Effect.gen(function* () {
      const outcome = yield* Run.start(agent, input)
      return { outcome, paid, events: yield* eventsOf() }
    }).pipe(Effect.provide(live))
  })

/** Core's retries, without the waits. */
export const atOnce = Layer.succeed(ModelRetry.ModelRetry, {
  ...Context.get(Context.empty(), ModelRetry.ModelRetry),
  schedule: Schedule.recurs(4)
})
