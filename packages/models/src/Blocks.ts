/**
 * Cuts a text into what is said and the blocks that may be calls, as it arrives.
 *
 * Invariants
 *   B1  Nothing of a block is given out as text before it is known not to be a call.
 *   B2  What stands within a longer fence, or in `<think>…</think>` at the beginning, is text: an example, no call.
 *
 * @since 0.1.0
 */
import { Thoughts } from "./Thoughts.ts"

export interface Text {
  readonly _tag: "Text"
  readonly text: string
}

export type Piece =
  | Text
  /** `marked`: the fence says that it is a call. `raw` is the block as it was written, fences included. */
  | { readonly _tag: "Block"; readonly marked: boolean; readonly body: string; readonly raw: string }

/** A fence, perhaps behind other text, perhaps with JSON right after it. */
const opening = /^(.*?)((`{3,}|~{3,})[ \t]*([\w-]{0,20})[ \t]*((?:[[{].*)?))\r?$/
const closing = /^(.*?)(?<![`~])(`{3,}|~{3,})[ \t]*\r?$/
/** The end of a line that is not complete, and may become a fence or a part of one. */
const unsure = /(?:`{1,2}|~{1,2}|(?:`{3,}|~{3,})[ \t]*[\w-]{0,20}[ \t]*(?:[[{][^\n]*)?\r?)$/
/** The beginning of a line that stays unsure until it ends. */
const undecided = /^(?:`{3,}|~{3,})[ \t]*[\w-]{0,20}[ \t]*[[{]/
/** What models write in place of `tool`; a fence of JSON or without a name may hold a call too. */
const marks = new Set(["tool", "tool_call", "tool-call", "tool_calls"])
const candidates = new Set(["", "json"])

/** `fence` opened it: only one of the same kind that is not shorter closes it. */
type State =
  | { readonly _tag: "Text" }
  | { readonly _tag: "Code"; readonly fence: string }
  | { readonly _tag: "Held"; readonly fence: string; readonly marked: boolean }

/** One text; every call of `push` and `end` gives the pieces that are certain by then. */
export class Blocks {
  private state: State = { _tag: "Text" }
  private readonly thoughts = new Thoughts()
  private line = ""
  /** Nothing of this line can be given out before it ends. */
  private waits = false
  private raw = ""
  private body = ""
  /** The beginning of this line was given out. */
  private midline = false

  push(delta: string): ReadonlyArray<Piece> {
    const { text, thought } = this.thoughts.push(delta)
    return joined([...said(thought), ...this.read(text)])
  }

  /** A long line is looked at once, and not again with every delta. */
  private read(text: string): ReadonlyArray<Piece> {
    if ((this.waits || this.state._tag === "Held") && !text.includes("\n")) {
      this.line += text
      return []
    }
    const pieces: Array<Piece> = []
    const lines = (this.line + text).split("\n")
    this.line = lines.pop() ?? ""
    for (const line of lines) pieces.push(...this.take(`${line}\n`))
    if (this.state._tag !== "Held") pieces.push(...this.certain())
    this.waits = this.state._tag === "Text" && undecided.test(this.line)
    return pieces
  }

  /** What is left; a block that was not closed is one too, for its reader to judge. */
  end(): ReadonlyArray<Piece> {
    const { text, thought } = this.thoughts.end()
    const pieces = [...said(thought), ...this.read(text)]
    if (this.line !== "") pieces.push(...this.take(this.line))
    this.line = ""
    if (this.state._tag === "Held") pieces.push(this.block(this.state.marked))
    return joined(pieces)
  }

  /** What of the last line cannot become a fence any more. */
  private certain(): ReadonlyArray<Piece> {
    const at = unsure.exec(this.line)?.index ?? this.line.length
    if (at === 0) return []
    const text = this.line.slice(0, at)
    this.line = this.line.slice(at)
    this.midline ||= text.trim() !== ""
    return [{ _tag: "Text", text }]
  }

  private take(line: string): ReadonlyArray<Piece> {
    const begins = !this.midline
    this.midline = false
    if (this.state._tag === "Held") return this.hold(line, this.state.fence, this.state.marked)
    const text: Piece = { _tag: "Text", text: line }
    const bare = line.replace(/\n$/, "")
    if (this.state._tag === "Code") {
      if (begins && closed(bare, this.state.fence)?.trim() === "") this.state = { _tag: "Text" }
      return [text]
    }
    const [, before = "", all = "", fence = "", name = "", rest = ""] = opening.exec(bare) ?? []
    if (fence === "") return [text]
    const marked = marks.has(name.toLowerCase())
    const alone = begins && before.trim() === ""
    if (!marked && !(alone && rest === "" && candidates.has(name.toLowerCase()))) {
      if (alone && rest === "" && name !== "") this.state = { _tag: "Code", fence }
      return [text]
    }
    this.state = { _tag: "Held", fence, marked }
    this.raw = rest === "" ? line.slice(before.length) : all.slice(0, all.length - rest.length)
    const inside = rest === "" ? [] : this.hold(line.slice(before.length + this.raw.length), fence, marked)
    return before === "" ? inside : [{ _tag: "Text", text: before }, ...inside]
  }

  private hold(line: string, fence: string, marked: boolean): ReadonlyArray<Piece> {
    this.raw += line
    const last = closed(line.replace(/\n$/, ""), fence)
    this.body += last ?? line
    return last === undefined ? [] : [this.block(marked)]
  }

  private block(marked: boolean): Piece {
    const piece = { _tag: "Block", marked, body: this.body, raw: this.raw } as const
    this.state = { _tag: "Text" }
    this.raw = ""
    this.body = ""
    return piece
  }
}

const said = (text: string): ReadonlyArray<Piece> => (text === "" ? [] : [{ _tag: "Text", text }])

/** What stands before the fence that closes this one, if the line ends with such a fence. */
const closed = (line: string, fence: string): string | undefined => {
  const [, before, last = ""] = closing.exec(line) ?? []
  return last.startsWith(fence) ? before : undefined
}

/** Texts that follow each other as one. */
export const joined = <Other extends { readonly _tag: string }>(
  all: ReadonlyArray<Text | Other>
): ReadonlyArray<Text | Other> => {
  const out: Array<Text | Other> = []
  for (const piece of all) {
    const last = out.at(-1)
    if (isText(piece) && last !== undefined && isText(last))
      out[out.length - 1] = { _tag: "Text", text: last.text + piece.text }
    else out.push(piece)
  }
  return out
}

const isText = (piece: { readonly _tag: string }): piece is Text => piece._tag === "Text"
