/**
 * Takes over Runs that nobody drives: a worker calls `recover` again and again.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { Agent, Services } from "./Agent.ts"
import { boundedStore } from "./Bounded.ts"
import type { CheckpointStore, Entry, StoreError } from "./CheckpointStore.ts"
import type { Outcome } from "./Outcome.ts"
import { Owner } from "./Owner.ts"
import { type Lift, lift } from "./RunError.ts"
import { goOn, type ResumeError } from "./Start.ts"

/** What became of one Run of a sweep. */
export type Recovered =
  | { readonly _tag: "Driven"; readonly runId: string; readonly outcome: Outcome<unknown> }
  | { readonly _tag: "Failed"; readonly runId: string; readonly error: ResumeError }
  /** A bug of the application or of a plugin ended its Attempt; the others of the sweep go on. */
  | { readonly _tag: "Died"; readonly runId: string; readonly defect: unknown }

export interface RecoverInput {
  /** How many Runs are driven at once. Default 10. */
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
  const byName = new Map(agents.map((agent) => [agent.name, agent]))
  const sweep = Effect.gen(function* () {
    const due = yield* lift(dueRuns([...byName.keys()]))
    const one = (entry: Entry) => {
      const agent = byName.get(entry.agent)
      return agent === undefined ? Effect.succeed([]) : driven(agent, entry.runId)
    }
    return (yield* Effect.forEach(due, one, { concurrency })).flat()
  })
  // Each Run is driven by its own agent, whose services are among those of all of them.
  return sweep as Effect.Effect<ReadonlyArray<Recovered>, Lift<StoreError>, Services<As[number]> | CheckpointStore>
}

const driven = (agent: Agent, runId: string) =>
  Effect.match(goOn(agent, runId), {
    onSuccess: (outcome): ReadonlyArray<Recovered> => [{ _tag: "Driven", runId, outcome }],
    onFailure: (error): ReadonlyArray<Recovered> =>
      error.reason._tag === "RunBusy" ? [] : [{ _tag: "Failed", runId, error }]
  }).pipe(Effect.catchDefect((defect) => Effect.succeed<ReadonlyArray<Recovered>>([{ _tag: "Died", runId, defect }])))

const dueRuns = Effect.fnUntraced(function* (
  agent: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<Entry>, StoreError, CheckpointStore> {
  const store = yield* boundedStore
  const { isDead } = yield* Owner
  const due: Array<Entry> = []
  let after: { readonly runId: string; readonly updatedAt: number } | undefined
  while (true) {
    const page = yield* store.list({ agent, due: true, parent: null }, { limit: 100, ...(after && { after }) })
    for (const entry of page) {
      const driven = entry.live && entry.owner !== undefined && !(yield* isDead(entry.owner))
      if (!driven && (entry.status === "running" || entry.status === "waiting")) due.push(entry)
    }
    after = page.at(-1)
    if (page.length < 100) return due
  }
})
