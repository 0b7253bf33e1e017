/**
 * Says what the time of a Run went into: each moment counts once, for the model before tools before waits.
 */
import type { Trace } from "@waystone/trace-otel"

type Span = Trace.FinishedSpan
export type Kind = "model" | "tools" | "waits" | "agent"

export const kindOf = ({ attributes, kind, name }: Span): Kind => {
  if (kind === "client") return "model"
  if (attributes["gen_ai.operation.name"] === "execute_tool") return "tools"
  return name.startsWith("wait ") ? "waits" : "agent"
}

export interface Sum {
  readonly what: string
  readonly millis: number
  /** Model calls, tool calls, waits; 0 where nothing is counted. */
  readonly count: number
}

/** A piece of time in which nothing begins or ends. */
interface Piece {
  readonly from: number
  readonly to: number
  readonly kind: Kind
}

/** A call of a sub-agent takes the time of what that does. */
const counted = (spans: ReadonlyArray<Span>): ReadonlyArray<Span> => {
  const parents = new Set(spans.map(({ parentId }) => parentId))
  return spans.filter((span) => kindOf(span) !== "tools" || !parents.has(span.spanId))
}

const order: ReadonlyArray<Kind> = ["agent", "waits", "tools", "model"]

const pieces = (spans: ReadonlyArray<Span>): ReadonlyArray<Piece> => {
  const moments = counted(spans)
    .flatMap((span) => {
      const kind = kindOf(span)
      return [
        { at: span.start, kind, more: 1 },
        { at: span.end, kind, more: -1 }
      ]
    })
    .toSorted((a, b) => a.at - b.at)
  const open = { agent: 0, waits: 0, tools: 0, model: 0 }
  const found: Array<Piece> = []
  let from = moments[0]?.at ?? 0
  for (const { at, kind, more } of moments) {
    if (at > from) found.push({ from, to: at, kind: order.findLast((one) => open[one] > 0) ?? "waits" })
    open[kind] += more
    from = at
  }
  return found
}

export const sums = (spans: ReadonlyArray<Span>): ReadonlyArray<Sum> => {
  const all = pieces(spans)
  const millis = (kind: Kind) => all.reduce((sum, one) => sum + (one.kind === kind ? one.to - one.from : 0), 0)
  const count = (kind: Kind) => counted(spans).filter((span) => kindOf(span) === kind).length
  const waits = count("waits")
  return [
    { what: "model", millis: millis("model"), count: count("model") },
    { what: "tools", millis: millis("tools"), count: count("tools") },
    ...(waits === 0 ? [] : [{ what: "waits", millis: millis("waits"), count: waits }]),
    { what: "the rest", millis: millis("agent"), count: 0 }
  ]
}

/** Waits take no more than this share of the picture. */
const mostForWaits = 0.25

/** Where a time is in the picture, from 0 to 1. Long waits are drawn shorter than they were. */
export const scale = (spans: ReadonlyArray<Span>): ((at: number) => number) => {
  const all = pieces(spans)
  const length = (waits: boolean) =>
    all.reduce((sum, { from, kind, to }) => sum + ((kind === "waits") === waits ? to - from : 0), 0)
  const [waits, work] = [length(true), length(false)]
  const shrunk = work === 0 || waits === 0 ? 1 : Math.min(1, (work * mostForWaits) / (1 - mostForWaits) / waits)
  const whole = work + waits * shrunk
  const places = new Map<number, number>([[all[0]?.from ?? 0, 0]])
  let place = 0
  for (const { from, kind, to } of all) {
    place += (to - from) * (kind === "waits" ? shrunk : 1)
    places.set(to, whole === 0 ? 0 : place / whole)
  }
  // Every span begins and ends where pieces do, and a call of a sub-agent where one of its Runs is at work, or near it.
  return (at) => places.get(at) ?? nearest(places, at)
}

const nearest = (places: ReadonlyMap<number, number>, at: number): number => {
  let best = 0
  for (const [moment, place] of places) if (moment <= at) best = Math.max(best, place)
  return best
}
