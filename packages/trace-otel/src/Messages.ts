/**
 * Writes what was said in the conventions' form of messages: a role, and parts that are told apart by their type.
 *
 * @since 0.1.0
 */
import { type RunEvent, RunHead } from "@waystone/core"

export interface Message {
  readonly role: "user" | "assistant" | "tool"
  readonly parts: ReadonlyArray<Readonly<Record<string, unknown>>>
  readonly finish_reason?: string
}

type Part = Message["parts"][number]

const modality = (mediaType: string): string => {
  const kind = mediaType.split("/")[0]
  return kind === "image" || kind === "audio" || kind === "video" ? kind : "document"
}

/** A file goes out as its type and its size: the bytes belong to no back end. */
const file = (mediaType: string, data: unknown): Part => ({
  type: "blob",
  mime_type: mediaType,
  modality: modality(mediaType),
  content: `[${typeof data === "string" ? data.length : 0} characters of base64]`
})

const userPart = (part: unknown): Part => {
  if (typeof part !== "object" || part === null || !("type" in part)) return { type: "generic" }
  if (part.type === "text" && "text" in part) return { type: "text", content: String(part.text) }
  if (part.type === "file" && "mediaType" in part)
    return file(String(part.mediaType), "data" in part ? part.data : undefined)
  return { type: "generic", generic_type: String(part.type) }
}

/** What a user said. */
export const user = (content: RunEvent.Content): Message => ({
  role: "user",
  parts: typeof content === "string" ? [{ type: "text", content }] : content.map(userPart)
})

/** What a tool answered. */
export const tool = (id: string, response: unknown): Message => ({
  role: "tool",
  parts: [{ type: "tool_call_response", id, response }]
})

/** What a model answered. Calls bear the ids of our spans, since a provider's own need not be unique. */
export const assistant = ({
  finish,
  reply,
  turn
}: {
  readonly turn: number
  readonly reply: ReadonlyArray<RunEvent.ReplyPart>
  readonly finish: string
}): Message => {
  let index = 0
  const parts = reply.map((part): Part => {
    switch (part.type) {
      case "text":
        return { type: "text", content: part.text }
      case "reasoning":
        return { type: "reasoning", content: part.text }
      case "file":
        return file(part.mediaType, part.data)
      case "tool-call":
        return part.providerExecuted
          ? { type: "server_tool_call", id: part.id, name: part.name, server_tool_call: { type: part.name } }
          : { type: "tool_call", id: RunHead.callId(turn, index++), name: part.name, arguments: part.params }
      case "tool-result":
        return { type: "server_tool_call_response", id: part.id, server_tool_call_response: { type: part.name } }
    }
  })
  return { role: "assistant", parts, finish_reason: finish }
}
