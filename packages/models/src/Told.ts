/**
 * Says in text what a model without tools must know: which tools there are, how to call them, what it called, and what
 * came of it.
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Tool from "effect/ai/Tool"

const fenced = (name: string, json: unknown): string => `\`\`\`${name}\n${JSON.stringify(json) ?? "null"}\n\`\`\``

/** A call as it must be written. */
export const example = fenced("tool", { name: "tool_name", arguments: { key: "value" } })

const bad = "```tool\ntool_name(key='value')\n```"

/** The request as text: no tools, and no parts that only a model with tools knows. */
export const prompt = (options: LanguageModel.ProviderOptions): Prompt.Prompt => {
  const { content } = options.prompt
  const messages: Array<Prompt.Message> = []
  // What the agent is told comes first, in its order, and then how to call.
  const leading = content.findIndex(({ role }) => role !== "system")
  const at = leading === -1 ? content.length : leading
  const about = options.tools.length === 0 ? [] : [system(instructions(options))]
  for (const message of [...content.slice(0, at), ...about, ...content.slice(at)]) {
    const next = told(message)
    if (next === undefined) continue
    const last = messages.at(-1)
    const merged = last === undefined ? undefined : merge(last, next)
    if (merged === undefined) messages.push(next)
    else messages[messages.length - 1] = merged
  }
  return Prompt.fromMessages(messages)
}

const system = (content: string) => Prompt.makeMessage("system", { content })
const text = (text: string) => Prompt.makePart("text", { text })

/** Parts of a message, each text behind the first in lines of its own: the packages put texts together as they are. */
const apart = <Part extends { readonly type: string }>(parts: ReadonlyArray<Part | Prompt.TextPart>) =>
  parts.map((part, index) =>
    index === 0 || !isText(part) || part.text.startsWith("\n") ? part : { ...part, text: `\n${part.text}` }
  )

const isText = (part: { readonly type: string }): part is Prompt.TextPart => part.type === "text"

/** Two of one role in a row are one message: the templates of many local models refuse anything else. */
const merge = (last: Prompt.Message, next: Prompt.Message): Prompt.Message | undefined => {
  if (last.role === "system" && next.role === "system") return system(`${last.content}\n\n${next.content}`)
  return last.role === "user" && next.role === "user"
    ? Prompt.makeMessage("user", { content: apart([...last.content, ...next.content]) })
    : undefined
}

const told = (message: Prompt.Message): Prompt.Message | undefined => {
  if (message.role === "tool") {
    const results = message.content.flatMap((part) => (part.type === "tool-result" ? [text(result(part))] : []))
    return results.length === 0 ? undefined : Prompt.makeMessage("user", { content: apart(results) })
  }
  if (message.role !== "assistant") return message
  const content = message.content.flatMap((part): ReadonlyArray<Prompt.AssistantMessagePart> => {
    if (part.type === "tool-call") return [text(fenced("tool", { name: part.name, arguments: part.params }))]
    return part.type === "text" || part.type === "reasoning" || part.type === "file" ? [part] : []
  })
  return content.length === 0
    ? undefined
    : Prompt.makeMessage("assistant", { content: apart(content), options: message.options })
}

const result = ({ isFailure, name, result }: Prompt.ToolResultPart): string =>
  `${isFailure ? "The call failed" : "Result"} of ${name}:\n${fenced("result", result)}`

const instructions = ({ toolChoice, tools }: LanguageModel.ProviderOptions): string =>
  [
    "You can call tools. To call one, write a block of exactly this form, in lines of its own:",
    example,
    'It is JSON: double quotes, no comments, no trailing commas; "name" and "arguments" must be there. You may write several blocks. After your blocks end your reply: the results come in the next message. Never write a result yourself.',
    `This is wrong, and nothing would be called:\n${bad}`,
    ...(mustCall(toolChoice) ? ["You must call a tool now."] : []),
    "The tools:",
    ...tools.map((tool) => {
      const about = tool.description === undefined ? "" : `: ${tool.description}`
      return `- ${tool.name}${about}\n  arguments: ${JSON.stringify(Tool.getJsonSchema(tool))}`
    })
  ].join("\n\n")

const mustCall = (choice: LanguageModel.ProviderOptions["toolChoice"]): boolean =>
  choice === "required" || (typeof choice === "object" && ("tool" in choice || choice.mode === "required"))
