/**
 * Takes what a model asked for out of several texts, so that all of it together is not more than it is shown.
 *
 * Invariants
 *   X1  Texts share the room fairly: a short one leaves what it does not need to the others.
 *   X2  Whole lines only, unless one line alone is too long; what was cut is said, with how to go on.
 *
 * @since 0.1.0
 */
import { cut, sizeInJson } from "./Cut.ts"

/** Core shows a model 16,000 units of a result; the rest is for names and numbers. In UTF-16 units of JSON. */
export const maxTotal = 12_000

export interface Range {
  /** From 1. Default the first line. */
  readonly from?: number
  /** Included. Default the last line. */
  readonly to?: number
}

export interface Excerpt {
  readonly text: string
  readonly from: number
  /** Included; less than `from` in an empty text. */
  readonly to: number
  readonly total: number
  /** Says what was cut and how to go on. */
  readonly truncated?: string
}

/** Lines of a text, each with its line end. */
export interface Lines {
  readonly lines: ReadonlyArray<string>
  readonly from: number
  readonly total: number
}

/** The lines of a range, or why there are none. */
export const select = (text: string, { from = 1, to = Number.POSITIVE_INFINITY }: Range): Lines | string => {
  const lines = text.match(/[^\n]*\n|[^\n]+$/g) ?? []
  if (to < from) return `to_line ${to} is before from_line ${from}`
  if (from > Math.max(1, lines.length)) return `from_line ${from} is after the end: the file has ${lines.length} lines`
  return { lines: lines.slice(from - 1, to), from, total: lines.length }
}

/** What fits of each. */
export const share = (all: ReadonlyArray<Lines>): ReadonlyArray<Excerpt> => {
  const room = fairRoom(all.map(({ lines }) => lines.reduce((sum, line) => sum + sizeInJson(line), 0)))
  return all.map((one) => fit(one, room))
}

/** What a text may have if those that need less give the rest away. */
const fairRoom = (sizes: ReadonlyArray<number>): number => {
  let left = maxTotal
  let texts = sizes.length
  for (const size of sizes.toSorted((a, b) => a - b)) {
    if (size > left / texts) return Math.floor(left / texts)
    left -= size
    texts--
  }
  return maxTotal
}

const fit = ({ from, lines, total }: Lines, room: number): Excerpt => {
  let left = room
  let count = 0
  for (const line of lines) {
    left -= sizeInJson(line)
    if (left < 0) break
    count++
  }
  const [first] = lines
  if (count === lines.length || first === undefined) return { text: lines.join(""), from, to: from + count - 1, total }
  if (count > 0) {
    const to = from + count - 1
    return {
      text: lines.slice(0, count).join(""),
      from,
      to,
      total,
      truncated: `cut after line ${to}; go on with from_line ${to + 1}`
    }
  }
  const text = shortened(first, room)
  const said = `line ${from} is cut: it has ${first.length} characters, ${text.length} are shown`
  const next = lines.length > 1 ? `; go on with from_line ${from + 1}` : ""
  return { text, from, to: from, total, truncated: `${said}${next}` }
}

const shortened = (line: string, room: number): string => {
  let text = cut(line, room)
  while (sizeInJson(text) > room) text = cut(text, Math.floor((text.length * room) / sizeInJson(text)))
  return text
}
