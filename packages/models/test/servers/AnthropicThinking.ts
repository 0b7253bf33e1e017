/**
 * What the messages endpoint of Anthropic asks of thinking blocks that come back.
 *
 * Signatures are checked wherever a block stands, thinking on or not. With thinking on, the tool loop at the end of the
 * conversation is one turn: in manual mode it starts with thinking, and in both modes the thinking that stood before a
 * tool use in the latest assistant message stands there unchanged. The real server cannot know what it once sent before
 * a tool use; this one does, and so finds a block that was dropped.
 * Public documentation: "Extended thinking" (preserving thinking blocks, thinking with tool use), "Thinking in tool and
 * multi-turn workflows", "Adaptive thinking".
 */
import type * as Script from "./Script.ts"
import * as Signatures from "./Signatures.ts"
import * as Wire from "./Wire.ts"

export interface Memory {
  readonly signatures: Signatures.Signatures
  /** The thinking blocks that went out before a tool use, by the id of the tool use. */
  readonly before: Map<string, ReadonlyArray<Wire.JsonObject>>
}

export interface Turn {
  readonly role: string
  /** Where the first of the messages that were merged into it stands in the request. */
  readonly index: number
  readonly blocks: ReadonlyArray<Wire.JsonObject>
}

export const make = (): Memory => ({ signatures: Signatures.make("sig_"), before: new Map() })

export const issue = (memory: Memory, { redacted, signature, text }: Script.Reasoning): Wire.JsonObject => {
  const signed = memory.signatures.issue(text, signature)
  return redacted === true
    ? { type: "redacted_thinking", data: signed }
    : { type: "thinking", thinking: text, signature: signed }
}

const isThinking = (block: Wire.JsonObject) => block["type"] === "thinking" || block["type"] === "redacted_thinking"

const valid = (memory: Memory, block: Wire.JsonObject) =>
  block["type"] === "redacted_thinking"
    ? memory.signatures.issued(block["data"])
    : memory.signatures.valid(Wire.string(block["thinking"]) ?? "", block["signature"])

const invalid = (message: string): Wire.Rejection => ({ status: 400, type: "invalid_request_error", message })

export function* problems(
  body: Wire.JsonObject,
  turns: ReadonlyArray<Turn>,
  memory: Memory
): Generator<Wire.Rejection> {
  for (const { blocks, index } of turns)
    for (const [place, block] of blocks.entries())
      if (isThinking(block) && !valid(memory, block))
        yield invalid(`messages.${index}.content.${place}: Invalid \`signature\` in \`${String(block["type"])}\` block`)
  const thinking = Wire.object(body["thinking"])
  if (thinking["type"] === "enabled") yield* manual(body, thinking)
  if (thinking["type"] !== "enabled" && thinking["type"] !== "adaptive") return
  const lastUser = turns.findLastIndex(
    ({ blocks, role }) => role === "user" && !blocks.some((block) => block["type"] === "tool_result")
  )
  const loop = turns.slice(lastUser + 1).filter(({ role }) => role === "assistant")
  if (thinking["type"] === "enabled") yield* starts(loop[0])
  yield* unchanged(loop.at(-1), memory)
}

function* manual(body: Wire.JsonObject, thinking: Wire.JsonObject): Generator<Wire.Rejection> {
  const budget = thinking["budget_tokens"]
  if (typeof budget !== "number") yield invalid("thinking.enabled.budget_tokens: Field required")
  else if (budget < 1024) yield invalid("thinking.enabled.budget_tokens: Input should be at least 1024")
  else if (typeof body["max_tokens"] === "number" && body["max_tokens"] <= budget)
    yield invalid("`max_tokens` must be greater than `thinking.budget_tokens`.")
  if (["any", "tool"].includes(String(Wire.object(body["tool_choice"])["type"])))
    yield invalid("Thinking may not be enabled when tool_choice forces tool use.")
}

function* starts(turn: Turn | undefined): Generator<Wire.Rejection> {
  const first = turn?.blocks[0]
  if (turn === undefined || first === undefined || isThinking(first)) return
  yield invalid(
    `messages.${turn.index}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${String(first["type"])}\`.`
  )
}

function* unchanged(turn: Turn | undefined, memory: Memory): Generator<Wire.Rejection> {
  if (turn === undefined) return
  const use = turn.blocks.find((block) => block["type"] === "tool_use")
  const sent = memory.before.get(Wire.string(use?.["id"]) ?? "")
  if (sent === undefined) return
  const key = (block: Wire.JsonObject) => String(block["signature"] ?? block["data"])
  const back = turn.blocks.filter(isThinking).map(key)
  if (sent.map(key).join("\n") !== back.join("\n"))
    yield invalid(
      `messages.${turn.index}.content: \`thinking\` or \`redacted_thinking\` blocks in the latest assistant message cannot be modified.`
    )
}
