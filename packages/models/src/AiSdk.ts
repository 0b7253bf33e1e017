/**
 * Makes any provider model of the Vercel AI SDK the LanguageModel of an application.
 *
 * @since 0.1.0
 */
import type { LanguageModelV4 } from "@ai-sdk/provider"
import { ModelInfo } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Telemetry from "effect/ai/Telemetry"
import * as CallOptions from "./CallOptions.ts"
import * as Generate from "./Generate.ts"
import * as Server from "./Server.ts"
import * as Streamed from "./Streamed.ts"

export interface Options {
  /**
   * What is known of the model beyond its provider and name, which are the package's own: window, maxOutput, server.
   * The server of a compatible provider is read from its package, and is then a part of who wrote a reply.
   */
  readonly info?: Partial<ModelInfo.ModelInfo>
  /**
   * Settings of every request: `maxOutputTokens`, `temperature`, `topP`, `topK`, `seed`, `presencePenalty`,
   * `frequencyPenalty`, `stopSequences`, `reasoning` and `providerOptions`. Default: none, so the provider's own hold.
   * A Layer of `ModelSettings` that is merged after this one takes their place.
   */
  readonly settings?: ModelInfo.ModelSettings
}

/** How many different warnings of a package are logged: each once. */
const maxWarnings = 100

/**
 * The model as effect's LanguageModel. It never retries, reads `ModelSettings` at each request, and logs once what the
 * package says it cannot do. Fails with an AiError that has the status, headers and body of the answer, if there is one.
 */
export const make = (model: LanguageModelV4): Effect.Effect<LanguageModel.LanguageModel> =>
  Effect.suspend(() => {
    const heard = new Set<string>()
    const isNew = (note: string): boolean => {
      if (heard.has(note) || heard.size >= maxWarnings) return false
      heard.add(note)
      return true
    }
    const log = (notes: ReadonlyArray<string>): Effect.Effect<void> =>
      Effect.forEach(
        notes,
        (note) => Effect.suspend(() => (isNew(note) ? Effect.logWarning(`${nameOf(model)}: ${note}`) : Effect.void)),
        { discard: true }
      )
    const asked = (options: LanguageModel.ProviderOptions) =>
      Effect.map(ModelInfo.ModelSettings, (settings) => {
        Telemetry.addGenAIAnnotations(options.span, {
          provider: { name: Server.providerOf(model) },
          operation: { name: "chat" },
          request: { model: model.modelId }
        })
        return CallOptions.make(options, settings, Server.isFamily(model))
      })
    return LanguageModel.make({
      generateText: (options) =>
        asked(options).pipe(Effect.flatMap((call) => Generate.make(model, call, { tools: options.tools, log }))),
      streamText: (options) =>
        Stream.unwrap(Effect.map(asked(options), (call) => Streamed.make(model, call, { tools: options.tools, log })))
    })
  })

/**
 * The model, and what is known of it, for a Run.
 *
 * @example
 * ```ts
 * import { createAnthropic } from "@ai-sdk/anthropic"
 * import { AiSdk } from "@waystone/models"
 *
 * const Model = AiSdk.layer(createAnthropic()("claude-sonnet-4-5"), { settings: { maxOutputTokens: 8000 } })
 * ```
 */
export const layer = (model: LanguageModelV4, options: Options = {}): Layer.Layer<LanguageModel.LanguageModel> => {
  const info = Layer.succeed(ModelInfo.ModelInfo, { ...Server.infoOf(model), ...options.info })
  const provided = Layer.merge(Layer.effect(LanguageModel.LanguageModel, make(model)), info)
  return options.settings === undefined
    ? provided
    : Layer.merge(provided, Layer.succeed(ModelInfo.ModelSettings, options.settings))
}

const nameOf = (model: LanguageModelV4): string => `${Server.providerOf(model)} ${model.modelId}`
