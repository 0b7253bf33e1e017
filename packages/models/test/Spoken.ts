/** The four protocols that the strict servers speak, and the models of the provider packages that speak to them. */
import { createAnthropic } from "@ai-sdk/anthropic"
import { createGoogle } from "@ai-sdk/google"
import { createOpenAI } from "@ai-sdk/openai"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import type { LanguageModelV4 } from "@ai-sdk/provider"
import type { ModelInfo } from "@waystone/core"
import type { ServeOptions } from "./servers/serve.ts"

/** The key that the servers take. */
const apiKey = "test-key"

export interface Spoken {
  readonly protocol: ServeOptions["protocol"]
  readonly model: (url: string) => LanguageModelV4
  /** What makes the model think, where it is asked to. */
  readonly thinking: ModelInfo.ModelSettings
}

export const spoken: ReadonlyArray<Spoken> = [
  {
    protocol: "openai-chat",
    model: (url) => createOpenAI({ baseURL: `${url}/v1`, apiKey }).chat("gpt-4.1"),
    thinking: {}
  },
  {
    protocol: "openai-responses",
    model: (url) => createOpenAI({ baseURL: `${url}/v1`, apiKey }).responses("gpt-5"),
    thinking: { providerOptions: { openai: { store: false, include: ["reasoning.encrypted_content"] } } }
  },
  {
    protocol: "anthropic",
    model: (url) => createAnthropic({ baseURL: `${url}/v1`, apiKey })("claude-sonnet-4-5"),
    thinking: { providerOptions: { anthropic: { thinking: { type: "enabled", budgetTokens: 1024 } } } }
  }
]

/** The fourth protocol, which has no word for a refusal and no text of its own for arguments. */
export const google: Spoken = {
  protocol: "google",
  model: (url) => createGoogle({ baseURL: `${url}/v1beta`, apiKey })("gemini-3-pro-preview"),
  thinking: { providerOptions: { google: { thinkingConfig: { includeThoughts: true } } } }
}

/** A compatible server: chat completions, by another package. */
export const compatible = (url: string): LanguageModelV4 =>
  createOpenAICompatible({ name: "ollama", baseURL: `${url}/v1`, apiKey, includeUsage: true })("gemma3")
