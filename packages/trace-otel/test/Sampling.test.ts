import { describe, expect, it } from "@effect/vitest"
import { MemoryStore, type Observer, RunEvent } from "@waystone/core"
import * as Effect from "effect/Effect"
import type { FinishedSpan } from "../src/FinishedSpan.ts"
import { Foreign } from "../src/Foreign.ts"
import { faultless } from "../src/Faults.ts"
import { Held } from "../src/Held.ts"
import * as Live from "../src/Live.ts"
import * as Sampling from "../src/Sampling.ts"
import * as Segments from "../src/Segments.ts"
import type { Parcel } from "../src/Sender.ts"
import * as SpanIds from "../src/SpanIds.ts"
import { Traces } from "../src/Traces.ts"
import * as Unsent from "../src/Unsent.ts"
import * as Writing from "../src/Writing.ts"
import { entriesOf } from "./support/Stories.ts"

const at = 1_700_000_000_000
const usage = { input: 1, cacheRead: 0, cacheWrite: 0, output: 1, reasoning: 0 }

/** A Run of one turn and one call. */
const journal = (faulty: boolean): ReadonlyArray<Observer.Entry> =>
  entriesOf([
    { _tag: "RunAccepted", at, agent: "a", version: "1", task: "t" },
    { _tag: "RunStarted", at, agent: "a", version: "1", tools: {}, plugins: [] },
    { _tag: "AttemptStarted", at, attempt: 1, owner: "o", recovered: false },
    { _tag: "TurnStarted", at, turn: 1, stream: false },
    {
      _tag: "TurnCompleted",
      at: at + 1,
      turn: 1,
      reply: [{ type: "tool-call", id: "1", name: "x", params: {}, providerExecuted: false }],
      finish: "tool-calls",
      usage
    },
    {
      _tag: "ToolCallCompleted",
      at: at + 2,
      callId: "t1.0",
      name: "x",
      isFailure: faulty,
      result: {},
      ending: "executed"
    },
    { _tag: "RunFinished", at: at + 3, outcome: { _tag: "Completed", output: "x" } }
  ])

const spansOfRun = 3

const live = (maxHeld: number) =>
  Effect.gen(function* () {
    const parcels: Array<Parcel> = []
    const held = new Held(maxHeld)
    const store = yield* MemoryStore.make
    const source = { store, writing: Writing.make({}), sampler: Sampling.make({ ratio: 0 }) }
    const traces = new Traces({
      foreign: new Foreign(held),
      held,
      sampler: source.sampler,
      deliver: (parcel) => parcels.push(parcel)
    })
    const observer = Live.observer({ ...source, traces, held, unsent: Unsent.nowhere, measure: () => {} })
    const open = (runId: string) => observer.attempt({ runId, agent: "a", attempt: 1 })
    return { parcels, held, store, source, open }
  })

