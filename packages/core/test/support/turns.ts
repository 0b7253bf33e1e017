/** What the tests of turns, timeouts, limits, streams and windows share: two tools, a scripted world, its journal. */
import { expect } from "@effect/vitest"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { TestClock } from "effect/testing"
import * as Agent from "../../src/Agent.ts"
import { CheckpointStore } from "../../src/CheckpointStore.ts"
import { type Guard, make as guardOf } from "../../src/Guard.ts"
import * as MemoryStore from "../../src/MemoryStore.ts"
import * as ModelRetry from "../../src/ModelRetry.ts"
import * as Plugin from "../../src/Plugin.ts"
import * as Run from "../../src/Run.ts"
import type { Of, RunEvent } from "../../src/RunEvent.ts"
import * as PairingChecker from "../../src/testing/PairingChecker.ts"
import * as ScriptedModel from "../../src/testing/ScriptedModel.ts"
import { digested } from "./tools.ts"

/** Readonly. */
export const Look = Tool.make("look", {
  parameters: Schema.Struct({ at: Schema.Number }),
  success: Schema.Struct({ seen: Schema.Number })
}).annotate(Tool.Readonly, true)

/** Unsafe. */
export const Save = Tool.make("save", {
  parameters: Schema.Struct({ text: Schema.String }),
  success: Schema.Struct({ saved: Schema.String })
})

export const Kit = Toolkit.make(Look, Save)

type Handled = Layer.Success<ReturnType<typeof Kit.toLayer>>

export interface Handlers {
  readonly look: (params: { readonly at: number }) => Effect.Effect<{ readonly seen: number }>
  readonly save: (params: { readonly text: string }) => Effect.Effect<{ readonly saved: string }>
}

const handlers: Handlers = {
  look: ({ at }) => Effect.succeed({ seen: at * 2 }),
  save: ({ text }) => Effect.succeed({ saved: text })
}

type AgentOptions = Partial<Omit<Agent.Options<[typeof Kit], [], string>, "tools" | "requires">>

/** An agent with both tools. Their digests are made here, so that no real time passes while virtual time is adjusted. */
export const agentOf = (options: AgentOptions = {}) => {
  const agent = Agent.make("worker", { instructions: "Work.", ...options, tools: [Kit] })
  return Effect.as(agent.records, agent)
}

export interface World {
  readonly model: ScriptedModel.Scripted
  /** The store as the Run sees it, and the one below what wraps it. */
  readonly store: CheckpointStore["Service"]
  readonly memory: CheckpointStore["Service"]
  /** A new process over the same store and script each time it is provided. */
  readonly layer: Layer.Layer<LanguageModel.LanguageModel | CheckpointStore | Handled>
}

export interface WorldOptions {
  readonly handlers?: Partial<Handlers>
  readonly guards?: ReadonlyArray<Guard>
  readonly wrap?: (store: CheckpointStore["Service"]) => CheckpointStore["Service"]
}

class Guards extends Context.Service<Guards, Plugin.Plugin>()("test/Guards") {}

/** A model, a store and the tools. */
export const world = (script: ScriptedModel.Script, options: WorldOptions = {}): Effect.Effect<World> =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel.make(script)
    const memory = yield* MemoryStore.make
    const store = options.wrap === undefined ? memory : options.wrap(memory)
    const guards =
      options.guards === undefined
        ? Layer.empty
        : Layer.succeed(Guards, { [Plugin.PluginId]: { name: "guards", guards: options.guards } })
    const tools = Kit.toLayer({ ...handlers, ...options.handlers })
    const layer = Layer.mergeAll(model.layer, Layer.succeed(CheckpointStore, store), tools, guards)
    return { model, memory, store, layer }
  })

/** A test in a world of its own, at the end of which every entry of the script must have been asked for. */
export const scene = <A, E>(
  script: ScriptedModel.Script,
  body: (world: World) => Effect.Effect<A, E, Layer.Success<World["layer"]>>,
  options?: WorldOptions
): Effect.Effect<A, E> =>
  Effect.flatMap(world(script, options), (made) =>
    body(made).pipe(
      Effect.provide(made.layer),
      Effect.tap(() => made.model.assertConsumed)
    )
  )

/** The journal of a Run, whose every history providers take. */
export const journal = (runId: string): Effect.Effect<ReadonlyArray<RunEvent>, unknown, CheckpointStore> =>
  Effect.gen(function* () {
    expect(yield* PairingChecker.ofRun(runId)).toEqual([])
    const entries = yield* Stream.runCollect(Run.events(runId, { follow: false }))
    return entries.map(({ event }) => event)
  })

/** The events of one kind. */
export const ofKind = <Tag extends RunEvent["_tag"]>(
  events: ReadonlyArray<RunEvent>,
  tag: Tag
): ReadonlyArray<Of<Tag>> => events.filter((event): event is Of<Tag> => event._tag === tag)

/** Lets everything run that needs no time. */
export const settled: Effect.Effect<void> = Effect.repeat(Effect.yieldNow, { times: 300 })

/** Digests are made by another thread, in real time: a millisecond for them. */
const digests = Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 1)))

/** Lets virtual time pass beside an effect, which must have ended by then. */
export const during = <A, E, R>(effect: Effect.Effect<A, E, R>, time: Duration.Input): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(effect, { startImmediately: true })
    // What waits for a digest on a busy machine must not begin after that time has passed.
    yield* Effect.repeat(Effect.andThen(settled, Effect.promise(digested)), { times: 20 })
    yield* TestClock.adjust(time)
    for (let i = 0; i < 10_000 && fiber.pollUnsafe() === undefined; i++) yield* digests
    const exit = fiber.pollUnsafe()
    if (exit === undefined) return yield* Effect.die(new Error("it still runs"))
    return yield* exit
  })

/** The failure of an effect; it must not succeed. */
export const failure = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<E, A, R> => Effect.flip(effect)

/** Waits of exactly 1, 2, 4 and 8 s, without jitter. */
export const steady = Layer.succeed(ModelRetry.ModelRetry, {
  table: ModelRetry.table,
  schedule: Schedule.exponential("1 second", 2).pipe(Schedule.upTo({ times: 4 })),
  longestWait: ModelRetry.ModelRetry.defaultValue().longestWait
})

/** An answer of the provider with that status. */
export const status = (code: number, headers: { readonly [name: string]: string } = {}): ScriptedModel.Entry =>
  ScriptedModel.fail(
    AiError.reasonFromHttpStatus({ status: code, http: { response: { status: code, headers: { ...headers } } } })
  )

/** A guard without memory. */
export const guard = (check: Guard["check"], name = "test"): Guard =>
  guardOf({ name, stage: "permissions", initial: undefined, fold: () => undefined, check })

/** Goes on, and says how, when it is interrupted. */
export const hanging = (interrupted: () => void): Effect.Effect<never> =>
  Effect.onInterrupt(Effect.never, () => Effect.sync(interrupted))
