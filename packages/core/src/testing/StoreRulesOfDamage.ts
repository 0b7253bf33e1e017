/**
 * The rules of the store suite about a Run whose stored head is damaged: told, left as it is, nobody else's trouble, and gone
 * when somebody asks for just that (C5).
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { type Capabilities, type Rule, type Skipped, head, holds, needing, same, swept } from "./StoreRules.ts"

/** CS57, CS59. */
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
  ),
  needing(
    "CS59 a damaged Run is removed when that is asked for, and only then",
    "damage",
    capabilities,
    (bench, damage) =>
      Effect.gen(function* () {
        const { append, bodies, fresh, store } = bench
        const [runId, other, agent] = [fresh("b"), fresh("c"), fresh("agent")]
        for (const id of [runId, other]) yield* append({ runId: id, events: ["1", "2"], head: head({ agent }) })
        yield* same("as a damaged one, while it is sound", yield* store.remove(runId, "damaged"), false)
        yield* same("an unknown one", yield* store.remove(fresh("unknown"), "damaged"), false)
        yield* same("its events", yield* bodies(runId), ["1", "2"])
        yield* Effect.asVoid(damage(runId))
        const refused = yield* Effect.match(store.remove(runId, 2), {
          onSuccess: (removed) => (removed ? "removed" : "kept"),
          onFailure: ({ _tag }) => _tag
        })
        yield* holds(`with its seq: ${refused}`, refused !== "removed")
        yield* same("as a damaged one", yield* store.remove(runId, "damaged"), true)
        yield* same("its head", yield* store.head(runId), undefined)
        yield* same("its events then", yield* bodies(runId), [])
        yield* same("again", yield* store.remove(runId, "damaged"), false)
        yield* same("beginning it anew", yield* append({ runId, events: ["new"], head: head({ agent }) }), {
          _tag: "Committed"
        })
        yield* same("its events anew", yield* bodies(runId), ["new"])
        yield* same("the other one's", yield* bodies(other), ["1", "2"])
        const both = [runId, other].toSorted()
        yield* same("what sweeps find", yield* swept(bench, agent, both), both)
      })
  )
]
