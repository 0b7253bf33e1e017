/**
 * Remembers which provider wrote a reply, and keeps what only that provider can read away from others.
 *
 * Signatures, item ids and encrypted reasoning lie in the metadata of parts. Another provider refuses them, or what they
 * sign, so it gets the text and the calls alone.
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"

/** The options of a message that this provider wrote; none if it is not known. */
export const mark = (provider: string | undefined): Prompt.ProviderOptions =>
  provider === undefined ? {} : { waystone: { provider } }

const writerOf = ({ options }: Prompt.Message): unknown => {
  const own = options["waystone"]
  return typeof own === "object" && own !== null && "provider" in own ? own.provider : undefined
}

const isForeign = (message: Prompt.Message, provider: string | undefined): boolean => {
  const writer = message.role === "assistant" ? writerOf(message) : undefined
  return writer !== undefined && writer !== provider
}

/** The messages as `provider` may see them: the same array if it wrote all of them, or nobody knows who did. */
export const readable = (messages: ReadonlyArray<Prompt.Message>, provider: string | undefined) =>
  messages.some((message) => isForeign(message, provider))
    ? messages.flatMap((message) =>
        message.role === "assistant" && isForeign(message, provider) ? translated(message) : [message]
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
