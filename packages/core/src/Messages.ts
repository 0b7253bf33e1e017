/**
 * Turns stored content into the messages of a Prompt, and nothing that a provider would refuse.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import * as Prompt from "effect/ai/Prompt"
import * as Author from "./Author.ts"
import type { Content, ReplyPart } from "./RunEvent.ts"

const decodeUserPart = Schema.decodeUnknownSync(Schema.toCodecJson(Prompt.UserMessagePart))
const decodeOutputPart = Schema.decodeUnknownSync(Schema.toCodecJson(Prompt.ToolModelOutputPart))

/** A user's message. */
export const user = (content: Content): Prompt.UserMessage =>
  Prompt.makeMessage("user", {
    content:
      typeof content === "string"
        ? [Prompt.makePart("text", { text: content })]
        : content.map((part) => decodeUserPart(part))
  })

/** A call as it goes over the wire. */
export interface WireCall {
  readonly wireId: string
  readonly wireName: string
}

/**
 * A model's reply as the assistant message that is sent back: without empty text and without reasoning that nothing
 * follows (RI-011, RI-120), the calls under their wire ids and names, marked with who wrote it. Undefined
 * if nothing is left.
 */
export const assistant = (
  reply: ReadonlyArray<ReplyPart>,
  calls: ReadonlyArray<WireCall>,
  author: Author.Author = {}
): Prompt.AssistantMessage | undefined => {
  const content: Array<Prompt.AssistantMessagePart> = []
  let next = 0
  for (const part of reply) {
    if (part.type === "text" && part.text.trim() === "") continue
    const call = part.type === "tool-call" && !part.providerExecuted ? calls[next++] : undefined
    content.push(replyPart(part, call))
  }
  while (content.at(-1)?.type === "reasoning") content.pop()
  return content.length === 0 ? undefined : Prompt.makeMessage("assistant", { content, options: Author.mark(author) })
}

const replyPart = (part: ReplyPart, call: WireCall | undefined): Prompt.AssistantMessagePart => {
  switch (part.type) {
    case "text":
      return Prompt.makePart("text", part)
    case "reasoning":
      return Prompt.makePart("reasoning", part)
    case "file":
      return Prompt.makePart("file", part)
    case "tool-call":
      return Prompt.makePart("tool-call", call === undefined ? part : { ...part, id: call.wireId, name: call.wireName })
    case "tool-result":
      return Prompt.makePart("tool-result", part)
  }
}

/** One result of the tool message that follows an assistant message. */
export interface Result extends WireCall {
  readonly isFailure: boolean
  readonly result: unknown
  readonly modelOutput?: ReadonlyArray<unknown>
}

/** The results of all calls of a reply, in call order. */
export const tool = (results: ReadonlyArray<Result>): Prompt.ToolMessage =>
  Prompt.makeMessage("tool", {
    content: results.map(({ isFailure, modelOutput, result, wireId, wireName }) =>
      Prompt.makePart("tool-result", {
        id: wireId,
        name: wireName,
        isFailure,
        result,
        providerExecuted: false,
        ...(modelOutput === undefined ? undefined : { modelOutput: modelOutput.map((part) => decodeOutputPart(part)) })
      })
    )
  })

/** The text of a reply, its text parts joined. */
export const textOf = (reply: ReadonlyArray<ReplyPart>): string =>
  reply.map((part) => (part.type === "text" ? part.text : "")).join("")
