/**
 * Draws the spans of a Run as a tree with a bar for each: when it was, and how long it took.
 */
import type { Trace } from "@waystone/trace-otel"
import type { Style } from "./Style.ts"
import * as TimeSpent from "./TimeSpent.ts"

type Span = Trace.FinishedSpan

interface Row {
  readonly span: Span
  readonly depth: number
}

/** `columns`: how wide the terminal is. */
export interface Options {
  readonly columns: number
  readonly style: Style
}

/** Labels longer than this are cut. */
const widestLabel = 44
/** A bar that is shorter shows nothing. */
const narrowestBar = 12
const widestBar = 60

export const lines = (spans: ReadonlyArray<Span>, { columns, style }: Options): ReadonlyArray<string> => {
  const rows = tree(spans)
  if (rows.length === 0) return []
  const labels = rows.map(({ depth, span }) => cut(`${"  ".repeat(depth)}${span.name}`, widestLabel))
  const label = Math.max(...labels.map(({ length }) => length))
  const times = rows.map(({ span }) => duration(span.end - span.start))
  const time = Math.max(...times.map(({ length }) => length))
  const abouts = rows.map(({ span }) => about(span))
  const room = columns - label - time - 6
  const bar = Math.min(widestBar, room - Math.max(...abouts.map(({ length }) => length)) - 2)
  const scale = TimeSpent.scale(spans)
  const shortest = bar >= narrowestBar ? bar : 0
  return [
    style.bold("Where the time went"),
    ...rows.map(({ span }, i) => {
      const [from, to] = [scale(span.start), scale(span.end)]
      const drawn = shortest === 0 ? "" : `${paint(span, style)(block(from, to, shortest))}  `
      const mark = span.failed === undefined ? " " : style.red("✗")
      const end = style.dim(cut(abouts[i] ?? "", Math.max(0, room - (shortest === 0 ? 0 : shortest + 2))))
      return `${mark} ${(labels[i] ?? "").padEnd(label)}  ${(times[i] ?? "").padStart(time)}  ${drawn}${end}`.trimEnd()
    }),
    `  ${TimeSpent.sums(spans)
      .map(({ count, millis, what }) => `${what} ${duration(millis)}${count === 0 ? "" : ` (${count})`}`)
      .join(", ")}`
  ]
}

/** Parents before their children, and those by their start. */
const tree = (spans: ReadonlyArray<Span>): ReadonlyArray<Row> => {
  const ids = new Set(spans.map(({ spanId }) => spanId))
  const below = new Map<string, Array<Span>>()
  for (const span of spans) {
    const parent = span.parentId !== undefined && ids.has(span.parentId) ? span.parentId : ""
    const beside = below.get(parent)
    if (beside === undefined) below.set(parent, [span])
    else beside.push(span)
  }
  const rows: Array<Row> = []
  const walk = (parent: string, depth: number): void => {
    for (const span of (below.get(parent) ?? []).toSorted((a, b) => a.start - b.start || seq(a) - seq(b))) {
      rows.push({ span, depth })
      walk(span.spanId, depth + 1)
    }
  }
  walk("", 0)
  return rows
}

const number = ({ attributes }: Span, name: string): number => {
  const value = attributes[name]
  return typeof value === "number" ? value : 0
}
const seq = (span: Span): number => number(span, "waystone.seq")
const text = ({ attributes }: Span, name: string): string => {
  const value = attributes[name]
  return typeof value === "string" ? value : ""
}

/** Tokens, cost, tries, and how it ended where that is not well. */
const about = (span: Span): string => {
  const parts: Array<string> = []
  const [input, output] = [number(span, "gen_ai.usage.input_tokens"), number(span, "gen_ai.usage.output_tokens")]
  if (input + output > 0) parts.push(`${input} in, ${output} out`)
  const cost = number(span, "waystone.cost.usd")
  if (cost > 0) parts.push(`$${cost.toPrecision(3)}`)
  const tries = number(span, "waystone.tries")
  if (tries > 1) parts.push(`${tries} tries`)
  const outcome = text(span, "waystone.outcome")
  if (outcome !== "" && outcome !== "Completed") parts.push(outcome)
  const ending = text(span, "waystone.tool.ending")
  if (ending !== "" && ending !== "executed") parts.push(ending)
  const error = text(span, "error.type")
  if (error !== "") parts.push(error)
  return parts.join(", ")
}

const paint = (span: Span, { cyan, dim, green }: Style) => {
  const kind = TimeSpent.kindOf(span)
  return kind === "model" ? cyan : kind === "tools" ? green : dim
}

/** From and to are shares of the whole. */
const block = (from: number, to: number, width: number): string => {
  const first = Math.min(width - 1, Math.floor(from * width))
  const last = Math.max(first + 1, Math.min(width, Math.round(to * width)))
  return `${" ".repeat(first)}${"█".repeat(last - first)}${" ".repeat(width - last)}`
}

const cut = (text: string, width: number): string =>
  text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`

/** Three digits at most, in the unit that fits. */
export const duration = (millis: number): string => {
  if (millis < 1000) return `${Math.round(millis)} ms`
  const seconds = millis / 1000
  if (seconds < 60) return `${seconds.toPrecision(3)} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`
}
