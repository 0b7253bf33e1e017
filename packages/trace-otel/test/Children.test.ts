import { describe, expect, it } from "@effect/vitest"
import { CheckpointStore, MemoryStore, Run, ToolError } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import * as AiError from "effect/ai/AiError"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Tracer from "effect/Tracer"
import type * as OtelTrace from "../src/OtelTrace.ts"
import * as Trace from "../src/Trace.ts"
import type { FinishedSpan } from "../src/FinishedSpan.ts"
import { violations } from "./support/Conventions.ts"
import { approveAll, both, cast, done, lead } from "./support/Family.ts"
import { exported } from "./support/Otlp.ts"
import { makeExporter, plain, plainOf, tracing, world } from "./support/Runs.ts"

const { call, calls } = ScriptedModel

const work = call("work", { n: 1 })
const act = call("act", {})
const simple = cast({ lead: [both("t"), done], ann: [work, done], bob: [work, done] })
/** Ann has ended when the tree rests, Bob waits for a person. */
const asking = cast({ lead: [both("t"), work, done], ann: [work, done], bob: [act, done] })
const start = Run.start(lead, { runId: "r", task: "go" })
const resume = Run.resume(lead, { runId: "r" })
const tree = ["r", "r.t1.0", "r.t1.1"]
const byId = (a: { readonly spanId: string }, b: { readonly spanId: string }) => (a.spanId < b.spanId ? -1 : 1)

/** One store, and lives of processes over it that export to the same back end. */
const lives = (refuse = 0) =>
  Effect.gen(function* () {
    const { exporter, spans, state } = makeExporter(refuse)
    const store = Layer.succeed(CheckpointStore.CheckpointStore, yield* MemoryStore.make)
    const life = <A, E>(
      effect: Effect.Effect<A, E, CheckpointStore.CheckpointStore | Trace.TraceDestination>,
      options: Partial<OtelTrace.JoinOptions> = {}
    ) => Effect.provide(effect, Layer.provideMerge(tracing({ exporter, ...options }), store))
    const rebuilt = (ids: ReadonlyArray<string> = tree) =>
      Effect.provide(
        Effect.map(
          Effect.forEach(ids.toReversed(), (runId) => Trace.spans(runId)),
          (all) => all.flat()
        ),
        store
      )
    return { life, rebuilt, spans, state, store }
  })

const same = (spans: ReturnType<typeof makeExporter>["spans"], rebuilt: ReadonlyArray<FinishedSpan>) =>
  expect(spans.map(plain).toSorted(byId)).toEqual(rebuilt.map(plainOf).toSorted(byId))

