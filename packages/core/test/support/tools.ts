/** Set-up of the tests about tools, guards and plugins: one tool, one scripted model, one store, and what was journaled. */
import { expect } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { TestClock } from "effect/testing"
import * as Agent from "../../src/Agent.ts"
import { CheckpointStore } from "../../src/CheckpointStore.ts"
import * as MemoryStore from "../../src/MemoryStore.ts"
import type { Outcome } from "../../src/Outcome.ts"
import { Owner } from "../../src/Owner.ts"
import * as Plugin from "../../src/Plugin.ts"
import * as Run from "../../src/Run.ts"
import type { Of, RunEvent } from "../../src/RunEvent.ts"
import * as DyingStore from "../../src/testing/DyingStore.ts"
import * as Mortal from "../../src/testing/Mortal.ts"
import * as PairingChecker from "../../src/testing/PairingChecker.ts"
import * as ScriptedModel from "../../src/testing/ScriptedModel.ts"
import * as YieldingStore from "../../src/testing/YieldingStore.ts"

/** A tool that takes and gives anything; `annotate` it to be what a test needs. */
export const Work = Tool.make("work", {
  parameters: Schema.Struct({ n: Schema.optionalKey(Schema.Number) }),
  success: Schema.Unknown,
  failure: Schema.Unknown
})
export type Work = typeof Work
export const Readonly = Work.annotate(Tool.Readonly, true)
export const Idempotent = Work.annotate(Tool.Idempotent, true)

export type Handler = (input: { readonly n?: number }, context: HandlerContext) => Effect.Effect<unknown, unknown>
interface HandlerContext {
  readonly preliminary: (value: unknown) => Effect.Effect<void>
}

/** The handler of `Work` and all that is made of it. */
export const handled = (handler: Handler): Layer.Layer<Tool.Handler<"work">> =>
  Toolkit.make(Work).toLayer({ work: handler })

export const agentOf = (
  tool: Work,
  options: Partial<Omit<Agent.Options<[], [], string>, "tools" | "requires">> = {}
): Agent.Agent<Work, string, never> => Agent.make("worker", { instructions: "Work.", ...options, tools: [tool] })

/** The events of a Run so far. */
export const eventsOf = (runId = "r"): Effect.Effect<ReadonlyArray<RunEvent>, never, CheckpointStore> =>
  Run.events(runId, { follow: false }).pipe(
    Stream.map(({ event }) => event),
    Stream.runCollect,
    Effect.orDie
  )

/** Those of one kind. */
export const only = <Tag extends RunEvent["_tag"]>(events: ReadonlyArray<RunEvent>, tag: Tag): ReadonlyArray<Of<Tag>> =>
  events.filter((event): event is Of<Tag> => event._tag === tag)

export const kinds = (events: ReadonlyArray<RunEvent>): ReadonlyArray<string> => events.map(({ _tag }) => _tag)

/** No history that the Run ever had would be refused by a provider. */
export const paired = (runId = "r"): Effect.Effect<void, never, CheckpointStore> =>
  Effect.map(Effect.orDie(PairingChecker.ofRun(runId)), (violations) => expect(violations).toEqual([]))

/** Lets every fiber go on until all of them wait for the clock; real time passes only for real promises. */
export const settled = Effect.promise(async () => {
  for (let turn = 0; turn < 10; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
  await digested()
})

/** Digests are made by other threads, in real time and in turn: those that were asked for before are made then. */
export const digested = (): Promise<unknown> => crypto.subtle.digest("SHA-256", new Uint8Array(1))

/** Lets that much virtual time pass, in steps that no fiber is late for. */
export const pass = (time: Duration.Input): Effect.Effect<void> => {
  const millis = Duration.toMillis(Duration.fromInputUnsafe(time))
  const step = Math.max(250, millis / 400)
  return Effect.gen(function* () {
    // What comes first asks for several digests, one after the other.
    yield* Effect.repeat(settled, { times: 10 })
    for (let passed = 0; passed < millis; passed += step) {
      yield* TestClock.adjust(Math.min(step, millis - passed))
      yield* settled
    }
  })
}

/** Runs `effect` while virtual time passes, at most that much; dies if it has not ended then. */
export const during =
  (time: Duration.Input) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(effect, { startImmediately: true })
      yield* Effect.raceFirst(Fiber.await(fiber), pass(time))
      yield* settled
      if (fiber.pollUnsafe() === undefined) return yield* Effect.die(new Error(`it did not end within ${time}`))
      return yield* Fiber.join(fiber)
    })

