/**
 * Cuts a text into what is said and the blocks that may be calls, as it arrives.
 *
 * Invariants
 *   B1  Nothing of a block is given out as text before it is known not to be a call.
 *   B2  What stands within a longer fence, or in thoughts (`<think>…</think>`) at the beginning, is text: an example, no call.
 *
 * @since 0.1.0
 */
import { closed, Line } from "./Fence.ts"
import { Thoughts } from "./Thoughts.ts"

export interface Text {
  readonly _tag: "Text"
  readonly text: string
}

export type Piece =
  | Text
  /** `marked`: the fence says that it is a call. `raw` is the block as it was written, fences included. */
  | { readonly _tag: "Block"; readonly marked: boolean; readonly body: string; readonly raw: string }

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
  /** All of this line, also what was given out. */
  private tail = new Line()
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
    const pieces: Array<Piece> = []
    const lines = text.split("\n")
    const last = lines.pop() ?? ""
    for (const end of lines) {
      this.line += end
      pieces.push(...this.take("\n"))
    }
    this.line += last
    if (this.state._tag !== "Held") {
      this.tail.push(last)
      pieces.push(...this.certain())
    }
    return pieces
  }

  /** What is left; a block that was not closed is one too, for its reader to judge. */
  end(): ReadonlyArray<Piece> {
    const { text, thought } = this.thoughts.end()
    const pieces = [...said(thought), ...this.read(text)]
    if (this.line !== "") pieces.push(...this.take(""))
    if (this.state._tag === "Held") pieces.push(this.block(this.state.marked))
    return joined(pieces)
  }

  /** All that was thought was left open: nothing was said. */
  get onlyThought(): boolean {
    return this.thoughts.open
  }

  /** What of the last line cannot become a fence any more. */
  private certain(): ReadonlyArray<Piece> {
    const at = this.line.length - this.tail.unsure
    if (at <= 0) return []
    const text = this.line.slice(0, at)
    this.line = this.line.slice(at)
    this.midline ||= text.trim() !== ""
    return [{ _tag: "Text", text }]
  }

  /** The line is over, with this behind it. */
  private take(ending: string): ReadonlyArray<Piece> {
    const bare = this.line
    const line = bare + ending
    const begins = !this.midline
    this.line = ""
    this.tail = new Line()
    this.midline = false
    if (this.state._tag === "Held") return this.hold(line, this.state.fence, this.state.marked)
    const text: Piece = { _tag: "Text", text: line }
    if (this.state._tag === "Code") {
      if (begins && closed(bare, this.state.fence)?.trim() === "") this.state = { _tag: "Text" }
      return [text]
    }
    const read = new Line()
    read.push(bare)
    const opening = read.opening(bare)
    if (opening === undefined) return [text]
    const { at, fence, name, restAt } = opening
    const before = bare.slice(0, at)
    const marked = marks.has(name.toLowerCase())
    const alone = begins && before.trim() === ""
    if (!marked && !(alone && restAt === undefined && candidates.has(name.toLowerCase()))) {
      if (alone && restAt === undefined && name !== "") this.state = { _tag: "Code", fence }
      return [text]
    }
    this.state = { _tag: "Held", fence, marked }
    this.raw = line.slice(at, restAt)
    const inside = restAt === undefined ? [] : this.hold(line.slice(restAt), fence, marked)
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
