import { describe, expect, it } from "@effect/vitest"
import type { RunEvent } from "@waystone/core"
import type { FinishedSpan } from "../src/FinishedSpan.ts"
import { Folding } from "../src/Folding.ts"
import * as SpanIds from "../src/SpanIds.ts"
import * as Writing from "../src/Writing.ts"
import { violations } from "./support/Conventions.ts"
import { exported } from "./support/Otlp.ts"
import { entriesOf, finished, spansOf, story } from "./support/Stories.ts"

const providers = { unknown: "openai", ollama: "openai" }
const named = (spans: ReadonlyArray<FinishedSpan>, name: string) => spans.filter((span) => span.name.startsWith(name))
const shape = (spans: ReadonlyArray<FinishedSpan>) => {
  const name = (id: string | undefined) => spans.find(({ spanId }) => spanId === id)?.name ?? "-"
  return spans.map((span) => `${span.name} < ${name(span.parentId)}`)
}

const at = 1_700_000_000_000
const first: ReadonlyArray<RunEvent.RunEvent> = [
  { _tag: "RunAccepted", at, agent: "child", version: "1", task: "look" },
  { _tag: "RunStarted", at, agent: "child", version: "1", tools: {}, plugins: [] },
  { _tag: "AttemptStarted", at: at + 1, attempt: 1, owner: "a", recovered: false }
]
const done: RunEvent.RunEvent = { _tag: "RunFinished", at: at + 9, outcome: { _tag: "Completed", output: "x" } }
const suspended: RunEvent.RunEvent = { _tag: "RunSuspended", at: at + 5 }
const second: RunEvent.RunEvent = { _tag: "AttemptStarted", at: at + 8, attempt: 2, owner: "b", recovered: false }

