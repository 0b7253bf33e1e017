/**
 * Puts together what a provider package is asked: prompt, tools, the form of the answer, settings.
 *
 * @since 0.1.0
 */
import type { LanguageModelV4CallOptions } from "@ai-sdk/provider"
import type { ModelInfo } from "@waystone/core"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Tool from "effect/ai/Tool"
import { providerOptions, toObject } from "./Json.ts"
import * as WirePrompt from "./WirePrompt.ts"
import * as WireTools from "./WireTools.ts"

/** The options of one call; `keepsOwn` is that of WireIds. */
export const make = (
  options: LanguageModel.ProviderOptions,
  settings: ModelInfo.ModelSettings,
  keepsOwn: boolean
): LanguageModelV4CallOptions => ({
  prompt: WirePrompt.messages(options.prompt, keepsOwn),
  ...WireTools.describe(options),
  ...format(options),
  ...settingsOf(settings)
})

const format = ({
  responseFormat
}: LanguageModel.ProviderOptions): Pick<LanguageModelV4CallOptions, "responseFormat"> =>
  responseFormat.type === "text"
    ? {}
    : {
        responseFormat: {
          type: "json",
          name: responseFormat.objectName,
          schema: WireTools.schema(Tool.getJsonSchemaFromSchema(responseFormat.schema))
        }
      }

type Settings = Omit<LanguageModelV4CallOptions, "prompt" | "tools" | "toolChoice" | "responseFormat" | "abortSignal">

const numbers = [
  "maxOutputTokens",
  "temperature",
  "topP",
  "topK",
  "presencePenalty",
  "frequencyPenalty",
  "seed"
] as const

const levels = ["provider-default", "none", "minimal", "low", "medium", "high", "xhigh", "max"] as const

/** The settings that the packages know; a value of another type is left out. */
const settingsOf = (settings: ModelInfo.ModelSettings): Settings => {
  const { reasoning, stopSequences } = settings
  const counts = numbers.flatMap((name) => (typeof settings[name] === "number" ? [[name, settings[name]]] : []))
  const level = levels.find((one) => one === reasoning)
  return {
    ...Object.fromEntries(counts),
    ...(Array.isArray(stopSequences) ? { stopSequences: stopSequences.map(String) } : undefined),
    ...(level === undefined ? undefined : { reasoning: level }),
    ...providerOptions(toObject(settings["providerOptions"]) ?? {})
  }
}
