/**
 * Reads how a reply ended and what it cost.
 *
 * @since 0.1.0
 */
import type { LanguageModelV4FinishReason, LanguageModelV4Usage } from "@ai-sdk/provider"
import type * as Response from "effect/ai/Response"
import { metadata } from "./Json.ts"
import * as Tokens from "./Tokens.ts"

export interface Ending {
  readonly finishReason: LanguageModelV4FinishReason
  readonly usage: LanguageModelV4Usage
  readonly providerMetadata?: unknown
}

/** The finish part of a reply. */
export const part = ({ finishReason, providerMetadata, usage }: Ending): Response.FinishPartEncoded => ({
  type: "finish",
  reason: reason(finishReason),
  usage: Tokens.read(usage),
  ...metadata(providerMetadata)
})

/** Words that both sides have. */
const shared = ["stop", "length", "content-filter", "tool-calls", "error"] as const

const reason = ({ raw, unified }: LanguageModelV4FinishReason): Response.FinishReason => {
  if (raw === "pause_turn") return "pause" // Anthropic's word for a turn that is to be sent back as it is
  if (unified === "other" && raw === undefined) return "unknown"
  return shared.find((one) => one === unified) ?? (unified === "interrupted" ? "error" : "other")
}

/**
 * A stream that broke off: `interrupted`, or what two of the packages say in its place, `other` without a word from the
 * provider.
 */
export const isCut = ({ finishReason: { raw, unified } }: Ending): boolean =>
  unified === "interrupted" || (unified === "other" && raw === undefined)

/** The usage of a reply that broke off: what was read is known, what would have been written is not. */
export const cut = (ending: Ending): Response.FinishPartEncoded => {
  const finish = part(ending)
  return { ...finish, reason: "error", usage: { ...finish.usage, outputTokens: {} } }
}

/**
 * The model itself said no. The packages call that a content filter; only a filter of the provider gives it a name of
 * its own, while a refusal ends like any reply (`stop`, or no reason at all).
 */
export const isRefusal = ({ finishReason: { raw, unified } }: Ending): boolean =>
  unified === "content-filter" && (raw === undefined || raw === "stop" || raw === "refusal")
