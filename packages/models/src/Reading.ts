/**
 * Follows one reply of a model that speaks the text protocol: what it says, what it calls, and what could not be read.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import { Blocks, type Piece } from "./Blocks.ts"
import * as Calls from "./Calls.ts"
import * as Stray from "./Stray.ts"

export type Said = { readonly _tag: "Text"; readonly text: string } | ({ readonly _tag: "Call" } & Calls.Call)

/** UTF-16 units that are quoted of a block that could not be read. */
const quoted = 400

const quote = (raw: string): string => (raw.length > quoted ? `${raw.slice(0, quoted)}…` : raw).trimEnd()

export class Reading {
  readonly problems: Array<string> = []
  calls = 0
  /** The end of what was said, calls aside. */
  private said = ""
  private readonly tools: ReadonlySet<string>

  constructor(tools: ReadonlySet<string>) {
    this.tools = tools
  }

  /** Reads one text; each has blocks of its own. */
  text(): { readonly push: (text: string) => ReadonlyArray<Said>; readonly end: () => ReadonlyArray<Said> } {
    const blocks = new Blocks()
    const read = (pieces: ReadonlyArray<Piece>) => pieces.flatMap((piece) => this.noted(this.read(piece)))
    return { push: (text) => read(blocks.push(text)), end: () => read(blocks.end()) }
  }

  /** What the model must hear, if anything could not be read, or it ended with a call that is written as text. */
  feedback(example: string): string | undefined {
    const stray = this.calls === 0 && this.problems.length === 0 ? Stray.find(this.said, this.tools) : undefined
    if (stray !== undefined) this.problems.push(`A call was not in its block. You wrote:\n${quote(stray)}`)
    if (this.problems.length === 0) return undefined
    return `Nothing of your last reply was run. ${this.problems.join("\n")}\nWrite a call exactly like this:\n${example}`
  }

  private noted(all: ReadonlyArray<Said>): ReadonlyArray<Said> {
    for (const one of all) if (one._tag === "Text") this.said = (this.said + one.text).slice(-Stray.looked)
    return all
  }

  private read(piece: Piece): ReadonlyArray<Said> {
    if (piece._tag === "Text") return [piece]
    const calls = Calls.read(piece.body)
    const isCall = piece.marked || Stray.areCalls(calls, this.tools)
    if (!isCall) return [{ _tag: "Text", text: piece.raw }]
    if (Result.isFailure(calls)) {
      this.problems.push(`A call could not be read: ${calls.failure}. You wrote:\n${quote(piece.raw)}`)
      return []
    }
    this.calls += calls.success.length
    return calls.success.map((call) => ({ _tag: "Call", ...call }))
  }
}
