/**
 * Finds a fence at the end of a line: one that may open a block, as the line arrives, and one that closes it.
 *
 * Invariants
 *   F1  Each character is looked at once, however the line is cut.
 *
 * @since 0.1.0
 */

/** Where the parts of a fence that may open a block stand in the line. */
export interface Opening {
  readonly at: number
  /** The fence itself, three characters or more. */
  readonly fence: string
  readonly name: string
  /** Where JSON begins in the same line, behind the fence. */
  readonly restAt: number | undefined
}

/** The longest name of a language that is one. */
const maxName = 20

type Phase = "none" | "fence" | "space" | "name" | "gap" | "rest" | "return"

/** One line, which is given in pieces. */
export class Line {
  private phase: Phase = "none"
  private read = 0
  /** Where what may be a fence begins, where its own characters end, where its name stands, where JSON begins. */
  private at = 0
  private fenceEnd = 0
  private name = { from: 0, to: 0 }
  private restAt: number | undefined
  private mark = ""

  /** The next characters of the line, without its end. */
  push(text: string): void {
    // What begins with a bracket stays JSON until the line ends.
    for (let i = 0; i < text.length && this.phase !== "rest"; i++) this.step(text.charAt(i), this.read + i)
    this.read += text.length
  }

  /** How many characters at the end are, or may become, a part of a fence. */
  get unsure(): number {
    return this.phase === "none" ? 0 : this.read - this.at
  }

  /** The fence, if the line ends here; `line` is all that was given. */
  opening(line: string): Opening | undefined {
    if (this.phase === "none" || this.fenceEnd - this.at < 3) return undefined
    const { at, fenceEnd, name, restAt } = this
    return { at, fence: line.slice(at, fenceEnd), name: line.slice(name.from, name.to), restAt }
  }

  private step(char: string, index: number): void {
    const next = this.after(char, index)
    if (next !== "none") this.phase = next
    else this.begin(char, index)
  }

  /** What was no fence ends here, perhaps with the first character of another one. */
  private begin(char: string, index: number): void {
    this.phase = char === "`" || char === "~" ? "fence" : "none"
    if (this.phase === "none") return
    this.at = index
    this.mark = char
    this.fenceEnd = index + 1
    this.name = { from: index + 1, to: index + 1 }
  }

  private after(char: string, index: number): Phase {
    if (this.phase === "none" || this.phase === "return") return "none"
    if (this.phase === "fence" && char === this.mark) {
      this.fenceEnd = index + 1
      this.name = { from: index + 1, to: index + 1 }
      return "fence"
    }
    if (this.fenceEnd - this.at < 3) return "none"
    if (char === "\r") return "return"
    if (char === " " || char === "\t") return this.phase === "name" || this.phase === "gap" ? "gap" : "space"
    if (char === "[" || char === "{") {
      this.restAt = index
      return "rest"
    }
    return this.named(char, index)
  }

  private named(char: string, index: number): Phase {
    if (this.phase === "gap" || !/[\w-]/.test(char)) return "none"
    const from = this.phase === "name" ? this.name.from : index
    this.name = { from, to: index + 1 }
    return index + 1 - from > maxName ? "none" : "name"
  }
}

/** What stands before the fence that closes this one, if the line ends with such a fence. */
export const closed = (line: string, fence: string): string | undefined => {
  let end = line.endsWith("\r") ? line.length - 1 : line.length
  while (line[end - 1] === " " || line[end - 1] === "\t") end--
  let start = end
  while (start > 0 && line[start - 1] === fence[0]) start--
  const before = line[start - 1]
  return end - start < fence.length || before === "`" || before === "~" ? undefined : line.slice(0, start)
}
