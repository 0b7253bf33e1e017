/**
 * Tells whoever is to answer what a call below a root wants to do: its arguments stand in the journal of its own Run.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { CheckpointStore } from "./CheckpointStore.ts"
import type { ReadError } from "./Journal.ts"
import type { Outcome, Waiting } from "./Outcome.ts"
import * as Outside from "./Outside.ts"
import * as Route from "./Route.ts"
import { callOf, type RunState } from "./RunState.ts"
import * as Stored from "./Stored.ts"

/** The same waits, with the arguments of the calls of sub-agents. */
export const described = (
  rootId: string,
  waiting: ReadonlyArray<Waiting>
): Effect.Effect<ReadonlyArray<Waiting>, ReadError, CheckpointStore> =>
  Effect.gen(function* () {
    if (waiting.every(({ path }) => path === undefined)) return waiting
    const states = new Map<string, RunState | undefined>()
    const found: Array<Waiting> = []
    for (const wait of waiting) {
      if (wait.path === undefined) {
        found.push(wait)
        continue
      }
      const { runId } = yield* Route.along(rootId, wait.path)
      if (!states.has(runId)) states.set(runId, yield* readable(runId))
      const state = states.get(runId)
      const call = state && callOf(state, wait.id)
      found.push(call === undefined ? wait : { ...wait, arguments: call.arguments })
    }
    return found
  })

/** One that is damaged is no reason to say nothing of its root: whoever answers it is told. */
const readable = (runId: string) =>
  Effect.gen(function* () {
    const seen = yield* Outside.find(runId)
    return seen && (yield* Stored.load(runId, seen.entry.seq))
  }).pipe(Effect.catchTag("CheckpointCorrupt", () => Effect.succeed(undefined)))

/** The same of an Outcome. */
export const told = <A>(rootId: string, outcome: Outcome<A>): Effect.Effect<Outcome<A>, ReadError, CheckpointStore> =>
  outcome._tag === "Suspended"
    ? Effect.map(described(rootId, outcome.waiting), (waiting) => ({ ...outcome, waiting }))
    : Effect.succeed(outcome)
