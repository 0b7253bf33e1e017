import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Tracer from "effect/Tracer"
import { Callers } from "../src/Caller.ts"
import * as MemoryStore from "../src/MemoryStore.ts"
import type { Parts } from "../src/Plugin.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import { eventsOf, only, plugged, ran, storeLayer } from "./support/tools.ts"

const span = { traceId: "a".repeat(32), spanId: "b".repeat(16), sampled: true }
const within = Effect.withParentSpan(Tracer.externalSpan(span))
const ok = () => Effect.succeed("ok")

const callers = (layer: Layer.Layer<never>) =>
  Effect.gen(function* () {
    const store = yield* MemoryStore.make
    yield* within(ran({ handler: ok, store, layer }))
    const attempts = only(yield* Effect.provide(eventsOf(), storeLayer(store)), "AttemptStarted")
    return attempts.map(({ caller }) => caller)
  })

it.effect("RI-154 the span that a Run is started in is journaled where a trace is exported, and else it is not", () =>
  Effect.gen(function* () {
    expect(yield* callers(Layer.succeed(Callers, () => span))).toEqual([span])
    expect(yield* callers(Layer.empty)).toEqual([undefined])
  })
)

it.effect("RI-154 a Run opens no span of its own: what its tools open stands under the caller's", () =>
  Effect.gen(function* () {
    const parents: Array<string | undefined> = []
    const handler = () => Effect.map(Effect.currentParentSpan, ({ spanId }) => parents.push(spanId)).pipe(Effect.orDie)
    yield* within(ran({ handler, store: yield* MemoryStore.make }))
    expect(parents).toEqual([span.spanId])
  })
)

it.effect("a plugin that is optional is not needed by a resume: nothing depends on it", () =>
  Effect.gen(function* () {
    const names = (optional: boolean) =>
      Effect.gen(function* () {
        const store = yield* MemoryStore.make
        const layer = plugged({ name: "p", optional, interceptors: [{ name: "n", stage: "trace" }] })
        yield* ran({ handler: ok, store, layer })
        return only(yield* Effect.provide(eventsOf(), storeLayer(store)), "RunStarted")[0]?.plugins
      })
    expect(yield* names(true)).toEqual([])
    expect(yield* names(false)).toEqual(["p"])
  })
)

it.effect("a trace interceptor is told how often its call was started", () =>
  Effect.gen(function* () {
    const starts: Array<number> = []
    const parts: Parts = {
      name: "p",
      interceptors: [
        {
          name: "n",
          stage: "trace",
          tool: ({ start }, next) =>
            Effect.andThen(
              Effect.sync(() => starts.push(start)),
              next
            )
        }
      ]
    }
    const script = [ScriptedModel.call("work", {}), ScriptedModel.text("done")]
    yield* ran({ handler: ok, script, store: yield* MemoryStore.make, layer: plugged(parts) })
    expect(starts).toEqual([1])
  })
)
