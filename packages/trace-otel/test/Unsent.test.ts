import { describe, expect, it } from "@effect/vitest"
import { CheckpointStore, MemoryStore, Run } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as KeyValueStore from "effect/persistence/KeyValueStore"
import type * as OtelTrace from "../src/OtelTrace.ts"
import * as Trace from "../src/Trace.ts"
import { approveAll, both, cast, done, lead } from "./support/Family.ts"
import { agent, makeExporter, plain, plainOf, start, tracing, world } from "./support/Runs.ts"

const { call, calls, text } = ScriptedModel

const byId = (a: { readonly spanId: string }, b: { readonly spanId: string }) => (a.spanId < b.spanId ? -1 : 1)
const asks = [calls([call("work", { n: 1 }), call("act", {})])]

/** One store and one place for notes, and lives of processes over them, each with a back end as it finds it. */
const lives = Effect.gen(function* () {
  const context = yield* Layer.build(KeyValueStore.layerMemory)
  const unsent = Context.get(context, KeyValueStore.KeyValueStore)
  const store = Layer.succeed(CheckpointStore.CheckpointStore, yield* MemoryStore.make)
  const life = <A, E>(
    effect: Effect.Effect<A, E, CheckpointStore.CheckpointStore | Trace.TraceDestination>,
    { refuse = 0, ...options }: Partial<OtelTrace.JoinOptions> & { readonly refuse?: number } = {}
  ) => {
    const { exporter, spans } = makeExporter(refuse)
    const traced = Layer.provideMerge(tracing({ exporter, unsent, patience: "50 millis", ...options }), store)
    return Effect.as(Effect.provide(effect, traced), spans)
  }
  const rebuilt = Effect.provide(Trace.tree("r"), store)
  return { life, rebuilt, unsent }
})

const approve = Effect.gen(function* () {
  const { waiting } = yield* Run.get("r")
  for (const { digest = "", id } of waiting)
    yield* Run.answer(agent, { runId: "r", callId: id, by: "ann", answer: { _tag: "Approve", digest } })
})
const goOn = Effect.andThen(approve, Effect.provide(Run.resume(agent, { runId: "r" }), world([text("done")])))
const begin = Effect.provide(start("r"), world(asks))

describe("Unsent", () => {
  it.live("U1 what a life could not send, the next one that drives the Run sends with its own, and once", () =>
    Effect.gen(function* () {
      const { life, rebuilt, unsent } = yield* lives
      expect(yield* life(begin, { refuse: Infinity })).toEqual([])
      expect(yield* unsent.size).toBe(1)
      const spans = yield* life(goOn)
      expect(spans.map(plain).toSorted(byId)).toEqual((yield* rebuilt).map(plainOf).toSorted(byId))
      expect(yield* unsent.size).toBe(0)
    })
  )

  it.live("U1 what was taken is not sent again, and what two lives could not send, the third does", () =>
    Effect.gen(function* () {
      const twice = yield* lives
      const first = yield* twice.life(begin)
      expect(yield* twice.unsent.size).toBe(0)
      const second = yield* twice.life(goOn)
      const all = (yield* twice.rebuilt).map(plainOf)
      expect([...first, ...second].map(plain).toSorted(byId)).toEqual(all.toSorted(byId))
      const { life, rebuilt } = yield* lives
      const wait = Effect.andThen(approve, Effect.provide(Run.resume(agent, { runId: "r" }), world(asks)))
      yield* life(begin, { refuse: Infinity })
      yield* life(wait, { refuse: Infinity })
      const spans = yield* life(goOn)
      expect(spans.map(plain).toSorted(byId)).toEqual((yield* rebuilt).map(plainOf).toSorted(byId))
    })
  )

  it.live("U1 whoever cancels a Run that waits sends what was left of it, too", () =>
    Effect.gen(function* () {
      const { life, rebuilt, unsent } = yield* lives
      yield* life(begin, { refuse: Infinity })
      const spans = yield* life(Run.cancel({ runId: "r" }))
      expect(spans.map(plain).toSorted(byId)).toEqual((yield* rebuilt).map(plainOf).toSorted(byId))
      expect(yield* unsent.size).toBe(0)
    })
  )

  it.live("U1 what was left of a tree is sent with all below it", () =>
    Effect.gen(function* () {
      const script = cast({ lead: [both("t"), done], ann: [done], bob: [call("act", {}), done] })
      const { life, rebuilt } = yield* lives
      yield* life(Effect.provide(Run.start(lead, { runId: "r", task: "go" }), world(script)), { refuse: Infinity })
      const on = Effect.andThen(approveAll("r"), Effect.provide(Run.resume(lead, { runId: "r" }), world(script)))
      const spans = yield* life(on)
      expect(spans.map(plain).toSorted(byId)).toEqual((yield* rebuilt).map(plainOf).toSorted(byId))
    })
  )

  it.live("U1 a Run that the sampler drops leaves no note, and within one life nothing is sent twice", () =>
    Effect.gen(function* () {
      const { life, unsent } = yield* lives
      yield* life(Effect.provide(start("r"), world([text("done")])), { sampling: { ratio: 0 } })
      expect(yield* unsent.size).toBe(0)
      const one = yield* lives
      const spans = yield* one.life(Effect.andThen(begin, goOn), { refuse: 1, patience: "10 seconds" })
      expect(spans.map(plain).toSorted(byId)).toEqual((yield* one.rebuilt).map(plainOf).toSorted(byId))
      expect(yield* one.unsent.size).toBe(0)
    })
  )
})
