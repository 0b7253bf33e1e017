/**
 * Says what a model call will ask before it is made: the prompt, and an upper bound of its size.
 *
 * A byte-level tokenizer never makes more tokens of a text than it has bytes, so the UTF-8 bytes of messages and tool
 * schemas bound the input tokens without a tokenizer. What an adapter or a provider adds unseen is not in it.
 *
 * Invariants
 *   Q1  The size is that of the messages of the prompt, those that wait in the inbox included.
 *   Q2  A message is measured once, so a step costs O(its window).
 *
 * @since 0.1.0
 */
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import type { Attempt } from "./Attempt.ts"
import type { ModelRequest } from "./Guard.ts"
import * as Messages from "./Messages.ts"
import * as Text from "./Text.ts"

/** The instructions, what was summarised, the window, and what the model must hear about its last reply. */
export const promptOf = (attempt: Attempt): Prompt.Prompt => Prompt.fromMessages(messagesOf(attempt))

const messagesOf = ({ agent, journal }: Attempt): ReadonlyArray<Prompt.Message> => {
  const { feedback, history, summary } = journal.state
  const before: Array<Prompt.Message> = []
  const instructions = [agent.instructions, agent.output?.instructions ?? ""].filter((text) => text.trim() !== "")
  if (instructions.length > 0)
    before.push(Prompt.makeMessage("system", { content: Text.wellFormed(instructions.join("\n\n")) }))
  if (summary !== undefined) before.push(Messages.user(summary))
  const after = feedback === undefined ? [] : [Messages.user(feedback)]
  return before.concat(agent.window(history), after) // concat: a spread costs 20 ns a message
}

/** What guards may know of the next model call. */
export const about = (attempt: Attempt): ModelRequest => ({
  models: attempt.models,
  inputBytes: ({ tools }) => {
    const waiting = attempt.journal.state.inbox.map(({ content }) => Messages.user(content))
    let bytes = tools ? toolBytes(attempt) : 0
    for (const message of messagesOf(attempt)) bytes += bytesOf(attempt, message)
    for (const message of waiting) bytes += sizeOf(message)
    return bytes
  },
  cost: (info, usage) => {
    try {
      return attempt.prices.cost(info, usage)
    } catch {
      return undefined
    }
  }
})

const bytesOf = ({ sizes }: Attempt, message: Prompt.Message): number => {
  const known = sizes.messages.get(message)
  if (known !== undefined) return known
  const size = sizeOf(message)
  sizes.messages.set(message, size)
  return size
}

const toolBytes = ({ agent, sizes }: Attempt): number => {
  sizes.tools ??= agent.tools.reduce((sum, { tool, wire }) => {
    const parameters = JSON.stringify(Tool.getJsonSchema(tool))
    return sum + Text.utf8Length(JSON.stringify([wire, tool.description ?? "", parameters]))
  }, 0)
  return sizes.tools
}

/** A file has no bound by its bytes: a short address or a packed page can be many tokens. */
const sizeOf = (message: Prompt.Message): number =>
  hasFile(message) ? Infinity : Text.utf8Length(JSON.stringify(message))

const hasFile = ({ content }: Prompt.Message): boolean =>
  typeof content !== "string" &&
  content.some(
    (part) =>
      part.type === "file" ||
      (part.type === "tool-result" && part.modelOutput?.some(({ type }) => type !== "text") === true)
  )
