/**
 * Remembers who wrote a reply (a provider, and which server of it), and keeps what only they can read away from others.
 *
 * Signatures, item ids and encrypted reasoning lie in the metadata of parts. Another provider refuses them, or what they
 * sign, so it gets the text and the calls alone.
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"
import { defined } from "./Defined.ts"
import type { ModelInfo } from "./ModelInfo.ts"

/** Who wrote a reply, as far as it is known. */
export interface Author {
  readonly provider?: string
  readonly server?: string
}

/** Whom an event names. */
export const named = ({ provider, server }: Author = {}): Author => defined({ provider, server })

/** The options of a message that this provider wrote; none if it is not known. */
export const mark = ({ provider, server }: Author): Prompt.ProviderOptions =>
  provider === undefined ? {} : { waystone: { provider, ...defined({ server }) } }

const markOf = ({ options }: Prompt.Message): { readonly provider?: unknown; readonly server?: unknown } => {
  const own = options["waystone"]
  return typeof own === "object" && own !== null && "provider" in own ? own : {}
}

/** Another provider wrote it, or, in a family, another server: where one of the two is not known, the name decides. */
const isForeign = (message: Prompt.Message, reader: ModelInfo): boolean => {
  const { provider, server } = message.role === "assistant" ? markOf(message) : {}
  if (provider === undefined) return false
  const elsewhere = server !== undefined && reader.server !== undefined && server !== reader.server
  return provider !== reader.provider || (reader.family === true && elsewhere)
}

/** The messages as `reader` may see them: the same array if it wrote all of them, or nobody knows who did. */
export const readable = (messages: ReadonlyArray<Prompt.Message>, reader: ModelInfo) =>
  messages.some((message) => isForeign(message, reader))
    ? messages.flatMap((message) =>
        message.role === "assistant" && isForeign(message, reader) ? translated(message) : [message]
      )
    : messages

/** Reasoning and what the other provider ran itself go as a whole: nothing of them is of use without their metadata. */
const translated = ({ content }: Prompt.AssistantMessage): ReadonlyArray<Prompt.Message> => {
  const kept = content.flatMap((part): ReadonlyArray<Prompt.AssistantMessagePart> => {
    switch (part.type) {
      case "text":
        return [Prompt.makePart("text", { ...part, options: {} })]
      case "file":
        return [Prompt.makePart("file", { ...part, options: {} })]
      case "tool-call":
        return part.providerExecuted ? [] : [Prompt.makePart("tool-call", { ...part, options: {} })]
      default:
        return []
    }
  })
  return kept.length === 0 ? [] : [Prompt.makeMessage("assistant", { content: kept })]
}
