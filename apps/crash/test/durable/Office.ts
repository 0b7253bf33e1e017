/**
 * One store, and the processes that work with it: this one (`A`), another one (`B`), and lives that can misbehave.
 *
 * Whatever works here has a connection and an owner of its own, and shares nothing with the others but the store, what the
 * tools did in the world outside, and who is known to be dead.
 */
import { type Agent, CheckpointStore, Owner } from "@waystone/core"
import { DyingStore, Mortal, ScriptedModel } from "@waystone/core/testing"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { join } from "node:path"
import * as Ledger from "../../src/Ledger.ts"
import * as Stores from "../../src/Stores.ts"
import { folder } from "../support.ts"
import type { Backend, Opened } from "./backends.ts"
import * as Desk from "./Desk.ts"
import { type Options, request, type Request, type Told, type Verb } from "./Order.ts"
import { live } from "./live.ts"
import * as Other from "./Other.ts"

/** All cases of a file share the other process: it takes a second to start. Each order opens its store anew. */
const other = Other.make()
export const close = other.stop
const processes = { A: (order: Order) => Effect.orDie(live(order)), B: other.ask }
type Order = Parameters<typeof live>[0]

export type Store = CheckpointStore.CheckpointStore["Service"]
export type Services = Agent.Services<typeof Desk.clerk> | CheckpointStore.CheckpointStore
/** Does it in a life. */
export type Life = <A, E>(effect: Effect.Effect<A, E, Services>) => Effect.Effect<A, E>

export interface LifeOptions {
  /** Of its owner. Default: one of its own. */
  readonly name?: string
  /** In place of those that note what they did. */
  readonly handlers?: Partial<Desk.Handlers>
  readonly wrap?: (store: Store) => Store
  /** Plugins. */
  readonly extra?: Layer.Layer<never>
  /** A tool in whose handler a mortal life ends, right after the effect. */
  readonly deadly?: keyof Desk.Handlers
  /** In place of the one that says what the task has. */
  readonly model?: ScriptedModel.Scripted
}

export interface Mortals {
  /** Starts it, and ends when the life is over; false if it ended by itself. */
  readonly untilDead: <A, E>(effect: Effect.Effect<A, E, Services>) => Effect.Effect<boolean>
}

export interface Office extends Opened {
  /** What the tools did, in order. */
  readonly ran: () => ReadonlyArray<string>
  /** The keys that they did it under. */
  readonly keys: () => ReadonlyArray<string>
  /** For tools of a test's own. */
  readonly act: Desk.Act
  /** Does it in this process (A), or in a really separate one (B); only B can die. */
  readonly there: (process: keyof typeof processes, verb: Verb, options?: Options) => Effect.Effect<Told>
  /** Does it here, on a connection that is closed afterwards. */
  readonly here: Life
  readonly life: (options: LifeOptions) => Life
  /** What the models of all lives here were asked. */
  readonly requests: Effect.Effect<ReadonlyArray<Request>>
  /** A life that dies: at an append as `decide` says, or in its `deadly` tool. Lives here know it, real processes do not. */
  readonly mortal: (
    options: LifeOptions & { readonly name: string },
    decide?: DyingStore.Decide
  ) => Effect.Effect<Mortals, unknown, Scope.Scope>
}

export const make = Effect.fnUntraced(function* ({ open }: Backend): Effect.fn.Return<Office, never, Scope.Scope> {
  const opened = yield* open
  const ledger = join(yield* folder, "ledger")
  const act: Desk.Act = (entry) => Effect.sync(() => Ledger.happen(ledger, entry))
  const model = yield* ScriptedModel.make(Desk.script)
  const dead = new Set<string>()
  let owners = 0
  const services = (options: LifeOptions, doing = act) => {
    const name = options.name ?? `life-${++owners}`
    const owner = Layer.succeed(Owner.Owner, {
      name: Effect.sync(() => `${name} ${++owners}`),
      isDead: (owner) => Effect.sync(() => dead.has(owner.split(" ")[0] ?? ""))
    })
    return Layer.mergeAll(
      (options.model ?? model).layer,
      Desk.handlers(doing, options.handlers),
      owner,
      options.extra ?? Layer.empty
    )
  }
  const connect = ({ wrap = (same) => same }: LifeOptions) =>
    Layer.effect(
      CheckpointStore.CheckpointStore,
      Effect.map(Layer.build(Layer.orDie(Stores.layer(opened.store))), (context) =>
        wrap(Context.get(context, CheckpointStore.CheckpointStore))
      )
    )
  const life =
    (options: LifeOptions): Life =>
    (effect) =>
      Effect.provide(effect, Layer.merge(connect(options), services(options)))
  const mortal: Office["mortal"] = Effect.fnUntraced(function* (options, decide) {
    const mortal = yield* Mortal.make
    // Nobody can interrupt the dead, so that its connection is the test's to close.
    const context = yield* Layer.build(connect(options))
    const store = DyingStore.make(Context.get(context, CheckpointStore.CheckpointStore), mortal, decide)
    const last: Desk.Act = (entry) =>
      Effect.andThen(act(entry), entry.item.startsWith(`${options.deadly}:`) ? mortal.die : Effect.void)
    const layers = Layer.merge(Layer.succeed(CheckpointStore.CheckpointStore, store), services(options, last))
    return {
      untilDead: (effect) =>
        Effect.gen(function* () {
          const ended = yield* Deferred.make<void>()
          yield* Effect.forkDetach(Effect.ensuring(Effect.provide(effect, layers), Deferred.succeed(ended, undefined)))
          yield* Effect.raceFirst(mortal.died, Deferred.await(ended))
          if (mortal.isDead()) dead.add(options.name)
          return mortal.isDead()
        })
    }
  })
  return {
    ...opened,
    ran: () => Ledger.read(ledger).map(({ item }) => item),
    keys: () => Ledger.read(ledger).map(({ key }) => key),
    act,
    there: (process, verb, options = {}) => processes[process]({ ...options, store: opened.store, ledger, verb }),
    here: life({}),
    life,
    requests: Effect.map(model.requests, (all) => all.map(request)),
    mortal
  }
})