/** A store that answers at once, and one that takes its time. */
export const stores: ReadonlyArray<readonly [string, Effect.Effect<CheckpointStore["Service"]>]> = [
  ["a memory store", MemoryStore.make],
  ["a store that yields", Effect.map(MemoryStore.make, (store) => YieldingStore.make(store, 3))]
]

export const storeLayer = (store: CheckpointStore["Service"]): Layer.Layer<CheckpointStore> =>
  Layer.succeed(CheckpointStore, store)

/** A plugin of that name, under a key of its own. */
export const plugged = (parts: Plugin.Parts): Layer.Layer<never> =>
  Layer.effectContext(
    Effect.sync(() => Context.makeUnsafe<never>(new Map([[`test/${parts.name}`, { [Plugin.PluginId]: parts }]])))
  )

/** What came of one Run. */
export interface Ran<E = unknown> {
  readonly exit: Exit.Exit<Outcome<string>, E>
  readonly events: ReadonlyArray<RunEvent>
  readonly requests: ReadonlyArray<ScriptedModel.Request>
  /** The results that the model saw first. */
  readonly results: ReadonlyArray<Prompt.ToolResultPart>
  readonly completed: ReadonlyArray<Of<"ToolCallCompleted">>
}

export interface Plan {
  readonly tool?: Work
  readonly handler: Handler
  /** Default: one call of `work`, then "done". */
  readonly script?: ScriptedModel.Script
  readonly agent?: Parameters<typeof agentOf>[1]
  readonly layer?: Layer.Layer<never>
  readonly store?: CheckpointStore["Service"]
  /** Virtual time that passes meanwhile. Default none. */
  readonly time?: Duration.Input
}

/** Starts Run `r` of a worker and reports; its history and its requests are ones that providers take. */
export const ran = ({ agent, handler, layer, script, store, time, tool = Work }: Plan): Effect.Effect<Ran> =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel.make(script ?? [ScriptedModel.call("work", {}), ScriptedModel.text("done")])
    const kept = store ?? (yield* MemoryStore.make)
    const worker = agentOf(tool, agent)
    yield* worker.records // made once, by a real promise, which virtual time would not wait for
    const start = Run.start(worker, { runId: "r", task: "go" }).pipe(
      Effect.provide(Layer.mergeAll(model.layer, handled(handler), storeLayer(kept), layer ?? Layer.empty))
    )
    const exit = yield* Effect.exit(time === undefined ? start : during(time)(start))
    const requests = yield* model.requests
    const results = requests.find((request) => request.results.length > 0)?.results ?? []
    const after = Effect.provide(
      Effect.tap(eventsOf(), () => paired()),
      storeLayer(kept)
    )
    const events = (yield* Effect.orDie(kept.head("r"))) === undefined ? [] : yield* after
    return { exit, events, requests, results, completed: only(events, "ToolCallCompleted") }
  })

/** The outcome of a Run that did not fail. */
export const outcomeOf = ({ exit }: Ran): Outcome<string> => {
  if (Exit.isFailure(exit)) throw new Error(`the Run failed: ${String(exit.cause)}`)
  return exit.value
}

/** Runs `effect` as a process of its own over `store`; undefined if it died. Every other process counts as dead. */
export const lived = <A, E, R>(
  store: CheckpointStore["Service"],
  effect: (self: Mortal.Mortal) => Effect.Effect<A, E, R>,
  decide?: DyingStore.Decide
): Effect.Effect<Exit.Exit<A, E> | undefined, never, Exclude<R, CheckpointStore>> =>
  Effect.gen(function* () {
    const self = yield* Mortal.make
    const name = `process ${++processes}`
    const owner = { name: Effect.succeed(name), isDead: (other: string) => Effect.succeed(other !== name) }
    const layer = Layer.merge(storeLayer(DyingStore.make(store, self, decide)), Layer.succeed(Owner, owner))
    const fiber = yield* Effect.forkDetach(Effect.provide(effect(self), layer), { startImmediately: true })
    return yield* Effect.raceFirst(Fiber.await(fiber), Effect.as(self.died, undefined))
  })

let processes = 0
