/**
 * Keeps parts that effect/ai has no word for (a provider's own parts, files that a model made while it thought) as
 * reasoning parts without text, so that journal and resume carry them and the provider gets them back in their place.
 *
 * @since 0.1.0
 */
import type {
  LanguageModelV4CustomContent,
  LanguageModelV4CustomPart,
  LanguageModelV4Message,
  LanguageModelV4ReasoningFile,
  LanguageModelV4ReasoningFilePart
} from "@ai-sdk/provider"
import * as Base64 from "effect/encoding/Base64"
import { isObject } from "./Json.ts"

type Options = Pick<LanguageModelV4Message, "providerOptions">
type Fields = { readonly [field: string]: string }

/** What stands under the own key of the reasoning part. */
export const fields = (part: LanguageModelV4CustomContent | LanguageModelV4ReasoningFile): Fields => {
  if (part.type === "custom") return { part: "custom", kind: String(part.kind) }
  const { data, mediaType } = part
  const where = data.type === "url" ? { url: String(data.url) } : { data: base64(data.data) }
  return { part: "reasoning-file", mediaType: String(mediaType), ...where }
}

export const base64 = (data: string | Uint8Array): string => (typeof data === "string" ? data : Base64.encode(data))

/** The part as it came; undefined for reasoning that is just that. */
export const sent = (
  kept: unknown,
  options: Options
): LanguageModelV4CustomPart | LanguageModelV4ReasoningFilePart | undefined => {
  if (!isObject(kept)) return undefined
  const { data, kind, mediaType, part, url } = kept
  if (part === "custom" && isKind(kind)) return { type: "custom", kind, ...options }
  if (part !== "reasoning-file" || typeof mediaType !== "string") return undefined
  if (typeof data === "string") return { type: "reasoning-file", mediaType, data: { type: "data", data }, ...options }
  if (typeof url !== "string" || !URL.canParse(url)) return undefined
  return { type: "reasoning-file", mediaType, data: { type: "url", url: new URL(url) }, ...options }
}

const isKind = (kind: unknown): kind is `${string}.${string}` => typeof kind === "string" && kind.includes(".")
