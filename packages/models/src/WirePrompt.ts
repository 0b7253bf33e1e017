/**
 * Turns a Prompt into the messages that the provider packages take, and nothing that a provider would refuse.
 *
 * @since 0.1.0
 */
import type { LanguageModelV4FilePart, LanguageModelV4Message, LanguageModelV4ToolResultPart } from "@ai-sdk/provider"
import type * as Prompt from "effect/ai/Prompt"
import * as Arguments from "./Arguments.ts"
import { own, providerOptions, toJson } from "./Json.ts"
import * as Kept from "./Kept.ts"
import * as WireIds from "./WireIds.ts"
import * as WireNames from "./WireNames.ts"

type Content<Role> = Exclude<Extract<LanguageModelV4Message, { role: Role }>["content"], string>
type Output = LanguageModelV4ToolResultPart["output"]

/** The id of a call on the wire. */
type IdOf = (id: string) => string

/** Messages in their order; those without content are left out. `keepsOwn` is that of WireIds. */
export const messages = (prompt: Prompt.Prompt, keepsOwn = false): Array<LanguageModelV4Message> => {
  const idOf = WireIds.writer(prompt, keepsOwn)
  return prompt.content.flatMap((message): Array<LanguageModelV4Message> => {
    const options = providerOptions(message.options)
    switch (message.role) {
      case "system":
        return blank(message.content) ? [] : [{ role: "system", content: message.content, ...options }]
      case "user":
        return filled({ role: "user", content: message.content.flatMap(userPart), ...options })
      case "assistant":
        return filled({
          role: "assistant",
          content: message.content.flatMap((part) => assistantPart(part, idOf)),
          ...options
        })
      case "tool":
        return filled({
          role: "tool",
          content: message.content.flatMap((part) => (part.type === "tool-result" ? [result(part, idOf)] : [])),
          ...options
        })
    }
  })
}

const blank = (text: string): boolean => text.trim() === ""

/** Gemini hangs the signature of a thought on a text that may be empty, and wants it back. */
const isSigned = (options: ReturnType<typeof providerOptions>): boolean =>
  Object.values(options.providerOptions ?? {}).some((one) => "thoughtSignature" in one)

const filled = (message: LanguageModelV4Message): Array<LanguageModelV4Message> =>
  message.content.length === 0 ? [] : [message]

const userPart = (part: Prompt.UserMessagePart): Content<"user"> => {
  if (part.type === "file") return [file(part)]
  return blank(part.text) ? [] : [{ type: "text", text: part.text, ...providerOptions(part.options) }]
}

const assistantPart = (part: Prompt.AssistantMessagePart, idOf: IdOf): Content<"assistant"> => {
  const options = providerOptions(part.options)
  switch (part.type) {
    case "text":
      return blank(part.text) && !isSigned(options) ? [] : [{ type: "text", text: part.text, ...options }]
    case "reasoning":
      return [Kept.sent(part.options[own], options) ?? { type: "reasoning", text: part.text, ...options }]
    case "file":
      return [file(part)]
    case "tool-call":
      return [
        {
          type: "tool-call",
          toolCallId: idOf(part.id),
          toolName: WireNames.toWire(part.name),
          input: Arguments.sent(part.params),
          ...(part.providerExecuted ? { providerExecuted: true } : undefined),
          ...options
        }
      ]
    case "tool-result":
      return [result(part, idOf)]
    case "tool-approval-request":
      return [] // core asks people itself, and no provider has to know
  }
}

const result = (part: Prompt.ToolResultPart, idOf: IdOf): LanguageModelV4ToolResultPart => ({
  type: "tool-result",
  toolCallId: idOf(part.id),
  toolName: WireNames.toWire(part.name),
  output: output(part),
  ...providerOptions(part.options)
})

const output = ({ isFailure, modelOutput, result }: Prompt.ToolResultPart): Output => {
  if (modelOutput !== undefined && modelOutput.length > 0) {
    return {
      type: "content",
      value: modelOutput.map((part) => (part.type === "text" ? { type: "text", text: part.text } : file(part)))
    }
  }
  if (typeof result === "string") return { type: isFailure ? "error-text" : "text", value: result }
  return { type: isFailure ? "error-json" : "json", value: toJson(result) ?? null }
}

/** The bytes, or where they are; text is base64, a `data:` URL or a web address. */
const file = ({ data, fileName, mediaType, options }: Prompt.FilePart): LanguageModelV4FilePart => ({
  type: "file",
  mediaType,
  data:
    typeof data === "string" ? named(data) : data instanceof URL ? { type: "url", url: data } : { type: "data", data },
  ...(fileName === undefined ? undefined : { filename: fileName }),
  ...providerOptions(options)
})

const named = (data: string): LanguageModelV4FilePart["data"] => {
  if (/^https?:\/\//i.test(data) && URL.canParse(data)) return { type: "url", url: new URL(data) }
  return { type: "data", data: data.replace(/^data:[^,]*;base64,/i, "") }
}
