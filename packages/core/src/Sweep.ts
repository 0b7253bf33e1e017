/**
 * Takes over Runs that nobody drives: a worker calls `recover` again and again.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { Agent, Services } from "./Agent.ts"
import { boundedStore } from "./Bounded.ts"
import type { CheckpointStore, Entry, Filter, StoreError } from "./CheckpointStore.ts"
import type { Outcome } from "./Outcome.ts"
import { Owner } from "./Owner.ts"
import * as Route from "./Route.ts"
import { type Lift, lift } from "./RunError.ts"
import { goOn, type ResumeError } from "./Start.ts"
import * as WorkOptions from "./WorkOptions.ts"

/** What became of one Run of a sweep. */
export type Recovered =
  | { readonly _tag: "Driven"; readonly runId: string; readonly outcome: Outcome<unknown> }
  | { readonly _tag: "Failed"; readonly runId: string; readonly error: ResumeError }
  /** A bug of the application or of a plugin ended its Attempt; the others of the sweep go on. */
  | { readonly _tag: "Died"; readonly runId: string; readonly defect: unknown }

export interface RecoverInput {
  /** How many Runs are driven at once: a whole number from 1, else a defect says so. Default 10. */
  readonly concurrency?: number
}

/**
 * Drives every Run of these agents whose owner died or let go, or whose `wakeAt` has come, the oldest first, roots only.
 * One sweep; what another worker takes first is left to it.
 */
export const recover = <As extends ReadonlyArray<Agent>>(
  agents: As,
  { concurrency = 10 }: RecoverInput = {}
): Effect.Effect<ReadonlyArray<Recovered>, Lift<StoreError>, Services<As[number]> | CheckpointStore> => {
  const known = byName(agents)
  const sweep = Effect.gen(function* () {
    yield* WorkOptions.concurrency("Run.recover", concurrency)
    const found = yield* Stream.runCollect(due(known))
    const one = (entry: Entry) => {
      const agent = known.get(entry.agent)
      return agent === undefined ? Effect.succeed([]) : driven(agent, entry.runId)
    }
    return (yield* Effect.forEach(found, one, { concurrency })).flat()
  })
  // Each Run is driven by its own agent, whose services are among those of all of them.
  return sweep as Effect.Effect<ReadonlyArray<Recovered>, Lift<StoreError>, Services<As[number]> | CheckpointStore>
}

/** @internal */
export const byName = (agents: ReadonlyArray<Agent>): ReadonlyMap<string, Agent> =>
  new Map(agents.map((agent) => [agent.name, agent]))

/** Nothing if another worker took it first. @internal */
export const driven = (agent: Agent, runId: string) =>
  Effect.match(goOn(agent, runId), {
    onSuccess: (outcome): ReadonlyArray<Recovered> => [{ _tag: "Driven", runId, outcome }],
    onFailure: (error): ReadonlyArray<Recovered> =>
      error.reason._tag === "RunBusy" ? [] : [{ _tag: "Failed", runId, error }]
  }).pipe(Effect.catchDefect((defect) => Effect.succeed<ReadonlyArray<Recovered>>([{ _tag: "Died", runId, defect }])))

type Entries = Stream.Stream<Entry, Lift<StoreError>, CheckpointStore>

/** Runs of these agents whose owner died or let go, or whose `wakeAt` has come, the oldest first. @internal */
export const due = (agents: ReadonlyMap<string, Agent>): Entries =>
  Stream.concat(Stream.drain(unheard(agents)), free({ agent: [...agents.keys()], due: true, parent: null }))

const free = (filter: Filter): Entries =>
  Stream.filterEffect(listed(filter), ({ live, owner }) =>
    live && owner !== undefined ? Effect.flatMap(Owner, ({ isDead }) => isDead(owner)) : Effect.succeed(true)
  )

/** Wakes the roots above Runs that can go on, where whoever answered died before it could. */
const unheard = (agents: ReadonlyMap<string, Agent>): Entries => {
  const agent = [...new Set(Route.below(agents.values()).map(({ name }) => name))]
  if (agent.length === 0) return Stream.empty
  const children = Stream.filter(free({ agent, due: true }), ({ parent }) => parent !== undefined)
  return Stream.tap(children, (entry) =>
    // One that cannot be read or told now does not keep the others from being found.
    Effect.catch(Route.wakeAbove(entry), (error) => Effect.logWarning(error.message))
  )
}

/** Runs of these agents that were stored and never driven, the oldest first. @internal */
export const accepted = (agent: ReadonlyArray<string>): Entries => listed({ agent, status: ["accepted"], parent: null })

/** Page by page, as they are asked for. */
const listed = (filter: Filter): Entries =>
  Stream.paginate(Option.none<Entry>(), (last) =>
    lift(
      Effect.gen(function* () {
        const store = yield* boundedStore
        const page = yield* store.list(filter, { limit: 100, ...(Option.isSome(last) && { after: last.value }) })
        const next = Option.fromUndefinedOr(page.at(-1))
        return [page, page.length < 100 ? Option.none() : Option.some(next)] as const
      })
    )
  )
