/**
 * Names the models that are asked, in order, when the one before cannot answer.
 *
 * The models are asked by core itself, after its own retries of the one before, so that still exactly one layer retries
 * (RI-016) and the journal says who answered. It moves on after a failure of the classes `retry` and `elsewhere` of
 * ModelRetry's table; a request that is wrong, a refusal and a reply that repeats itself end the Turn as ever. If none answers, the first
 * failure that is worth coming back for decides, so that the Run rests even where a later model finds the request wrong
 * (its window may be smaller); a refusal and a repeating reply decide at once, whoever gave them. Each Turn
 * begins with the first model again.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as LanguageModel from "effect/ai/LanguageModel"

type Model = Context.Context<LanguageModel.LanguageModel>

/** What the Layers of the other models provide: each a LanguageModel, its ModelInfo and ModelSettings. Default none. */
export const Fallbacks: Context.Reference<ReadonlyArray<Model>> = Context.Reference("@waystone/core/Fallbacks", {
  defaultValue: (): ReadonlyArray<Model> => []
})

type AnyModel = Layer.Layer<LanguageModel.LanguageModel, unknown, unknown>

/**
 * The first model, with the others to fall back to; one that has others itself is followed by them. Each should say its
 * provider (and server, where it is one of a family) in its ModelInfo, as adapters do: what only another can read is then not
 * sent to it. A model without ModelSettings of its own gets those of the Run.
 *
 * @example
 * Fallback.layer([AiSdk.layer(anthropic("…")), AiSdk.layer(openai("…"))])
 */
export const layer = <const Models extends readonly [AnyModel, ...ReadonlyArray<AnyModel>]>([
  first,
  ...others
]: Models): Layer.Layer<LanguageModel.LanguageModel, Layer.Error<Models[number]>, Layer.Services<Models[number]>> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const model = yield* Layer.build(first)
      const rest = yield* Effect.forEach(others, (other) => Layer.build(other))
      const behind = rest.flatMap((one) => [one, ...Context.get(one, Fallbacks)])
      return Context.add(model, Fallbacks, [...Context.get(model, Fallbacks), ...behind])
    })
    // Which errors and services the Layers have is lost on `unknown`, and known from their types.
  ) as Layer.Layer<LanguageModel.LanguageModel, Layer.Error<Models[number]>, Layer.Services<Models[number]>>
