/** An agent with two tools, and its Runs against a fake server. */
import type { LanguageModelV4 } from "@ai-sdk/provider"
import { Agent, MemoryStore, ModelRetry, Run } from "@waystone/core"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as AiSdk from "../src/AiSdk.ts"

const Weather = Tool.make("weather", {
  description: "The weather in a city",
  parameters: Schema.Struct({ city: Schema.String }),
  success: Schema.Struct({ celsius: Schema.Number })
}).annotate(Tool.Readonly, true)

const Now = Tool.make("now", {
  description: "The time",
  parameters: Schema.Struct({}),
  success: Schema.String
}).annotate(Tool.Readonly, true)

export const Tools = Toolkit.make(Weather, Now)

export const handlers = Tools.toLayer({
  weather: ({ city }) => Effect.succeed({ celsius: city === "Oslo" ? 4 : 20 }),
  now: () => Effect.succeed("noon")
})

export const agentOf = (stream: boolean) =>
  Agent.make("forecaster", { instructions: "Answer questions about the weather.", tools: [Tools], stream })

/** Two more tries, at once. */
export const fast = Layer.succeed(ModelRetry.ModelRetry, {
  table: ModelRetry.table,
  schedule: Schedule.recurs(2),
  longestWait: Duration.seconds(60)
})

export const task = "How warm is it in Oslo?"

/** One Run from its start to its Outcome, and its events. */
export const run = (model: LanguageModelV4, options: { readonly stream: boolean } & AiSdk.Options) =>
  Effect.gen(function* () {
    const agent = agentOf(options.stream)
    const outcome = yield* Run.start(agent, { runId: "r", task }).pipe(
      Effect.catch((error) => Effect.succeed({ _tag: "Failed" as const, error }))
    )
    const events = yield* Stream.runCollect(Run.events("r"))
    return { outcome, events }
  }).pipe(Effect.provide(Layer.mergeAll(AiSdk.layer(model, options), MemoryStore.layer, handlers)))

/** The language model alone. */
export const withModel = <A, E>(
  model: LanguageModelV4,
  use: (model: LanguageModel.LanguageModel) => Effect.Effect<A, E>,
  options?: AiSdk.Options
) => Effect.provide(Effect.flatMap(LanguageModel.LanguageModel, use), AiSdk.layer(model, options))