describe("sub-agents", () => {
  it.live("L1 two at once are in one trace, each under its call, live as rebuilt from the journals", () =>
    Effect.gen(function* () {
      const { life, rebuilt, spans } = yield* lives()
      yield* life(Effect.provide(start, world(simple)))
      const stored = yield* rebuilt()
      same(spans, stored)
      expect(violations([exported(stored)], { semconv: "latest" })).toEqual([])
      const under = (name: string) => {
        const parent = stored.find((span) => span.name === name)?.parentId
        return stored.find(({ spanId }) => spanId === parent)?.name
      }
      expect(under("invoke_agent ann")).toBe("execute_tool ask_ann")
      expect(under("invoke_agent bob")).toBe("execute_tool ask_bob")
      expect(stored.filter(({ name }) => name === "execute_tool work").length).toBe(2)
    })
  )

  it.live("RI-154 of a Run that is started in a span, those below are in its trace, under their calls", () =>
    Effect.gen(function* () {
      const { life, rebuilt, spans } = yield* lives()
      const caller = { traceId: "a".repeat(32), spanId: "b".repeat(16), sampled: true }
      yield* life(Effect.withParentSpan(Effect.provide(start, world(simple)), Tracer.externalSpan(caller)))
      same(spans, yield* rebuilt())
      const all = spans.map(plain)
      expect(new Set(all.map(({ traceId }) => traceId))).toEqual(new Set([caller.traceId]))
      const ids = new Set([caller.spanId, ...all.map(({ spanId }) => spanId)])
      expect(all.filter(({ parentId = "" }) => !ids.has(parentId))).toEqual([])
    })
  )

  it.live("G1 of a tree that waits and is resumed, all is sent once, in one process and in two", () =>
    Effect.gen(function* () {
      for (const apart of [true, false]) {
        const { life, rebuilt, spans } = yield* lives()
        const first = Effect.provide(start, world(asking))
        const second = Effect.andThen(approveAll("r"), Effect.provide(resume, world(asking)))
        if (apart) yield* Effect.andThen(life(first), life(second))
        else yield* life(Effect.andThen(first, second))
        const stored = yield* rebuilt()
        same(spans, stored)
        expect(violations([exported(stored)], { semconv: "latest" })).toEqual([])
      }
    })
  )

  it.live("G1 what sub-agents did in a segment that was dropped is sent when a later one is kept, once", () =>
    Effect.gen(function* () {
      for (const refuse of [0, 2]) {
        const { life, rebuilt, spans } = yield* lives(refuse)
        const options = { sampling: { ratio: 0 } }
        yield* life(Effect.provide(start, world(asking)), options)
        expect(spans).toEqual([])
        yield* life(Effect.andThen(approveAll("r"), Effect.provide(resume, world(asking))), options)
        same(spans, yield* rebuilt())
      }
    })
  )

  it.live("G1 a fault of one sub-agent keeps all of its tree, and without one nothing is kept", () =>
    Effect.gen(function* () {
      const options = { sampling: { ratio: 0 } }
      const good = yield* lives()
      yield* good.life(Effect.provide(start, world(simple)), options)
      expect(good.spans).toEqual([])
      const bad = yield* lives(3)
      const script = cast({ lead: [both("t"), done], ann: [done], bob: [call("nothing", {}), done] })
      yield* bad.life(Effect.provide(start, world(script)), { ...options, maxHeld: 6 })
      same(bad.spans, yield* bad.rebuilt())
    })
  )

  it.live("a tree that waits and is cancelled from outside is sent to its end by whoever cancels it", () =>
    Effect.gen(function* () {
      for (const [script, ids] of [
        [asking, tree],
        [cast({ lead: [act] }), ["r"]]
      ] as const) {
        const { life, rebuilt, spans } = yield* lives()
        yield* life(Effect.provide(start, world(script)))
        yield* life(Run.cancel({ runId: "r", reason: "no need" }))
        const stored = yield* rebuilt(ids)
        same(spans, stored)
        expect(stored.at(-1)?.attributes["waystone.outcome"]).toBe("Cancelled")
        expect(violations([exported(stored)], { semconv: "latest" })).toEqual([])
      }
    })
  )

  it.live("Trace.export sends a Run and all below it, whatever was sampled", () =>
    Effect.gen(function* () {
      const { life, rebuilt, spans } = yield* lives()
      const options = { sampling: { ratio: 0 } }
      yield* life(Effect.provide(start, world(simple)), options)
      const sent = yield* life(Trace.export("r"), options)
      const stored = yield* rebuilt()
      expect(sent).toBe(stored.length)
      same(spans, stored)
    })
  )

  it.live("RI-145 with content off nothing of a canary goes out of sub-agents, and with redaction neither", () =>
    Effect.gen(function* () {
      const secret = "SENTINEL-123"
      const script = cast({
        lead: [both(secret), ScriptedModel.text(secret)],
        ann: [calls([call("work", { n: secret }), call(`no_${secret}`, {})]), ScriptedModel.text(secret)],
        bob: [ScriptedModel.fail(new AiError.InvalidRequestError({ description: secret }))]
      })
      const told = (content: OtelTrace.JoinOptions["content"]) =>
        Effect.gen(function* () {
          const { life, spans } = yield* lives()
          const run = Run.start(lead, { runId: "r", task: secret })
          const bad = () => ToolError.retryable(secret)
          yield* life(Effect.exit(Effect.provide(run, world(script, bad))), { content: content ?? false })
          expect(spans.length).toBeGreaterThan(8)
          return JSON.stringify(spans.map(({ attributes, events, name, status }) => [attributes, events, name, status]))
        })
      expect(yield* told(false)).not.toContain(secret)
      expect((yield* told(true)).split(secret).length).toBeGreaterThan(8)
      const redacted = yield* told({ redact: (text) => text.replaceAll(secret, "***") })
      expect(redacted).not.toContain(secret)
      expect(redacted).toContain("***")
    })
  )
})
