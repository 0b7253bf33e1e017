/**
 * Follows one reply of a model that speaks the text protocol: what it says, what it calls, and what could not be read.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import { Blocks, type Piece } from "./Blocks.ts"
import * as Calls from "./Calls.ts"

export type Said = { readonly _tag: "Text"; readonly text: string } | ({ readonly _tag: "Call" } & Calls.Call)

/** UTF-16 units that are quoted of a block that could not be read. */
const quoted = 400

export class Reading {
  readonly problems: Array<string> = []
  calls = 0
  private readonly tools: ReadonlySet<string>

  constructor(tools: ReadonlySet<string>) {
    this.tools = tools
  }

  /** Reads one text; each has blocks of its own. */
  text(): { readonly push: (text: string) => ReadonlyArray<Said>; readonly end: () => ReadonlyArray<Said> } {
    const blocks = new Blocks()
    const read = (pieces: ReadonlyArray<Piece>) => pieces.flatMap((piece) => this.read(piece))
    return { push: (text) => read(blocks.push(text)), end: () => read(blocks.end()) }
  }

  /** What the model must hear, if anything could not be read. */
  feedback(example: string): string | undefined {
    if (this.problems.length === 0) return undefined
    return `Nothing of your last reply was run. ${this.problems.join("\n")}\nWrite a call exactly like this:\n${example}`
  }

  private read(piece: Piece): ReadonlyArray<Said> {
    if (piece._tag === "Text") return [piece]
    const calls = Calls.read(piece.body)
    const isCall = piece.marked || (Result.isSuccess(calls) && calls.success.every(({ name }) => this.tools.has(name)))
    if (!isCall) return [{ _tag: "Text", text: piece.raw }]
    if (Result.isFailure(calls)) {
      const raw = piece.raw.length > quoted ? `${piece.raw.slice(0, quoted)}…` : piece.raw
      this.problems.push(`A call could not be read: ${calls.failure}. You wrote:\n${raw.trimEnd()}`)
      return []
    }
    this.calls += calls.success.length
    return calls.success.map((call) => ({ _tag: "Call", ...call }))
  }
}
