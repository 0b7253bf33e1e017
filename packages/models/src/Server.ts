/**
 * Says who stands behind a provider model: the provider's name, and which server it is where many bear one name.
 *
 * @since 0.1.0
 */
import type { LanguageModelV4 } from "@ai-sdk/provider"
import type { ModelInfo } from "@waystone/core"
import { isObject } from "./Json.ts"

/** The packages say `anthropic.messages` where OpenTelemetry says `anthropic`. */
export const providerOf = ({ provider }: LanguageModelV4): string => provider.split(".")[0] ?? provider

/** Providers of which there is one, whatever gateway a request goes through. */
const vendors = new Set(["anthropic", "openai", "google"])

/** The name stands for a kind of server, as those that the package for compatible servers asks. */
export const isFamily = (model: LanguageModelV4): boolean => !vendors.has(providerOf(model))

/** What the package itself knows of the model. */
export const infoOf = (model: LanguageModelV4): ModelInfo.ModelInfo => {
  const about = { provider: providerOf(model), model: model.modelId }
  if (!isFamily(model)) return about
  const server = hostOf(model)
  return server === undefined ? { ...about, family: true } : { ...about, family: true, server }
}

/** Where the package keeps the address: as text, or in a function that makes one. */
const hostOf = (model: LanguageModelV4): string | undefined => {
  const config: unknown = Reflect.get(model, "config")
  if (!isObject(config)) return undefined
  try {
    const { baseURL, url } = config
    const address: unknown = typeof url === "function" ? url({ path: "", modelId: model.modelId }) : baseURL
    return typeof address === "string" ? new URL(address).host : undefined
  } catch {
    return undefined
  }
}
