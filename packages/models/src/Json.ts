/**
 * Reads what a provider package hands over as data: anything that is no JSON is left out instead of failing a reply.
 *
 * @since 0.1.0
 */
import type { SharedV4ProviderOptions } from "@ai-sdk/provider"
import type * as Schema from "effect/Schema"

/** Under this key stands what this package itself keeps with a part; it is never sent to a provider. */
export const own = "waystone"

/** The value as JSON has it, or undefined. */
export const toJson = (value: unknown): Schema.MutableJson | undefined => {
  try {
    const text: string | undefined = JSON.stringify(value)
    if (text === undefined) return undefined
    const json: Schema.MutableJson = JSON.parse(text)
    return json
  } catch {
    return undefined
  }
}

export const isObject = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The value as a JSON object, or undefined. */
export const toObject = (value: unknown): Schema.MutableJsonObject | undefined => {
  const json = toJson(value)
  return typeof json === "object" && json !== null && !Array.isArray(json) ? json : undefined
}

type Metadata = { readonly [provider: string]: Schema.Json }

/** Provider metadata as effect's parts carry it. */
export const metadata = (given: unknown, kept?: Metadata): { readonly metadata?: Metadata } => {
  if (given === undefined && kept === undefined) return {}
  return { metadata: { ...toObject(given), ...(kept === undefined ? undefined : { [own]: kept }) } }
}

/** The same metadata on its way back, or settings, as the provider packages take them: an object for each provider. */
export const providerOptions = (options: {
  readonly [provider: string]: unknown
}): { readonly providerOptions?: SharedV4ProviderOptions } => {
  const entries = Object.entries(options).flatMap(([provider, value]) => {
    const object = provider === own ? undefined : toObject(value)
    return object === undefined ? [] : [[provider, object] as const]
  })
  return entries.length === 0 ? {} : { providerOptions: Object.fromEntries(entries) }
}
