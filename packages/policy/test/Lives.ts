/**
 * Runs an agent in processes that die: before its nth append, then a new process goes on.
 */
import { CheckpointStore, type Agent, MemoryStore, Owner, Run, type RunEvent } from "@waystone/core"
import { DyingStore, Mortal } from "@waystone/core/testing"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"

/** All events of a Run, in order. */
export const journal = (runId: string) =>
  Run.events(runId).pipe(
    Stream.map(({ event }) => event),
    Stream.runCollect
  )

type Services<A extends Agent.Agent> = Layer.Layer<
  Exclude<Agent.Services<A>, CheckpointStore.CheckpointStore | Owner.Owner>,
  unknown
>

export interface Lived {
  readonly appends: number
  readonly events: ReadonlyArray<RunEvent.RunEvent>
}

/** The journal of a Run whose process dies before that append; 0 kills nobody. */
export const lived = <A extends Agent.Agent>(agent: A, services: Services<A>, killedAt: number) =>
  Effect.gen(function* () {
    const store = yield* MemoryStore.make
    let appends = 0
    const live = (life: number) =>
      Effect.gen(function* () {
        const mortal = yield* Mortal.make
        const dying = DyingStore.make(store, mortal, () =>
          Effect.sync(() => (++appends === killedAt ? ("die-before" as const) : ("live" as const)))
        )
        const built = yield* Layer.build(Layer.fresh(services))
        const context = built.pipe(
          Context.add(CheckpointStore.CheckpointStore, dying),
          Context.add(Owner.Owner, { name: Effect.succeed(`life ${life}`), isDead: () => Effect.succeed(true) })
        )
        // Whatever the agent needs is in the context, by the type of the services.
        const run = Run.start(agent as Agent.Agent, { runId: "lived", task: "go" }).pipe(
          Effect.provideContext(context as Context.Context<Agent.Services<Agent.Agent>>)
        )
        const fiber = yield* Effect.forkDetach(run)
        return yield* Effect.raceFirst(Effect.as(Fiber.await(fiber), "ended"), Effect.as(mortal.died, "died"))
      }).pipe(Effect.scoped)
    if ((yield* live(1)) === "died") yield* live(2)
    const events = yield* journal("lived").pipe(Effect.provideService(CheckpointStore.CheckpointStore, store))
    const result: Lived = { appends, events }
    return result
  })
