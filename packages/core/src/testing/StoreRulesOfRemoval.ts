/**
 * The rules of the store suite about removals that meet something else: an append, a new Run of that id, a death (C1, C5).
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { Peer } from "./StorePeer.ts"
import {
  type Bench,
  type Capabilities,
  type Rule,
  type Skipped,
  head as headOf,
  needing,
  rule,
  same,
  swept
} from "./StoreRules.ts"

/** CS56, CS58, CS64. */
export const rules = (capabilities: Capabilities): ReadonlyArray<Rule | Skipped> => [
  rule(
    "CS56 of a removal and an append at once exactly one wins, and a new Run of that id has nothing of the old one, 50 rounds",
    capabilities,
    (bench) =>
      Effect.gen(function* () {
        const { fresh } = bench
        for (let round = 0; round < 50; round++) yield* raced(bench, fresh("a"), round)
      })
  ),
  rule(
    "CS58 of a Run that was removed and begun again, the owner of the former life appends, renews and releases nothing",
    capabilities,
    (bench) =>
      Effect.gen(function* () {
        for (const claims of [0, 1]) yield* begunAgain(bench, claims)
      })
  ),
  needing(
    "CS64 a process killed while it begins and removes a Run leaves the whole Run or nothing of it",
    "peer",
    capabilities,
    (bench, peer) =>
      Effect.gen(function* () {
        for (let life = 0; life < 2; life++)
          yield* Effect.scoped(Effect.flatMap(peer, (one) => killed(bench, one, life)))
      })
  )
]

/** A removal, an append by who knows the old Run, and one that begins the id anew; who is asked first differs by round. */
const raced = Effect.fnUntraced(function* ({ append, bodies, store }: Bench, runId: string, round: number) {
  const old = [`${round} old`, `${round} old+`]
  const [late, anew] = [`${round} late`, `${round} new`]
  yield* same("beginning it", yield* append({ runId, events: old }), { _tag: "Committed" })
  // Later and later, so that it meets the appends in each of their steps.
  const turns = Effect.forEach(Array.from({ length: Math.floor(round / 2) }), () => Effect.yieldNow, { discard: true })
  const removing = Effect.andThen(turns, store.remove(runId, 2))
  const appending = append({ runId, expectedSeq: 2, events: [late] })
  const beginning = append({ runId, events: [anew] })
  const race =
    round % 2 === 0
      ? { removed: removing, late: appending, begun: beginning }
      : { late: appending, begun: beginning, removed: removing }
  const { begun, late: landed, removed } = yield* Effect.all(race, { concurrency: "unbounded" })
  const what = `round ${round} (removed: ${removed}, the append: ${landed._tag}, the beginning: ${begun._tag})`
  yield* same(`the append in ${what}`, landed._tag, removed ? "Conflict" : "Committed")
  const left = begun._tag === "Committed" ? [anew] : []
  const events = yield* bodies(runId)
  yield* same(`the events after ${what}`, events, removed ? left : [...old, late])
  yield* same(`the head after ${what}`, (yield* store.head(runId))?.seq ?? 0, events.length)
  yield* same(`removing the rest after ${what}`, yield* store.remove(runId, events.length), events.length > 0)
})

/**
 * Epochs begin anew in the second life, so both owners have the same one; and the same seq, so that only the name tells them
 * apart. A life begins under an epoch, or is accepted and then claimed.
 */
const begunAgain = Effect.fnUntraced(function* ({ append, bodies, fresh, store, ttlMillis }: Bench, claims: number) {
  const runId = fresh(`a${claims}`)
  const lease = { ttlMillis: ttlMillis * 100 }
  const begin = (owner: string) =>
    claims === 0
      ? append({ runId, epoch: 1, lease: { ...lease, owner }, events: [owner] })
      : Effect.andThen(append({ runId, events: [owner] }), store.claim({ runId, owner, ...lease }))
  const old = { runId, epoch: 1, owner: "old" }
  const late = append({ ...old, expectedSeq: 1, events: ["late"], head: headOf({ body: "late" }) })
  yield* begin("old")
  yield* same("removing the first life", yield* store.remove(runId, 1), true)
  yield* begin("new")
  const before = yield* store.head(runId)
  yield* same("who holds the second life", [before?.owner, before?.epoch, before?.live], ["new", 1, true])
  yield* same("the old owner's append", yield* late, { _tag: "Fenced" })
  yield* same("its renewal", yield* store.renew({ ...old, ttlMillis: 1 }), false)
  yield* store.release(old)
  yield* same("the head after all that", yield* store.head(runId), before)
  yield* same("a claim", (yield* store.claim({ runId, owner: "three", ttlMillis }))._tag, "Busy")
  yield* store.release({ ...old, owner: "new" })
  yield* same("the old owner's append to a Run that nobody holds", yield* late, { _tag: "Fenced" })
  yield* same("its renewal then", yield* store.renew({ ...old, ttlMillis: lease.ttlMillis }), false)
  yield* same("the events", yield* bodies(runId), ["new"])
  yield* same("removing the rest", yield* store.remove(runId, 1), true)
})

/** One life of a peer that is killed amid beginnings and removals. */
const killed = Effect.fnUntraced(function* (bench: Bench, peer: Peer, life: number) {
  const { advance, append, bodies, fresh, store } = bench
  const [runId, agent, batch] = [fresh(`a${life}`), fresh(`agent${life}`), 7]
  const busy = yield* Effect.forkChild(peer.ask({ _tag: "Redo", runId, batch, agent }))
  yield* advance(11 + life * 29)
  yield* peer.kill
  yield* Fiber.interrupt(busy)
  const events = yield* bodies(runId)
  const round = events[0]?.split("/")[0] ?? ""
  const whole = Array.from({ length: batch }, (_, i) => `${round}/${i}`)
  yield* same("the events", events, events.length === 0 ? [] : whole)
  const entry = yield* store.head(runId)
  const head = events.length === 0 ? [0, undefined] : [batch, round]
  yield* same("the head", [entry?.seq ?? 0, entry?.body], head)
  const next = yield* append({ runId, expectedSeq: events.length, head: headOf({ agent }) })
  yield* same("the next append", next._tag, "Committed")
  yield* same("what sweeps find", yield* swept(bench, agent, [runId]), [runId])
  yield* same("removing it", yield* store.remove(runId, events.length + 1), true)
  yield* same("what sweeps find then", yield* swept(bench, agent, []), [])
})
