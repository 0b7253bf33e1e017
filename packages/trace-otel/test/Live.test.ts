import { describe, expect, it } from "@effect/vitest"
import { CheckpointStore, MemoryStore, Run } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import * as Tracer from "effect/Tracer"
import * as OtelTrace from "../src/OtelTrace.ts"
import * as SpanIds from "../src/SpanIds.ts"
import * as Trace from "../src/Trace.ts"
import { agent, makeExporter, plain, plainOf, start, traced, tracing, world } from "./support/Runs.ts"

const { call, calls, text } = ScriptedModel

const simple = [call("work", { n: 1 }), text("done")]
const asking = [calls([call("work", { n: 1 }), call("act", {})]), text("done")]
const bad = () => Effect.fail("broken")
const byId = (a: { readonly spanId: string }, b: { readonly spanId: string }) => (a.spanId < b.spanId ? -1 : 1)

const approved = Effect.gen(function* () {
  const { waiting } = yield* Run.get("r")
  for (const { digest, id, kind } of waiting)
    if (kind === "approval")
      yield* Run.answer(agent, { runId: "r", callId: id, by: "ann", answer: { _tag: "Approve", digest } })
})

/** A Run that waits for a person and goes on. */
const waits = Effect.gen(function* () {
  yield* start("r")
  yield* approved
  yield* Run.resume(agent, { runId: "r" })
})