describe("Sampling", () => {
  it.effect("S1 of 10,000 Runs at ratio 0 exactly the faulty ones are kept, complete", () =>
    Effect.gen(function* () {
      const { held, open, parcels } = yield* live(1000)
      for (let i = 0; i < 10_000; i++) {
        const run = Effect.gen(function* () {
          const handle = yield* open(`r${i}`)
          for (const entry of journal(i % 100 === 0)) yield* handle(entry)
        })
        yield* Effect.scoped(run)
        // As a sender does that has delivered.
        held.give(held.size)
      }
      expect(parcels.map(({ runId }) => runId)).toEqual(Array.from({ length: 100 }, (_, i) => `r${i * 100}`))
      expect(parcels.every(({ spans }) => spans?.length === spansOfRun)).toBe(true)
    })
  )

  it.effect(
    "L3 with 10,000 open Runs no more spans are held than there is room for, and those that turn out faulty are whole",
    () =>
      Effect.gen(function* () {
        const { held, open, parcels, source, store } = yield* live(500)
        yield* Effect.scoped(
          Effect.gen(function* () {
            const ends: Array<Effect.Effect<void>> = []
            for (let i = 0; i < 10_000; i++) {
              const handle = yield* open(`r${i}`)
              const entries = journal(i % 1000 === 999)
              for (const entry of entries.slice(0, -1)) yield* handle(entry)
              expect(held.size).toBeLessThanOrEqual(500)
              const last = entries.at(-1)
              if (last !== undefined) ends.push(handle(last))
            }
            for (const end of ends) yield* end
          })
        )
        expect(parcels.map(({ runId }) => runId)).toEqual(Array.from({ length: 10 }, (_, i) => `r${i * 1000 + 999}`))
        expect(held.cutRuns).toBeGreaterThan(9000)
        const [first] = parcels
        expect(first?.spans).toBeUndefined()
        const events = journal(true).map(({ event }) => RunEvent.encode(event))
        const head = { status: "completed", agent: "a", waiting: [], updatedAt: at, body: "{}" }
        yield* store.append({ runId: "r999", epoch: 0, expectedSeq: 0, events, head })
        const spans = yield* Segments.unsent(source, "r999", first?.upTo ?? 0)
        expect(spans.length).toBe(spansOfRun)
      })
  )

  const seen = { ...faultless, from: 0, to: 1000, costNanoUsd: 5e8 }
  it.each([
    ["failed", { failed: true }],
    ["stopped", { stopped: true }],
    ["denied", { denied: true }],
    ["in doubt", { inDoubt: true }],
    ["resumed", { resumed: true }],
    ["slower", { to: 60_001 }],
    ["dearer", { costNanoUsd: 1e9 + 1 }]
  ])("S1 a Run is kept that is %s", (_, fault) => {
    const keeps = Sampling.make({ ratio: 0, slowerThan: "1 minute", dearerThanUsd: 1 })
    expect(keeps("0".repeat(32), { ...seen, ...fault })).toBe(true)
    expect(keeps("0".repeat(32), seen)).toBe(false)
  })

  it("the ratio is that of the Runs that are kept, and whose caller is not recorded is not", () => {
    const keeps = Sampling.make({ ratio: 0.25 })
    const kept = Array.from({ length: 10_000 }, (_, i) => SpanIds.traceId(`r${i}`)).filter((id) => keeps(id, seen))
    expect(kept.length).toBeGreaterThan(2300)
    expect(kept.length).toBeLessThan(2700)
    expect(Sampling.make({ ratio: 1 })("f".repeat(32), { ...seen, unsampled: true })).toBe(false)
  })

  it("L2 spans of others in a trace go the way of their Run, also those that end later", () => {
    const gone: Array<string> = []
    const span = (traceId: string, name: string) =>
      ({ name, spanContext: () => ({ traceId, spanId: "1", traceFlags: 1 }) }) as Parameters<Foreign["onEnd"]>[0]
    const inner = {
      onStart: () => {},
      onEnd: ({ name }: { readonly name: string }) => void gone.push(name),
      forceFlush: () => Promise.resolve(),
      shutdown: () => Promise.resolve()
    }
    const held = new Held(2)
    const foreign = new Foreign(held, inner)
    for (const [id, kept] of [
      ["a", true],
      ["b", false]
    ] as const) {
      foreign.open(id)
      foreign.onEnd(span(id, `${id} inside`))
      expect(gone.some((name) => name.startsWith(id))).toBe(false)
      foreign.close(id, kept)
      foreign.onEnd(span(id, `${id} later`))
    }
    foreign.onEnd(span("c", "no run"))
    expect(gone).toEqual(["a inside", "a later", "no run"])
    foreign.open("d")
    for (const n of [1, 2, 3]) foreign.onEnd(span("d", `d${n}`))
    expect([held.size, held.lostSpans]).toEqual([2, 1])
  })

  it("L2 a sub-agent's fault keeps the whole trace, and it is decided when the last Run of it has ended", () => {
    const delivered: Array<string> = []
    const held = new Held(10)
    const sampler = Sampling.make({ ratio: 0 })
    const traces = new Traces({
      foreign: new Foreign(held),
      held,
      sampler,
      deliver: ({ runId, spans = [] }) => delivered.push(`${runId}: ${spans.map(({ name }) => name).join(" ")}`)
    })
    const ended = (runId: string, rootId: string, failed: boolean) => {
      const span: FinishedSpan = { ...blank, name: runId }
      held.take(1)
      return {
        runId,
        rootId,
        upTo: 1,
        faults: { ...seen, failed },
        spans: [span],
        later: false,
        calls: runId === rootId
      }
    }
    // Its observer may be the first to hear of anything.
    traces.enter("b", "t", false)
    traces.leave("b", ended("b", "root", false))
    expect(delivered).toEqual([])
    traces.enter("root", "t", true)
    traces.enter("a", "t", false)
    traces.leave("a", ended("a", "root", true))
    expect(delivered).toEqual([])
    traces.leave("root", ended("root", "root", false))
    expect(delivered).toEqual(["root: a b root"])
    expect(held.size).toBe(3)
    traces.enter("other", "u", true)
    traces.leave("other", ended("other", "other", false))
    expect(delivered.length).toBe(1)
    expect(held.size).toBe(3)
  })
})

const blank: FinishedSpan = {
  traceId: "t",
  spanId: "s",
  name: "",
  kind: "internal",
  start: 0,
  end: 1,
  attributes: {},
  events: [],
  links: []
}
