/**
 * Turns the parts of a stream into effect's.
 *
 * @since 0.1.0
 */
import type { LanguageModelV4StreamPart } from "@ai-sdk/provider"
import type * as Response from "effect/ai/Response"
import { metadata } from "./Json.ts"
import * as Kept from "./Kept.ts"
import * as Parts from "./Parts.ts"

/** One part; what begins and ends the stream gives nothing. `position` tells it from all others of the stream. */
export const streamed = (
  part: LanguageModelV4StreamPart,
  about: Parts.Context,
  position: number
): ReadonlyArray<Response.StreamPartEncoded> => {
  switch (part.type) {
    case "text-start":
    case "text-end":
    case "reasoning-start":
    case "reasoning-end":
      return [{ type: part.type, id: String(part.id), ...Parts.textMetadata(part) }]
    case "text-delta":
    case "reasoning-delta":
      return [{ type: part.type, id: String(part.id), delta: String(part.delta), ...metadata(part.providerMetadata) }]
    // Arguments on their way: they come again, whole, with the call.
    case "tool-input-start": {
      const providerExecuted = part.providerExecuted === true
      return [{ type: "tool-params-start", id: String(part.id), name: about.named(part.toolName), providerExecuted }]
    }
    case "tool-input-delta":
      return [{ type: "tool-params-delta", id: String(part.id), delta: String(part.delta) }]
    case "tool-input-end":
      return [{ type: "tool-params-end", id: String(part.id) }]
    case "response-metadata":
      return [Parts.responseMetadata(part)]
    case "custom":
    case "reasoning-file":
      return [
        { type: "reasoning-start", id: `waystone-${position}`, ...metadata(part.providerMetadata, Kept.fields(part)) },
        { type: "reasoning-end", id: `waystone-${position}` }
      ]
    case "stream-start":
    case "finish":
    case "ping":
    case "raw":
    case "error":
      return []
    default:
      return Parts.same(part, about)
  }
}
