import { describe, expect, it } from "@effect/vitest"
import type { Trace } from "@waystone/trace-otel"
import * as Style from "../src/Style.ts"
import * as TimeSpent from "../src/TimeSpent.ts"
import * as Waterfall from "../src/Waterfall.ts"

const span = (
  [spanId, parentId]: readonly [string, string?],
  name: string,
  [start, end]: readonly [number, number],
  more: Partial<Trace.FinishedSpan> = {}
): Trace.FinishedSpan => ({
  traceId: "t",
  spanId,
  ...(parentId === undefined ? undefined : { parentId }),
  name,
  kind: "internal",
  start,
  end,
  attributes: {},
  events: [],
  links: [],
  ...more
})
const tool = { attributes: { "gen_ai.operation.name": "execute_tool" } }
const model = (input: number, more: Trace.Attributes = {}) => ({
  kind: "client" as const,
  attributes: { "gen_ai.usage.input_tokens": input, "gen_ai.usage.output_tokens": 5, ...more }
})

/** Two attempts with a day between them; in the second one a sub-agent works while a tool does. */
const day = 86_400_000
const spans = [
  span(["c1", "a1"], "chat m", [0, 2000], model(10, { "waystone.tries": 3, "waystone.cost.usd": 0.0123 })),
  span(["a1", "r"], "invoke_agent boss", [0, 2500]),
  span(["w", "r"], "wait approval", [2500, day]),
  span(["t1", "a2"], "execute_tool act", [day, day + 3000], {
    attributes: { ...tool.attributes, "error.type": "Broken" },
    failed: {}
  }),
  span(["c2", "b"], "chat m", [day + 1000, day + 2000], model(7)),
  span(["b", "t2"], "invoke_agent helper", [day + 500, day + 4000]),
  span(["t2", "a2"], "execute_tool ask_helper", [day, day + 4000], tool),
  span(["a2", "r"], "invoke_agent boss", [day, day + 4500]),
  span(["r"], "invoke_agent boss", [0, day + 4500])
]
const drawn = (columns: number, style = Style.plain) => Waterfall.lines(spans, { columns, style })

describe("the waterfall of a Run", () => {
  it("draws the tree in order, with durations, tokens, cost, tries, waits and faults", () => {
    expect(drawn(110).map((line) => line.replaceAll(/ *█+ */g, "  ").trimEnd())).toEqual([
      "Where the time went",
      "  invoke_agent boss             24 h 0 min",
      "    invoke_agent boss               2.50 s",
      "      chat m                        2.00 s  10 in, 5 out, $0.0123, 3 tries",
      "    wait approval              23 h 59 min",
      "    invoke_agent boss               4.50 s",
      "✗     execute_tool act              3.00 s  Broken",
      "      execute_tool ask_helper       4.00 s",
      "        invoke_agent helper         3.50 s",
      "          chat m                    1.00 s  7 in, 5 out",
      "  model 3.00 s (2), tools 2.00 s (1), waits 23 h 59 min (1), the rest 2.00 s"
    ])
  })

  it("is no wider than the terminal, and leaves the bars out where there is no room", () => {
    for (const columns of [50, 80, 100, 200])
      for (const line of drawn(columns).slice(1, -1)) expect(line.length).toBeLessThanOrEqual(Math.max(columns, 46))
    expect(drawn(60).join("")).not.toContain("█")
    expect(drawn(120).join("")).toContain("█")
  })

  it("has colours only where they are asked for", () => {
    expect(drawn(120).join("")).not.toContain("\u001b")
    expect(drawn(120, Style.colours).join("")).toContain("\u001b[36m")
  })

  it("counts each moment once, for the model before tools before waits", () => {
    const whole = TimeSpent.sums(spans).reduce((sum, { millis }) => sum + millis, 0)
    expect(whole).toBe(day + 4500)
  })

  it("draws a wait of a day no longer than a quarter", () => {
    const at = TimeSpent.scale(spans)
    expect(at(0)).toBe(0)
    expect(at(day) - at(2500)).toBeCloseTo(0.25)
    expect(at(day + 4500)).toBeCloseTo(1)
  })

  it("says nothing of a Run that has not begun", () => {
    expect(Waterfall.lines([], { columns: 80, style: Style.plain })).toEqual([])
  })
})
