/**
 * Lets the offline model answer for a provider: reads the conversation out of a request of any of four protocols, and
 * gives the next reply in the words of the fake servers.
 */
import type * as Schema from "effect/Schema"
import * as Prompt from "effect/ai/Prompt"
import type { ServeOptions } from "../../../packages/models/test/servers/serve.ts"
import type * as Script from "../../../packages/models/test/servers/Script.ts"
import * as Wire from "../../../packages/models/test/servers/Wire.ts"
import { decide } from "../src/model/Decide.ts"
import * as Memory from "../src/model/Memory.ts"

type Protocol = ServeOptions["protocol"]

type Entry =
  | { readonly _tag: "User" | "Assistant"; readonly text: string }
  | { readonly _tag: "Call"; readonly id: string; readonly name: string; readonly params: unknown }
  | { readonly _tag: "Result"; readonly id: string; readonly text: string; readonly failed: boolean }

/** Texts, whether alone or among other parts. */
const textOf = (content: unknown): string =>
  typeof content === "string"
    ? content
    : Wire.objects(content)
        .map(({ text }) => Wire.string(text) ?? "")
        .join("\n")

const word = (value: unknown): string => Wire.string(value) ?? ""

const ofChat = (message: Wire.JsonObject): ReadonlyArray<Entry> => {
  const text = textOf(message["content"])
  switch (message["role"]) {
    case "user":
      return [{ _tag: "User", text }]
    case "assistant":
      return [
        { _tag: "Assistant", text },
        ...Wire.objects(message["tool_calls"]).map((call): Entry => {
          const { arguments: params, name } = Wire.object(call["function"])
          return { _tag: "Call", id: word(call["id"]), name: word(name), params: Wire.parse(word(params)) }
        })
      ]
    case "tool":
      return [{ _tag: "Result", id: word(message["tool_call_id"]), text, failed: false }]
    default:
      return []
  }
}

const ofResponses = (item: Wire.JsonObject): ReadonlyArray<Entry> => {
  const id = word(item["call_id"])
  switch (item["type"] ?? item["role"]) {
    case "user":
      return [{ _tag: "User", text: textOf(item["content"]) }]
    case "assistant":
      return [{ _tag: "Assistant", text: textOf(item["content"]) }]
    case "function_call":
      return [{ _tag: "Call", id, name: word(item["name"]), params: Wire.parse(word(item["arguments"])) }]
    case "function_call_output":
      return [{ _tag: "Result", id, text: textOf(item["output"]), failed: false }]
    default:
      return []
  }
}

const ofAnthropic = ({ content, role }: Wire.JsonObject): ReadonlyArray<Entry> =>
  Wire.objects(content).flatMap((block): ReadonlyArray<Entry> => {
    switch (block["type"]) {
      case "text":
        return [{ _tag: role === "user" ? "User" : "Assistant", text: word(block["text"]) }]
      case "tool_use":
        return [{ _tag: "Call", id: word(block["id"]), name: word(block["name"]), params: block["input"] }]
      case "tool_result": {
        const text = textOf(block["content"])
        return [{ _tag: "Result", id: word(block["tool_use_id"]), text, failed: block["is_error"] === true }]
      }
      default:
        return []
    }
  })

const ofGoogle = ({ parts, role }: Wire.JsonObject): ReadonlyArray<Entry> =>
  Wire.objects(parts).flatMap((part): ReadonlyArray<Entry> => {
    if (part["thought"] === true) return []
    const { args: params, id, name, response } = Wire.object(part["functionCall"] ?? part["functionResponse"])
    if ("functionCall" in part) return [{ _tag: "Call", id: word(id), name: word(name), params }]
    if ("functionResponse" in part) {
      const { content, error } = Wire.object(response)
      const given = error ?? content
      const text = typeof given === "string" ? given : JSON.stringify(given)
      return [{ _tag: "Result", id: word(id), text, failed: error !== undefined }]
    }
    return [{ _tag: role === "user" ? "User" : "Assistant", text: word(part["text"]) }]
  })

const entriesOf = (protocol: Protocol, body: Wire.JsonObject): ReadonlyArray<Entry> => {
  switch (protocol) {
    case "openai-chat":
      return Wire.objects(body["messages"]).flatMap(ofChat)
    case "openai-responses":
      return Wire.objects(body["input"]).flatMap(ofResponses)
    case "anthropic":
      return Wire.objects(body["messages"]).flatMap(ofAnthropic)
    case "google":
      return Wire.objects(body["contents"]).flatMap(ofGoogle)
  }
}

const promptOf = (entries: ReadonlyArray<Entry>): Prompt.Prompt => {
  const names = new Map(entries.flatMap((entry) => (entry._tag === "Call" ? [[entry.id, entry.name] as const] : [])))
  return Prompt.make(
    entries.map((entry): Prompt.MessageEncoded => {
      switch (entry._tag) {
        case "User":
          return { role: "user", content: entry.text }
        case "Assistant":
          return { role: "assistant", content: entry.text }
        case "Call": {
          const { id, name, params } = entry
          return { role: "assistant", content: [{ type: "tool-call", id, name, params }] }
        }
        case "Result": {
          const { failed: isFailure, id, text } = entry
          const name = names.get(id) ?? ""
          const result = Wire.parse(text) ?? text
          return { role: "tool", content: [{ type: "tool-result", id, name, isFailure, result }] }
        }
      }
    })
  )
}

interface Next {
  readonly text: string
  readonly calls: ReadonlyArray<{ readonly name: string; readonly args: Schema.Json }>
}

const nextOf = (prompt: Prompt.Prompt): Next => {
  const { calls, text } = decide(Memory.of(prompt))
  return { text, calls: calls.map(({ name, parameters }) => ({ name, args: parameters })) }
}

/** Answers every request as the offline model would. */
export const answering =
  (protocol: Protocol): Script.Script =>
  (body) => {
    const next = nextOf(promptOf(entriesOf(protocol, body)))
    return protocol === "openai-responses" || protocol === "google"
      ? { reasoning: { text: "What is next?" }, ...next }
      : next
  }

/** Calls and results as the text protocol writes them, in their order. */
const fences = /^(?:(Result|The call failed) of \S+:\n)?```(tool|result)\n(.*)\n```$/gm

const ofText = (entries: ReadonlyArray<Entry>): ReadonlyArray<Entry> => {
  const open: Array<string> = []
  let calls = 0
  return entries.flatMap((entry): ReadonlyArray<Entry> => {
    if (!("text" in entry)) return [entry]
    const found = [...entry.text.matchAll(fences)].map(([, outcome, kind, json = ""]): Entry => {
      if (kind === "result") return { _tag: "Result", id: open.shift() ?? "", text: json, failed: outcome !== "Result" }
      const { arguments: params, name } = Wire.object(Wire.parse(json))
      const id = `call_${++calls}`
      open.push(id)
      return { _tag: "Call", id, name: word(name), params }
    })
    return found.length === 0 ? [entry] : found
  })
}

/** As above, over chat completions, for a client that speaks the text protocol. */
export const answeringInText: Script.Script = (body) => {
  const { calls, text } = nextOf(promptOf(ofText(entriesOf("openai-chat", body))))
  const blocks = calls.map(({ args, name }) => `\n\`\`\`tool\n${JSON.stringify({ name, arguments: args })}\n\`\`\``)
  return { text: `${text}${blocks.join("")}` }
}
