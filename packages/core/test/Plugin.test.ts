import { describe, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Guard from "../src/Guard.ts"
import * as MemoryStore from "../src/MemoryStore.ts"
import { Owner } from "../src/Owner.ts"
import * as Plugin from "../src/Plugin.ts"
import * as Run from "../src/Run.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import { agentOf, eventsOf, handled, only, outcomeOf, paired, plugged, ran, storeLayer, Work } from "./support/tools.ts"

const { call, text } = ScriptedModel

const ok = () => Effect.succeed("ok")

/** A guard that writes its name down with every check, in the journal too. */
const noting = (name: string, stage: Guard.Stage, log: Array<string> = []) =>
  Guard.make({
    name,
    stage,
    initial: 0,
    fold: (n) => n + 1,
    check: ({ memory }) => {
      log.push(name)
      return { _tag: "Allow", note: { name, memory }, reservation: { [name]: memory } }
    }
  })

const interceptor = (name: string, stage: "trace" | "breaker" | "sanitize", log: Array<string>) => ({
  name,
  stage,
  tool: <A>(_: unknown, next: Effect.Effect<A>) =>
    Effect.suspend(() => {
      log.push(name)
      return next
    })
})

const plugins = (log: Array<string>): ReadonlyArray<Layer.Layer<never>> => [
  plugged({ name: "budget", guards: [noting("tokens", "budget", log), noting("cost", "budget", log)] }),
  plugged({
    name: "safety",
    guards: [noting("rules", "permissions", log)],
    interceptors: [interceptor("clean", "sanitize", log)]
  }),
  plugged({ name: "loops", guards: [noting("loop", "loop", log), noting("fuse", "limits", log)] }),
  plugged({ name: "traces", interceptors: [interceptor("span", "trace", log), interceptor("break", "breaker", log)] }),
  plugged({ name: "metrics", observers: [{ name: "m", attempt: () => Effect.succeed(() => Effect.void) }] })
]

/** The same Layers in another order and another shape: merged in groups, provided to one another, or both. */
const shaped = (layers: ReadonlyArray<Layer.Layer<never>>, seeds: ReadonlyArray<number>): Layer.Layer<never> => {
  const left = [...layers]
  let whole: Layer.Layer<never> = Layer.empty
  for (let i = 0; left.length > 0; i++) {
    const seed = seeds[i] ?? 0
    const [next = Layer.empty] = left.splice(seed % left.length, 1)
    const shape = Math.floor(seed / 8) % 4
    if (shape === 0) whole = Layer.merge(whole, next)
    else if (shape === 1) whole = Layer.provideMerge(whole, next)
    else if (shape === 2) whole = Layer.mergeAll(next, Layer.fresh(whole))
    else whole = Layer.unwrap(Effect.succeed(Layer.provideMerge(next, whole)))
  }
  return whole
}

const owner = Layer.succeed(Owner, { name: Effect.succeed("me"), isDead: () => Effect.succeed(false) })

const runWith = (layer: (log: Array<string>) => Layer.Layer<never>) =>
  Effect.gen(function* () {
    const log: Array<string> = []
    const script = [call("work", {}), text("done")]
    const { events } = yield* ran({ handler: ok, script, layer: Layer.merge(layer(log), owner) })
    return { events, log }
  })

describe("Plugin", () => {
  const seed = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1000 }))

  it.effect.prop(
    "any order, merge or nesting of the Layers gives the same checks in the same order, and the same journal",
    [Schema.Tuple([seed, seed, seed, seed, seed])],
    ([seeds]) =>
      Effect.gen(function* () {
        const straight = yield* runWith((log) => Layer.mergeAll(Layer.empty, ...plugins(log)))
        const other = yield* runWith((log) => shaped(plugins(log), seeds))
        const checks = ["fuse", "rules", "cost", "tokens", "loop"]
        // Before turn 1, before the call, around it, before turn 2.
        expect(straight.log).toEqual([checks, checks, ["span", "break", "clean"], checks].flat())
        expect(other.log).toEqual(straight.log)
        expect(other.events).toEqual(straight.events)
        expect(only(other.events, "VerdictGiven")).toHaveLength(15)
      }),
    { arbitrary: { runs: 30 } }
  )

  class Cap extends Context.Service<Cap, Plugin.Plugin>()("test/Cap") {
    static readonly layer = Layer.sync(Cap, () => ({
      [Plugin.PluginId]: { name: "cap", guards: [noting("cap", "budget")] }
    }))
  }

  it("the same plugin provided twice is there once", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const twice = Layer.mergeAll(Cap.layer, Layer.fresh(Cap.layer)).pipe(Layer.provideMerge(Cap.layer))
        const collected = Plugin.collect(yield* Layer.build(twice))
        expect(collected.names).toEqual(["cap"])
        expect(collected.guards.map(({ name }) => name)).toEqual(["cap"])
      }).pipe(Effect.scoped)
    ))

  it("services that are no plugins are not looked at", () => {
    const context = Context.makeUnsafe<never>(
      new Map<string, unknown>([
        ["a", null],
        ["b", 1],
        ["c", () => 1],
        ["d", {}]
      ])
    )
    expect(Plugin.collect(context)).toEqual({
      names: [],
      answering: new Map(),
      guards: [],
      interceptors: [],
      observers: []
    })
  })

  it.effect("records the names of those that guard or intercept, in order", () =>
    Effect.gen(function* () {
      const { events } = yield* runWith((log) => Layer.mergeAll(Layer.empty, ...plugins(log).toReversed()))
      expect(only(events, "RunStarted").map((event) => event.plugins)).toEqual([
        ["budget", "loops", "safety", "traces"]
      ])
      expect(only(events, "AttemptStarted")[0]).not.toHaveProperty("plugins")
    })
  )

  /** A Run with two plugins that waits for an approval; how it goes on is up to the test. */
  const waiting = Effect.gen(function* () {
    const store = storeLayer(yield* MemoryStore.make)
    const model = yield* ScriptedModel.make([call("work", {}), text("done")])
    const agent = agentOf(Work.setNeedsApproval(true))
    const watch = plugged({
      name: "watch",
      observers: [{ name: "w", attempt: () => Effect.succeed(() => Effect.void) }]
    })
    const a = plugged({ name: "a", guards: [noting("a", "budget")] })
    const b = plugged({ name: "b", interceptors: [interceptor("b", "trace", [])] })
    const base = Layer.mergeAll(store, model.layer, handled(ok))
    const started = Run.start(agent, { runId: "r", task: "go" })
    yield* Effect.provide(started, [base, a, b, watch])
    const [wait] = (yield* Effect.provide(Run.get("r"), store)).waiting
    const answer = { _tag: "Approve", digest: wait?.digest ?? "" } as const
    yield* Effect.provide(Run.answer(agent, { runId: "r", callId: "t1.0", answer, by: "ann" }), store)
    const resume = (layer: Layer.Layer<never>, without?: ReadonlyArray<string>) =>
      Run.resume(agent, { runId: "r", ...(without && { without }) }).pipe(Effect.provide([base, layer]))
    return {
      a,
      b,
      resume,
      events: Effect.provide(
        Effect.tap(eventsOf(), () => paired()),
        store
      )
    }
  })

  it.effect("a resume without one fails with PluginMissing, writes nothing, and can be tried again with it", () =>
    Effect.gen(function* () {
      const { a, b, events, resume } = yield* waiting
      const before = yield* events
      const error = yield* Effect.flip(resume(b))
      expect(error).toMatchObject({ _tag: "Fatal", reason: { _tag: "PluginMissing", missing: ["a"] } })
      expect((yield* Effect.flip(resume(Layer.empty, ["b"]))).reason).toMatchObject({ missing: ["a"] })
      expect(yield* events).toEqual(before)
      // An observer is not missed.
      expect(yield* resume(Layer.merge(a, b))).toMatchObject({ _tag: "Completed" })
    })
  )

  it.effect("a resume without one that is named in `without` goes on, and the journal says so", () =>
    Effect.gen(function* () {
      const { b, events, resume } = yield* waiting
      expect(yield* resume(b, ["a"])).toMatchObject({ _tag: "Completed" })
      expect(only(yield* events, "AttemptStarted")[1]).toMatchObject({ attempt: 2, plugins: ["b"], without: ["a"] })
    })
  )

  it.effect("a plugin that comes later is recorded and needed from then on", () =>
    Effect.gen(function* () {
      const { a, b, events, resume } = yield* waiting
      const c = plugged({ name: "c", guards: [noting("c", "loop")] })
      yield* resume(Layer.mergeAll(a, b, c))
      expect(only(yield* events, "AttemptStarted")[1]).toMatchObject({ plugins: ["a", "b", "c"] })
    })
  )

  it.effect("an agent's Run without plugins needs none", () =>
    Effect.gen(function* () {
      const run = yield* ran({ handler: ok })
      expect(outcomeOf(run)._tag).toBe("Completed")
      expect(only(run.events, "RunStarted")[0]?.plugins).toEqual([])
    })
  )
})
