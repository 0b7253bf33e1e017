/**
 * Knows of each provider which variables hold its key and its address, and how its package makes a model.
 *
 * A package is loaded when its model is asked for, and no other.
 */
import type { AiSdk } from "@waystone/models"
import type { Provider } from "./Choice.ts"

export type ProviderModel = Parameters<typeof AiSdk.layer>[0]

/** What a package is given. */
export interface Wanted {
  readonly name: string
  readonly baseURL: string
  readonly apiKey: string | undefined
  readonly fetch: typeof globalThis.fetch
}

export interface About {
  /** Which of several APIs of that kind it is asked by, for people. */
  readonly api?: string
  /** Variables that may hold its key; the first one that is set counts. */
  readonly keys: readonly [string, ...ReadonlyArray<string>]
  /** It answers nobody without a key. */
  readonly needsKey: boolean
  /** The variable that may hold its address. */
  readonly addressIn?: string
  /** Its address by default; without one it is asked where the user says. */
  readonly address?: string
  /** Settings of every request. */
  readonly settings?: AiSdk.Options["settings"]
  readonly load: (wanted: Wanted) => Promise<ProviderModel>
}

/** No `/v1`, as Anthropic's own tools read that variable, or with it, as its package does. */
export const versioned = (address: string): string => (/\/v\d+\w*$/.test(address) ? address : `${address}/v1`)

const compatible =
  (server: string) =>
  async ({ name, ...settings }: Wanted): Promise<ProviderModel> => {
    const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible")
    const { apiKey, ...keyless } = settings
    // Without includeUsage such a server reports no usage of a stream.
    const given = { name: server, includeUsage: true, ...keyless, ...(apiKey === undefined ? {} : { apiKey }) }
    return createOpenAICompatible(given)(name)
  }

export const providers: { readonly [P in Provider]: About } = {
  anthropic: {
    keys: ["ANTHROPIC_API_KEY"],
    needsKey: true,
    addressIn: "ANTHROPIC_BASE_URL",
    address: "https://api.anthropic.com/v1",
    load: async ({ apiKey = "", name, ...settings }) => {
      const { createAnthropic } = await import("@ai-sdk/anthropic")
      return createAnthropic({ ...settings, apiKey, baseURL: versioned(settings.baseURL) })(name)
    }
  },
  openai: {
    api: "responses",
    keys: ["OPENAI_API_KEY"],
    needsKey: true,
    addressIn: "OPENAI_BASE_URL",
    address: "https://api.openai.com/v1",
    // The journal carries what the model thought, not OpenAI's store, which forgets it after a while.
    settings: { providerOptions: { openai: { store: false } } },
    load: async ({ apiKey = "", name, ...settings }) => {
      const { createOpenAI } = await import("@ai-sdk/openai")
      return createOpenAI({ ...settings, apiKey })(name)
    }
  },
  google: {
    keys: ["GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"],
    needsKey: true,
    address: "https://generativelanguage.googleapis.com/v1beta",
    load: async ({ apiKey = "", name, ...settings }) => {
      const { createGoogle } = await import("@ai-sdk/google")
      return createGoogle({ ...settings, apiKey })(name)
    }
  },
  ollama: {
    keys: ["OLLAMA_API_KEY"],
    needsKey: false,
    address: "http://127.0.0.1:11434/v1",
    load: compatible("ollama")
  },
  "openai-compatible": {
    api: "chat completions",
    // Not OpenAI's key, which is nobody else's business.
    keys: ["OPENAI_COMPATIBLE_API_KEY"],
    needsKey: false,
    load: compatible("openai-compatible")
  }
}