describe("Live", () => {
  it.live(
    "L1 what is exported live is what is rebuilt from the journal, span by span, waits and attempts included",
    () =>
      Effect.gen(function* () {
        const { exporter, spans } = makeExporter()
        const rebuilt = yield* Effect.provide(
          Effect.andThen(Effect.provide(waits, world(asking)), Trace.spans("r")),
          traced({ exporter })
        )
        expect(rebuilt.length).toBe(8)
        expect(spans.map(plain).toSorted(byId)).toEqual(rebuilt.map(plainOf).toSorted(byId))
      })
  )

  it.live("Trace.export sends a stored Run again with the same ids, whatever was sampled", () =>
    Effect.gen(function* () {
      const { exporter, spans } = makeExporter()
      const sent = yield* Effect.provide(
        Effect.andThen(Effect.provide(start("r"), world(simple)), Trace.export("r")),
        traced({ exporter, sampling: { ratio: 0 } })
      )
      expect(sent).toBe(4)
      expect(spans.map(({ name }) => name)).toEqual([
        "chat gpt",
        "execute_tool work",
        "chat gpt",
        "invoke_agent worker"
      ])
      const unknown = yield* Effect.provide(Effect.flip(Trace.export("other")), traced({ exporter }))
      expect(unknown._tag).toBe("RunNotFound")
    })
  )

  it.live("RI-049 with ratio 0 exactly the Runs that failed are exported, complete", () =>
    Effect.gen(function* () {
      const { exporter, spans } = makeExporter()
      const runs = Effect.gen(function* () {
        for (let i = 0; i < 10; i++) yield* Effect.provide(start(`ok-${i}`), world(simple))
        yield* Effect.provide(start("bad"), world(simple, bad))
      })
      yield* Effect.provide(runs, traced({ exporter, sampling: { ratio: 0 } }))
      expect(new Set(spans.map((span) => span.attributes["waystone.run.id"]))).toEqual(new Set(["bad"]))
      expect(spans.length).toBe(4)
    })
  )

  it.live("RI-049 the spans of a Run that there was no room for are read from the journal if it is kept", () =>
    Effect.gen(function* () {
      const { exporter, spans } = makeExporter()
      const long = [calls(Array.from({ length: 8 }, (_, n) => call("work", { n }))), text("done")]
      const { held, rebuilt } = yield* Effect.provide(
        Effect.gen(function* () {
          yield* Effect.provide(start("long"), world(long, bad))
          yield* Effect.provide(start("dropped"), world(long))
          return { held: (yield* OtelTrace.OtelTrace).held, rebuilt: yield* Trace.spans("long") }
        }),
        traced({ exporter, maxHeld: 5, sampling: { ratio: 0 } })
      )
      expect(rebuilt.length).toBeGreaterThan(8)
      expect(spans.map(plain)).toEqual(rebuilt.map(plainOf))
      expect(held.cutRuns).toBe(2)
      expect(held.size).toBe(0)
    })
  )

  it.live("L2 a Run whose first segment was dropped and whose second fails is kept whole, from the journal", () =>
    Effect.gen(function* () {
      const { exporter, spans } = makeExporter()
      const store = yield* MemoryStore.make
      const shared = Layer.succeed(CheckpointStore.CheckpointStore, store)
      const options = { exporter, sampling: { ratio: 0 } }
      const process = <A, E>(effect: Effect.Effect<A, E, CheckpointStore.CheckpointStore>) =>
        Effect.provide(effect, Layer.provideMerge(tracing(options), shared))
      const whole = Effect.gen(function* () {
        yield* process(start("r").pipe(Effect.provide(world([asking[0] ?? text("")], () => Effect.succeed("ok")))))
        expect(spans).toEqual([])
        yield* process(approved)
        yield* process(Run.resume(agent, { runId: "r" }).pipe(Effect.provide(world([text("done")], bad))))
        return yield* Trace.spans("r")
      })
      const rebuilt = yield* Effect.provide(whole, shared)
      expect(spans.map(plain).toSorted(byId)).toEqual(rebuilt.map(plainOf).toSorted(byId))
    })
  )

  it.effect("X2 a back end that refuses 30 requests in a row loses no span in the end, and gets none twice", () =>
    Effect.gen(function* () {
      const { exporter, spans, state } = makeExporter(30)
      const runs = Effect.gen(function* () {
        for (let i = 0; i < 5; i++) yield* Effect.provide(start(`r${i}`), world(simple))
        const { held } = yield* OtelTrace.OtelTrace
        expect(held.size).toBeLessThanOrEqual(20)
        yield* Effect.sleep("5 minutes")
        expect(held.size).toBe(0)
      })
      const fiber = yield* Effect.forkChild(Effect.provide(runs, traced({ exporter })))
      for (let i = 0; i < 600; i++) {
        yield* Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
        yield* TestClock.adjust("1 second")
      }
      yield* Fiber.join(fiber)
      expect(state.requests).toBeGreaterThan(30)
      expect(spans.length).toBe(20)
      expect(new Set(spans.map((span) => span.spanContext().spanId)).size).toBe(20)
    })
  )

  it.live("X2 what was not taken when the program ends is named", () =>
    Effect.gen(function* () {
      const { exporter, spans } = makeExporter(Infinity)
      const run = Effect.provide(start("r"), world(simple))
      yield* Effect.provide(run, traced({ exporter, patience: "300 millis" }))
      expect(spans).toEqual([])
    })
  )

  it.live("RI-154 what runs inside a call stands under its span, in the trace of whoever started the Run", () =>
    Effect.gen(function* () {
      const { exporter, spans } = makeExporter()
      const caller = { traceId: "a".repeat(32), spanId: "b".repeat(16), sampled: true }
      const inside: Array<Tracer.AnySpan> = []
      const handler = () => Effect.map(Effect.orDie(Effect.currentParentSpan), (span) => inside.push(span))
      const run = Effect.withParentSpan(start("r"), Tracer.externalSpan(caller)).pipe(
        Effect.provide(world(simple, handler))
      )
      yield* Effect.provide(run, traced({ exporter }))
      expect(inside).toMatchObject([{ traceId: caller.traceId, spanId: SpanIds.call("r", "t1.0", 1) }])
      expect(spans.map((span) => span.spanContext().traceId)).toEqual(Array(4).fill(caller.traceId))
      expect(spans.map((span) => span.spanContext().spanId)).toContain(inside[0]?.spanId)
      expect(spans.at(-1)?.parentSpanContext?.spanId).toBe(caller.spanId)
    })
  )

  it.live("RI-145 effect/ai's own spans do not reach the application's tracer, and what is inside them does", () =>
    Effect.gen(function* () {
      const names: Array<string> = []
      const tracer = Tracer.make({
        span: (options) => {
          names.push(options.name)
          return Tracer.nativeTracer.span(options)
        }
      })
      const { exporter } = makeExporter()
      const handler = () => Effect.withSpan(Effect.succeed("ok"), "query")
      const run = Effect.provide(start("r"), world(simple, handler)).pipe(Effect.withTracer(tracer))
      yield* Effect.provide(run, traced({ exporter }))
      expect(names).toEqual(["query"])
    })
  )

  it.live("a resume goes on without tracing, and with it", () =>
    Effect.gen(function* () {
      const { exporter } = makeExporter()
      const store = yield* MemoryStore.make
      const shared = Layer.succeed(CheckpointStore.CheckpointStore, store)
      const first = Effect.provide(start("r"), world([asking[0] ?? text("")]))
      yield* Effect.provide(first, Layer.provideMerge(tracing({ exporter }), shared))
      const on = Effect.andThen(approved, Run.resume(agent, { runId: "r" }).pipe(Effect.provide(world([text("done")]))))
      expect(yield* Effect.provide(on, shared)).toMatchObject({ _tag: "Completed" })
    })
  )
})
