/**
 * Turns the parts of a reply into effect's. What has no place there is left out and noted.
 *
 * @since 0.1.0
 */
import type { LanguageModelV4Content, LanguageModelV4Source } from "@ai-sdk/provider"
import * as Result from "effect/Result"
import * as Base64 from "effect/encoding/Base64"
import type * as Response from "effect/ai/Response"
import * as Arguments from "./Arguments.ts"
import { metadata, toJson } from "./Json.ts"
import * as Kept from "./Kept.ts"
import * as WireNames from "./WireNames.ts"

/** What both kinds of reply need to know of the request. */
export interface Context {
  readonly named: (wire: unknown) => string
  readonly declared: ReadonlySet<string>
  /** Hears of every part that is left out. */
  readonly note: (what: string) => void
}

/** For one request with these tools. */
export const context = (tools: ReadonlyArray<{ readonly name: string }>, note: Context["note"]): Context => ({
  named: WireNames.reader(tools),
  declared: new Set(tools.map(({ name }) => name)),
  note
})

/** Parts that are the same in a whole reply and in a stream. */
export type Same = Exclude<LanguageModelV4Content, { type: "text" | "reasoning" | "custom" | "reasoning-file" }>
type Both = Response.PartEncoded & Response.StreamPartEncoded

/** A part of a whole reply. */
export const content = (part: LanguageModelV4Content, about: Context): ReadonlyArray<Response.PartEncoded> => {
  switch (part.type) {
    case "text":
      return [{ type: "text", text: String(part.text), ...textMetadata(part) }]
    case "reasoning":
      return [{ type: "reasoning", text: String(part.text), ...metadata(part.providerMetadata) }]
    case "custom":
    case "reasoning-file":
      return [{ type: "reasoning", text: "", ...metadata(part.providerMetadata, Kept.fields(part)) }]
    default:
      return same(part, about)
  }
}

export const same = (part: Same, about: Context): ReadonlyArray<Both> => {
  switch (part.type) {
    case "tool-call":
      return part.providerExecuted === true ? ofProvider(part, about) : [call(part, about.named(part.toolName))]
    case "tool-result":
      return ofProvider(part, about)
    case "file": {
      const data = part.data.type === "data" ? Kept.base64(part.data.data) : undefined
      if (data === undefined || Result.isFailure(Base64.decode(data))) return left("a file without its bytes", about)
      return [{ type: "file", mediaType: String(part.mediaType), data, ...metadata(part.providerMetadata) }]
    }
    case "source":
      return part.sourceType === "url" && !URL.canParse(part.url)
        ? left("a source without an address", about)
        : [source(part)]
    case "tool-approval-request":
      return left("a question of the provider for an approval", about)
    default:
      return left(`a part of the type ${String(Reflect.get(part, "type"))}`, about)
  }
}

const left = (what: string, { note }: Context): [] => {
  note(`the reply held ${what}; it was left out`)
  return []
}

/** Effect can read what the provider ran only where the toolkit says what it is. */
const ofProvider = (
  part: Extract<Same, { type: "tool-call" | "tool-result" }>,
  about: Context
): ReadonlyArray<Both> => {
  const name = about.named(part.toolName)
  if (!about.declared.has(name)) return left(`what the provider ran as ${name}, which is no tool of the request`, about)
  return [part.type === "tool-call" ? call(part, name) : result(part, name)]
}

const call = (part: Extract<Same, { type: "tool-call" }>, name: string): Response.ToolCallPartEncoded => ({
  type: "tool-call",
  id: String(part.toolCallId),
  name,
  params: Arguments.read(part.input),
  ...(part.providerExecuted === true ? { providerExecuted: true } : undefined),
  ...metadata(part.providerMetadata)
})

const result = (part: Extract<Same, { type: "tool-result" }>, name: string): Response.ToolResultPartEncoded => ({
  type: "tool-result",
  id: String(part.toolCallId),
  name,
  result: toJson(part.result) ?? null,
  isFailure: part.isError === true,
  providerExecuted: true,
  ...(part.preliminary === true ? { preliminary: true } : undefined),
  ...metadata(part.providerMetadata)
})

const source = (part: LanguageModelV4Source): Response.UrlSourcePartEncoded | Response.DocumentSourcePartEncoded => {
  const about = { type: "source", id: String(part.id), ...metadata(part.providerMetadata) } as const
  if (part.sourceType === "url") {
    return { ...about, sourceType: "url", url: part.url, title: part.title ?? part.url }
  }
  const { filename, mediaType, title } = part
  const fileName = filename === undefined ? undefined : { fileName: filename }
  return { ...about, sourceType: "document", mediaType, title: title ?? part.id, ...fileName }
}

/** Citations stay with the text that they belong to. */
export const textMetadata = (part: { readonly providerMetadata?: unknown; readonly citations?: unknown }) => {
  const citations = toJson(part.citations)
  return metadata(part.providerMetadata, citations === undefined ? undefined : { citations })
}

/** Which response this is. */
export const responseMetadata = (given: {
  readonly id?: unknown
  readonly modelId?: unknown
  readonly timestamp?: unknown
}): Response.ResponseMetadataPartEncoded => {
  const { id, modelId, timestamp } = given
  return {
    type: "response-metadata",
    ...(typeof id === "string" ? { id } : undefined),
    ...(typeof modelId === "string" ? { modelId } : undefined),
    ...(timestamp instanceof Date && !Number.isNaN(timestamp.getTime())
      ? { timestamp: timestamp.toISOString() }
      : undefined)
  }
}
