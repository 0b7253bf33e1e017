import { describe, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { CheckpointStore } from "../src/CheckpointStore.ts"
import * as MemoryStore from "../src/MemoryStore.ts"
import * as Reconcile from "../src/Reconcile.ts"
import * as Run from "../src/Run.ts"
import type { Mortal } from "../src/testing/Mortal.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import { ToolContext } from "../src/ToolContext.ts"
import {
  agentOf,
  during,
  eventsOf,
  handled,
  Idempotent,
  kinds,
  lived,
  only,
  paired,
  Readonly,
  storeLayer,
  stores,
  Work
} from "./support/tools.ts"

const { call, calls, text } = ScriptedModel

/** The world outside: which keys had an effect. */
const world = () => {
  const effects: Array<string> = []
  /** A handler that has its effect, and then kills its process if it still has lives to lose. */
  const handler = (self: Mortal, dies: () => boolean) => () =>
    Effect.gen(function* () {
      effects.push((yield* ToolContext).idempotencyKey)
      return dies() ? yield* self.die : effects.length
    })
  return { effects, handler }
}

/** One call of a tool whose process dies right after the effect; then `next` in a new process over the same store. */
const killed = (
  tool: Work,
  {
    make = MemoryStore.make,
    reconcile = Layer.empty,
    script = [call("work", { n: 7 }), text("done")]
  }: {
    readonly make?: Effect.Effect<CheckpointStore["Service"]>
    readonly reconcile?: Layer.Layer<never>
    readonly script?: ScriptedModel.Script
  } = {}
) =>
  Effect.gen(function* () {
    const { effects, handler } = world()
    const model = yield* ScriptedModel.make(script)
    const store = yield* make
    const agent = agentOf(tool)
    yield* agent.records
    let lives = 1
    const process = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      lived(store, (self) =>
        Effect.provide(effect, Layer.mergeAll(model.layer, handled(handler(self, () => lives-- > 0)), reconcile))
      )
    expect(yield* process(Run.start(agent, { runId: "r", task: "go" }))).toBeUndefined()
    expect(effects).toEqual(["r/t1.0"])
    const outside = <A, E>(effect: Effect.Effect<A, E, CheckpointStore>) => Effect.provide(effect, storeLayer(store))
    const events = (runId = "r") => outside(Effect.tap(eventsOf(runId), () => paired(runId)))
    return { agent, effects, events, model, outside, process, resume: process(Run.resume(agent, { runId: "r" })) }
  })

const done = { _tag: "Success", value: { _tag: "Completed", output: "done" } }
const doubtful = {
  _tag: "Success",
  value: { _tag: "Suspended", waiting: [{ id: "t1.0", kind: "in-doubt", name: "work" }] }
}

describe("Recovery", () => {
  it.effect.each(stores)("R1 a call that was completed is never run again, on %s", ([, make]) =>
    Effect.gen(function* () {
      const counts = [0, 0]
      const store = yield* make
      const model = yield* ScriptedModel.make([
        calls([call("work", { n: 0 }), call("work", { n: 1 }), call("work", { n: 0 })]),
        text("done")
      ])
      const process = (dies: boolean) =>
        lived(store, (self) => {
          const handler = ({ n = 0 }: { readonly n?: number }) =>
            Effect.suspend(() => (n === 1 && dies ? self.die : Effect.sync(() => (counts[n] = (counts[n] ?? 0) + 1))))
          return Run.start(agentOf(Idempotent), { runId: "r", task: "go" }).pipe(
            Effect.provide([model.layer, handled(handler)])
          )
        })
      expect(yield* process(true)).toBeUndefined()
      expect(counts).toEqual([1, 0])
      expect(yield* process(false)).toMatchObject(done)
      expect(counts).toEqual([2, 1])
      yield* Effect.provide(paired(), storeLayer(store))
    })
  )

  it.effect.each(stores)("R2 an idempotent call runs again with the same key, on %s", ([, make]) =>
    Effect.gen(function* () {
      const { effects, events, resume } = yield* killed(Idempotent, { make })
      expect(yield* resume).toMatchObject(done)
      expect(effects).toEqual(["r/t1.0", "r/t1.0"])
      expect(only(yield* events(), "CallRequeued")).toMatchObject([{ callId: "t1.0", because: "idempotent" }])
      expect(only(yield* events(), "ToolCallCompleted")).toMatchObject([{ ending: "executed", result: 2 }])
    })
  )

  it.effect("R2 a readonly call runs again, and nothing of it was written before", () =>
    Effect.gen(function* () {
      const { effects, events, resume } = yield* killed(Readonly, {
        script: ({ results }) => (results.length > 0 ? text("done") : call("work", {}))
      })
      expect(yield* resume).toMatchObject(done)
      expect(effects).toHaveLength(2)
      expect(kinds(yield* events()).filter((kind) => kind.includes("Call"))).toEqual(["ToolCallCompleted"])
    })
  )

  it.effect.each(stores)(
    "R2 an unsafe call without a reconciler waits in doubt, and is never repeated, on %s",
    ([, make]) =>
      Effect.gen(function* () {
        const { effects, events, outside, resume } = yield* killed(Work, { make })
        expect(yield* resume).toMatchObject(doubtful)
        expect(yield* resume).toMatchObject(doubtful)
        expect(effects).toHaveLength(1)
        expect(only(yield* events(), "CallInDoubt")).toHaveLength(1)
        expect(yield* outside(Run.list({ waiting: "in-doubt" }))).toMatchObject([{ runId: "r", status: "waiting" }])
      })
  )

  const asked = () => {
    const inputs: Array<Reconcile.Input> = []
    const layer = (answer: Effect.Effect<Reconcile.Reconciled>) =>
      Reconcile.layer(Work, (input) => Effect.suspend(() => (inputs.push(input), answer)))
    return { inputs, layer }
  }

  it.effect("a reconciler that says Done gives the result; it gets the lost key and the arguments", () =>
    Effect.gen(function* () {
      const { inputs, layer } = asked()
      const reconcile = layer(Effect.succeed({ _tag: "Done", result: { paid: true } }))
      const { effects, events, model, resume } = yield* killed(Work, { reconcile })
      expect(yield* resume).toMatchObject(done)
      expect(effects).toHaveLength(1)
      expect(inputs).toEqual([{ key: "r/t1.0", arguments: { n: 7 } }])
      expect(only(yield* events(), "ToolCallCompleted")).toMatchObject([
        { ending: "reconciled", isFailure: false, result: { paid: true } }
      ])
      expect((yield* model.requests)[1]?.results[0]?.result).toEqual({ paid: true })
    })
  )

  it.effect("a reconciler that says NeverStarted lets the call run, under its key", () =>
    Effect.gen(function* () {
      const { layer } = asked()
      const reconcile = layer(Effect.succeed({ _tag: "NeverStarted" }))
      const { effects, events, resume } = yield* killed(Work, { reconcile })
      expect(yield* resume).toMatchObject(done)
      expect(effects).toEqual(["r/t1.0", "r/t1.0"])
      expect(only(yield* events(), "CallRequeued")).toMatchObject([{ because: "never-started" }])
    })
  )

  const silent: ReadonlyArray<readonly [string, Effect.Effect<Reconcile.Reconciled>]> = [
    ["says Unknown", Effect.succeed({ _tag: "Unknown" })],
    ["dies", Effect.die(new Error("no answer"))],
    [
      "throws",
      Effect.suspend(() => {
        throw new Error("no answer")
      })
    ],
    ["hangs", Effect.never]
  ]
  it.effect.each(silent)(
    "a reconciler that %s leaves the call in doubt, asked once and for at most 30 s",
    ([, answer]) =>
      Effect.gen(function* () {
        const { inputs, layer } = asked()
        const { effects, resume } = yield* killed(Work, { reconcile: layer(answer) })
        expect(yield* during("31 seconds")(resume)).toMatchObject(doubtful)
        expect(yield* resume).toMatchObject(doubtful)
        expect(inputs).toHaveLength(1)
        expect(effects).toHaveLength(1)
      })
  )

  class Bank extends Context.Service<Bank, { readonly find: (key: string) => Effect.Effect<string> }>()("test/Bank") {}

  it.effect("a reconciler may need services, which its Layer provides", () =>
    Effect.gen(function* () {
      const reconcile = Reconcile.layer(Work, ({ key }) =>
        Effect.gen(function* () {
          return { _tag: "Done", result: yield* (yield* Bank).find(key) } as const
        })
      ).pipe(Layer.provide(Layer.succeed(Bank, { find: (key) => Effect.succeed(`receipt of ${key}`) })))
      const { events, resume } = yield* killed(Work, { reconcile })
      expect(yield* resume).toMatchObject(done)
      expect(only(yield* events(), "ToolCallCompleted")).toMatchObject([{ result: "receipt of r/t1.0" }])
    })
  )

  it.effect.each([
    ["Done", "reconciled", { ok: 1 }],
    ["NeverStarted", "cancelled", { error: "Cancelled; not executed." }],
    ["Unknown", "unknown", { error: "Outcome unknown: it had started and may have happened." }]
  ] as const)("R3 after a cancel a reconciler is asked once; %s is %s, and nothing is run", ([tag, ending, result]) =>
    Effect.forEach([Work, Idempotent], (tool) =>
      Effect.gen(function* () {
        const { inputs, layer } = asked()
        const answer = tag === "Done" ? ({ _tag: tag, result: { ok: 1 } } as const) : { _tag: tag }
        const { effects, events, outside, resume } = yield* killed(tool, {
          reconcile: layer(Effect.succeed(answer)),
          script: [call("work", { n: 7 })]
        })
        yield* outside(Run.cancel({ runId: "r", by: "ann" }))
        expect(yield* resume).toMatchObject({ _tag: "Success", value: { _tag: "Cancelled", by: "ann" } })
        expect(inputs).toHaveLength(1)
        expect(effects).toHaveLength(1)
        expect(only(yield* events(), "ToolCallCompleted")).toMatchObject([{ callId: "t1.0", ending, result }])
      })
    )
  )

  it.effect("R3 after a cancel a call without a reconciler has an unknown outcome, an idempotent one too", () =>
    Effect.forEach([Work, Idempotent], (tool) =>
      Effect.gen(function* () {
        const { effects, events, outside, resume } = yield* killed(tool, { script: [call("work", {})] })
        yield* outside(Run.cancel({ runId: "r" }))
        expect(yield* resume).toMatchObject({ _tag: "Success", value: { _tag: "Cancelled" } })
        expect(effects).toHaveLength(1)
        expect(only(yield* events(), "ToolCallCompleted")).toMatchObject([{ ending: "unknown", isFailure: true }])
      })
    )
  )

  /** Forks the killed Run at its last checkpoint and drives the fork. */
  const forked = (tool: Work, reconcile: Layer.Layer<never>) =>
    Effect.gen(function* () {
      const run = yield* killed(tool, { reconcile })
      yield* run.outside(Run.fork({ runId: "r", id: "f" }))
      const outcome = yield* run.process(Run.resume(run.agent, { runId: "f" }))
      return { ...run, outcome }
    })

  it.effect("in a fork a reconciler gets the original's key, for an idempotent call too", () =>
    Effect.forEach([Work, Idempotent], (tool) =>
      Effect.gen(function* () {
        const { inputs, layer } = asked()
        const { effects, events, outcome } = yield* forked(tool, layer(Effect.succeed({ _tag: "Done", result: "old" })))
        expect(outcome).toMatchObject(done)
        expect(inputs).toEqual([{ key: "r/t1.0", arguments: { n: 7 } }])
        expect(effects).toEqual(["r/t1.0"])
        expect(only(yield* events("f"), "ToolCallCompleted")).toMatchObject([{ ending: "reconciled", result: "old" }])
      })
    )
  )

  it.effect(
    "in a fork a call that nobody knows about waits in doubt, an idempotent one too, since its key differs",
    () =>
      Effect.forEach([Work, Idempotent], (tool) =>
        Effect.forEach([Layer.empty, asked().layer(Effect.succeed({ _tag: "Unknown" }))], (reconcile) =>
          Effect.gen(function* () {
            const { effects, outcome } = yield* forked(tool, reconcile)
            expect(outcome).toMatchObject(doubtful)
            expect(effects).toEqual(["r/t1.0"])
          })
        )
      )
  )

  it.effect("in a fork NeverStarted lets the call run, under the fork's own key", () =>
    Effect.gen(function* () {
      const { layer } = asked()
      const { effects, outcome } = yield* forked(Work, layer(Effect.succeed({ _tag: "NeverStarted" })))
      expect(outcome).toMatchObject(done)
      expect(effects).toEqual(["r/t1.0", "f/t1.0"])
    })
  )
})