describe("Folding", () => {
  describe.each(["latest", "v1.41"] as const)("%s", (semconv) => {
    it.each(finished)("every story of a finished Run keeps to the conventions: %s", (number) => {
      for (const content of [false, true]) {
        const found = violations([exported(spansOf(story(number), { semconv, content, providers }))], {
          semconv,
          content
        })
        // A Run that is reopened goes on after its end, and so does its last attempt.
        expect(found.filter((one) => number !== "09" || !one.includes("outside of its parent"))).toEqual([])
      }
    })
  })

  it.each([...finished, "07", "10"])(
    "F1 the same events give the same spans, folded at once or event by event: %s",
    (number) => {
      expect(spansOf(story(number))).toEqual(spansOf(story(number)))
      expect(spansOf(story(number))[0]?.spanId).not.toBe(spansOf(story(number), {}, "other")[0]?.spanId)
    }
  )

  it("a Run of one attempt is one tree of calls side by side", () => {
    expect(shape(spansOf(story("02")))).toEqual([
      expect.stringMatching(/^chat .* < invoke_agent/),
      expect.stringMatching(/^execute_tool .* < invoke_agent/),
      expect.stringMatching(/^chat .* < invoke_agent/),
      expect.stringMatching(/^invoke_agent \S+ < -$/)
    ])
  })

  it("F2 a Run that rested has a span above its attempts, linked, and one for the time that it waited", () => {
    const spans = spansOf(story("04"))
    const attempts = named(spans, "invoke_agent").filter(({ attributes }) => "waystone.attempt" in attributes)
    const root = spans.at(-1)
    expect(attempts.map(({ parentId }) => parentId)).toEqual([root?.spanId, root?.spanId])
    expect(attempts[1]?.links.map(({ spanId }) => spanId)).toEqual([attempts[0]?.spanId])
    const [wait] = named(spans, "wait")
    expect(wait).toMatchObject({
      name: "wait approval",
      parentId: root?.spanId,
      start: attempts[0]?.end,
      end: attempts[1]?.start
    })
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1)
  })

  it("F3 calls that a crash cut off are lost in the first attempt and have a span of their own in the second", () => {
    const spans = spansOf(story("03"))
    const tools = named(spans, "execute_tool").map(({ attributes, failed }) => [
      attributes["gen_ai.tool.call.id"],
      attributes["waystone.tool.ending"],
      failed !== undefined
    ])
    expect(tools).toEqual([
      ["t1.2", "executed", false],
      ["t1.0", "lost", true],
      ["t1.1", "lost", true],
      ["t1.1", "reconciled", false],
      ["t1.0", "executed", false]
    ])
    expect(named(spans, "invoke_agent").map(({ attributes }) => attributes["waystone.outcome"])).toEqual([
      "Lost",
      "Completed",
      "Completed"
    ])
  })

  it("F3 the number of chat spans is that of turns begun, lost and failed ones included", () => {
    for (const number of finished) {
      const entries = story(number)
      const begun = entries.filter(({ event }) => event._tag === "TurnStarted" || event._tag === "CompactionStarted")
      expect(named(spansOf(entries), "chat").length, number).toBe(begun.length)
    }
  })

  it("F4 a fork has its own trace without what it inherited, and a link to the original", () => {
    const entries = story("11")
    expect(spansOf(entries)).toEqual([])
    const last = entries.at(-1)?.event.at ?? 0
    const further = entriesOf([
      ...entries.map(({ event }) => event),
      { ...second, attempt: 1, at: last + 10 },
      { ...done, at: last + 20 }
    ])
    const [root, ...others] = spansOf(further, {}, "fork")
    expect(others).toEqual([])
    const { from } = entries.map(({ event }) => event).find((event) => event._tag === "RunForked") ?? {}
    expect(root?.links).toEqual([
      expect.objectContaining({
        spanId: SpanIds.attempt(from?.runId ?? "", 2),
        attributes: { "waystone.link": "forked_from" }
      })
    ])
  })

  it("the attempts of a sub-agent stand under the calls of their parent, in the trace of the root", () => {
    const parent = { runId: "p", callId: "t1.0", rootId: "root", depth: 1, agents: ["a", "child"] }
    const [accepted, ...rest] = first
    const child = [{ ...accepted, parent } as RunEvent.RunEvent, ...rest, suspended, second, done]
    const spans = spansOf(entriesOf(child), {}, "c")
    expect(spans.map(({ name, parentId }) => [name, parentId])).toEqual([
      ["invoke_agent child", SpanIds.call("p", "t1.0", 1)],
      ["invoke_agent child", SpanIds.call("p", "t1.0", 2)]
    ])
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([SpanIds.traceId("root")]))
  })

  it("RI-154 whoever started the Run is the parent of what stands above all, and the trace is theirs", () => {
    const caller = { traceId: "a".repeat(32), spanId: "b".repeat(16), sampled: true }
    const [accepted, started, attempt] = first
    if (accepted === undefined || started === undefined || attempt?._tag !== "AttemptStarted") throw new Error("story")
    const called = [accepted, started, { ...attempt, caller }]
    const [alone] = spansOf(entriesOf([...called, done]))
    expect(alone).toMatchObject({ traceId: caller.traceId, parentId: caller.spanId })
    const resumed = { ...second, caller: { ...caller, traceId: "c".repeat(32) } } as RunEvent.RunEvent
    const spans = spansOf(entriesOf([...called, suspended, resumed, done]))
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([caller.traceId]))
    expect(spans.at(-1)).toMatchObject({ name: "invoke_agent child", parentId: caller.spanId })
    expect(spans.flatMap(({ links }) => links).map(({ attributes }) => attributes["waystone.link"])).toEqual([
      "previous_attempt",
      "caller"
    ])
  })

  it("RI-049 a Run with too many calls keeps its first ones, and its agent's span says how many were cut", () => {
    const folding = new Folding("r", Writing.make({ maxSpans: 2 }))
    const taken = story("13").map((entry) => folding.take(entry))
    const spans = taken.flatMap(({ spans }) => spans)
    expect(named(spans, "chat").length + named(spans, "execute_tool").length).toBe(2)
    expect(taken.flatMap(({ cut }) => cut).length).toBe(6)
    expect(spans.at(-1)?.attributes).toMatchObject({ "waystone.trace.truncated": true, "waystone.trace.spans_cut": 6 })
  })

  it("a tool that the agent does not have is not named: a model can invent any name", () => {
    const events: ReadonlyArray<RunEvent.RunEvent> = [
      ...first,
      { _tag: "TurnStarted", at: at + 2, turn: 1, stream: false },
      {
        _tag: "TurnCompleted",
        at: at + 3,
        turn: 1,
        reply: [{ type: "tool-call", id: "1", name: "SENTINEL", params: {}, providerExecuted: false }],
        finish: "tool-calls",
        usage: { input: 1, cacheRead: 2, cacheWrite: 3, output: 4, reasoning: 5 }
      },
      {
        _tag: "ToolCallCompleted",
        at: at + 4,
        callId: "t1.0",
        name: "SENTINEL",
        isFailure: true,
        result: {},
        ending: "invalid"
      },
      done
    ]
    const spans = spansOf(entriesOf(events))
    expect(JSON.stringify(spans)).not.toContain("SENTINEL")
    expect(named(spans, "execute_tool")[0]).toMatchObject({ name: "execute_tool _OTHER", failed: {} })
    expect(named(spans, "chat")[0]?.attributes).toMatchObject({
      "gen_ai.usage.input_tokens": 6,
      "gen_ai.usage.output_tokens": 9,
      "gen_ai.usage.cache_read.input_tokens": 2,
      "gen_ai.usage.cache_write.input_tokens": 3,
      "gen_ai.usage.reasoning.output_tokens": 5,
      "gen_ai.response.finish_reasons": ["tool_calls"]
    })
  })
})
