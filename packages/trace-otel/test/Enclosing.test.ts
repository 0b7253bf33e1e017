import { describe, expect, it } from "@effect/vitest"
import { own } from "../src/Conventions.ts"
import { enclosing } from "../src/Enclosing.ts"
import type { FinishedSpan } from "../src/FinishedSpan.ts"

/** A span that ends at `end`, under another one. */
const span = (spanId: string, parentId: string | undefined, end: number, attributes = {}): FinishedSpan => ({
  traceId: "t",
  spanId,
  ...(parentId === undefined ? undefined : { parentId }),
  name: spanId,
  kind: "internal",
  start: 0,
  end,
  attributes,
  events: [],
  links: []
})
const call = { [own.ending]: "lost" }
const attempt = { [own.outcome]: "Lost" }
const endsOf = (spans: ReadonlyArray<FinishedSpan>) =>
  Object.fromEntries(enclosing(spans).map(({ end, spanId }) => [spanId, end]))

/** A planner, its worker, and the worker's own worker: the deeper, the later their journals end. */
const family = [
  span("edit", "second", 30, call),
  span("second", "ask", 30, attempt),
  span("ask", "first", 20, call),
  span("chat", "first", 25),
  span("first", "delegate", 20, attempt),
  span("delegate", "planner", 10, call),
  span("earlier", "planner", 5),
  span("planner", "whole", 10, attempt),
  span("whole", undefined, 12)
]

describe("enclosing", () => {
  it("F2 a lost call ends no earlier than anything below it, however deep, in any order of the spans", () => {
    const ends = {
      edit: 30,
      second: 30,
      ask: 30,
      chat: 25,
      first: 30,
      delegate: 30,
      earlier: 5,
      planner: 30,
      whole: 12
    }
    expect(endsOf(family)).toEqual(ends)
    expect(endsOf(family.toReversed())).toEqual(ends)
    expect(enclosing(family).map(({ spanId }) => spanId)).toEqual(family.map(({ spanId }) => spanId))
  })

  it("what ended by itself keeps its end, whatever is below it", () => {
    const spans = [span("late", "done", 9), span("done", "gone", 4, { [own.outcome]: "Completed" })]
    expect(enclosing(spans)).toBe(spans)
    expect(endsOf([...spans, span("gone", undefined, 2, attempt)])).toEqual({ late: 9, done: 4, gone: 4 })
  })
})
