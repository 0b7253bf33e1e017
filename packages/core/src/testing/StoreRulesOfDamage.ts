/**
 * The rule of the store suite about a Run whose stored head is damaged: told, left as it is, and nobody else's trouble (C5).
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { type Capabilities, type Rule, type Skipped, head, holds, needing, same } from "./StoreRules.ts"

/** CS57. */
export const rules = (capabilities: Capabilities): ReadonlyArray<Rule | Skipped> => [
  needing(
    "CS57 a damaged Run is CheckpointCorrupt and is left as it is, and lists give all the others",
    "damage",
    capabilities,
    (bench, damage) =>
      Effect.gen(function* () {
        const { append, fresh, store } = bench
        const [runId, agent] = [fresh("b"), fresh("agent")]
        const others = ["a", "c", "d"].map(fresh)
        for (const [updatedAt, id] of [...others, runId].toSorted().entries()) {
          yield* append({ runId: id, events: ["1", "2"], head: head({ agent, updatedAt, waiting: ["approval"] }) })
        }
        const bytes = yield* damage(runId)
        const before = yield* bytes
        const failure = yield* Effect.match(store.head(runId), {
          onSuccess: (entry) => [entry === undefined ? "an unknown Run" : "a head"],
          onFailure: (error) => [error._tag, error._tag === "CheckpointCorrupt" ? error.runId : undefined]
        })
        yield* same("its head", failure, ["CheckpointCorrupt", runId])
        const said: Array<string> = []
        const listening = Logger.layer([Logger.make(({ message }) => void said.push(String(message)))])
        for (const filter of [
          { agent: [agent] },
          { agent: [agent], due: true },
          { agent: [agent], waiting: "approval" }
        ]) {
          for (const limit of [1, 2, 3, 100]) {
            // A short page would end a sweep before the Runs behind it.
            const listed = Effect.match(store.list(filter, { limit }), {
              onSuccess: (rows) => rows.map((row) => row.runId),
              onFailure: ({ _tag }) => [_tag]
            })
            yield* same(
              `the list by ${JSON.stringify(filter)}`,
              yield* Effect.provide(listed, listening),
              others.slice(0, limit)
            )
          }
        }
        yield* holds(
          "the log names it",
          said.some((line) => line.includes(runId))
        )
        const begun = yield* Effect.match(append({ runId, events: ["anew"] }), {
          onSuccess: ({ _tag }) => _tag,
          onFailure: ({ _tag }) => _tag
        })
        yield* holds("an append at 0 does not begin it anew", begun !== "Committed")
        yield* same("what is stored of it", yield* bytes, before)
      })
  )
]
