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

  /** Texts that were all thought, and did not end. */
  private open = 0

  /** Reads one text; each has blocks of its own. */
  text(): { readonly push: (text: string) => ReadonlyArray<Said>; readonly end: () => ReadonlyArray<Said> } {
    const blocks = new Blocks()
    const read = (pieces: ReadonlyArray<Piece>) => pieces.flatMap((piece) => this.noted(this.read(piece)))
    const end = () => {
      if (blocks.onlyThought) this.open++
      return read(blocks.end())
    }
    return { push: (text) => read(blocks.push(text)), end }
  }

  /** What the model must hear, if anything could not be read, or it ended with a call that is written as text. */
  feedback(example: string): string | undefined {
    const silent = this.calls === 0 && this.problems.length === 0
    if (silent && this.open > 0) return "Your last reply was all thought, which did not end. Answer, or call a tool."
    const stray = silent ? Stray.find(this.said.slice(-Stray.looked), this.tools) : undefined
    if (stray !== undefined) this.problems.push(`A call was not in its block. You wrote:\n${quote(stray)}`)
    if (this.problems.length === 0) return undefined
    return `Nothing of your last reply was run. ${this.problems.join("\n")}\nWrite a call exactly like this:\n${example}`
  }

  private noted(all: ReadonlyArray<Said>): ReadonlyArray<Said> {
    for (const one of all) if (one._tag === "Text") this.said += one.text
    // Not with every delta: each cut copies all of it.
    if (this.said.length > 2 * Stray.looked) this.said = this.said.slice(-Stray.looked)
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
