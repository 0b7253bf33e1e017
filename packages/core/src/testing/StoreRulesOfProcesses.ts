/**
 * The rules of the store suite about several processes over the same data, and about hints between them.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Stream from "effect/Stream"
import {
  type Bench,
  type Capabilities,
  type Rule,
  type Skipped,
  head,
  holds,
  needing,
  same,
  swept
} from "./StoreRules.ts"
import type { Append } from "../CheckpointStore.ts"
import type { Answer, Order, Peer } from "./StorePeer.ts"

const names = ["one", "two"] as const

/** Both do theirs at the same moment. */
const race = (
  peers: ReadonlyArray<Peer>,
  order: (name: string) => Order
): Effect.Effect<ReadonlyArray<Answer>, unknown> =>
  Effect.forEach(peers, (peer, i) => peer.ask(order(names[i] ?? "")), { concurrency: "unbounded" })

/** The names of those whose answer was that. */
const whose = (answers: ReadonlyArray<Answer>, tag: Answer["_tag"]): ReadonlyArray<string> =>
  answers.flatMap(({ _tag }, i) => (_tag === tag ? [names[i] ?? ""] : []))

/** CS61 to CS63, CS70. */
export const rules = (capabilities: Capabilities): ReadonlyArray<Rule | Skipped> => [
  needing(
    "CS61 of two processes that append at once exactly one wins, 100 rounds",
    "peer",
    capabilities,
    (bench, peer) =>
      Effect.gen(function* () {
        const { bodies, fresh, store } = bench
        const runId = fresh("a")
        const peers = yield* Effect.all([peer, peer], { concurrency: "unbounded" })
        const all: Array<string> = []
        for (let round = 0; round < 100; round++) {
          const batch = (name: string) => [`${round} ${name}`, `${round} ${name}+`]
          const answers = yield* race(peers, (name) => ({
            _tag: "Append",
            append: { runId, epoch: 0, expectedSeq: round * 2, events: batch(name), head: head({ body: name }) }
          }))
          const winners = whose(answers, "Committed")
          yield* same(`winners of round ${round}, of ${JSON.stringify(answers)}`, winners.length, 1)
          const loser = answers.find(({ _tag }) => _tag !== "Committed")
          yield* same("what the other one is told", loser, { _tag: "Conflict", seq: round * 2 + 2 })
          all.push(...winners.flatMap(batch))
          const entry = yield* store.head(runId)
          yield* same("the head", [entry?.seq, entry?.body], [all.length, winners[0]])
        }
        yield* same("the events", yield* bodies(runId), all)
      })
  ),
  needing(
    "CS62 of two processes that claim at once exactly one gets the Run, 50 rounds",
    "peer",
    capabilities,
    (bench, peer) =>
      Effect.gen(function* () {
        const { append, fresh, store, ttlMillis } = bench
        const peers = yield* Effect.all([peer, peer], { concurrency: "unbounded" })
        for (let round = 0; round < 50; round++) {
          const runId = fresh(`a${round}`)
          yield* append({ runId })
          const claim = (owner: string): Order => ({
            _tag: "Claim",
            claim: { runId, owner, ttlMillis: ttlMillis * 100 }
          })
          const answers = yield* race(peers, claim)
          const winners = whose(answers, "Claimed")
          yield* same(`winners of round ${round}, of ${JSON.stringify(answers)}`, winners.length, 1)
          yield* same("those that are told that it is busy", whose(answers, "Busy").length, 1)
          const entry = yield* store.head(runId)
          yield* same("the owner", [entry?.owner, entry?.epoch, entry?.live], [winners[0], 1, true])
        }
      })
  ),
  needing(
    "CS63 a process killed in a stream of appends leaves whole batches, and all that were answered",
    "peer",
    capabilities,
    (bench, peer) =>
      Effect.gen(function* () {
        for (let life = 0; life < 3; life++)
          yield* Effect.scoped(Effect.flatMap(peer, (one) => killed(bench, one, life)))
      })
  ),
  needing(
    "CS70 watch hints at an append by an outside writer, and ends when nobody watches",
    "watch",
    capabilities,
    (bench) =>
      Effect.gen(function* () {
        const { advance, append, fresh, store } = bench
        const runId = fresh("a")
        yield* append({ runId })
        if (store.watch === undefined) return yield* holds("it has `watch`", false)
        const hinted = yield* Latch.make()
        const watching = yield* Effect.forkChild(Stream.runForEach(store.watch(runId), () => hinted.open))
        const unknown = yield* Effect.forkChild(Stream.runDrain(store.watch(fresh("b"))))
        // A hint may be lost, the first ones before the subscription stands; but not all of them.
        const told = yield* Effect.forkChild(hinted.await)
        for (let seq = 1; seq <= 50 && told.pollUnsafe() === undefined; seq++) {
          yield* append({ runId, expectedSeq: seq })
          yield* advance(100)
        }
        yield* holds("at least one hint of 50 appends", told.pollUnsafe() !== undefined)
        yield* same("the watch of an unknown Run", unknown.pollUnsafe()?._tag ?? "goes on", "goes on")
        for (const fiber of [watching, unknown, told]) yield* Fiber.interrupt(fiber)
        yield* same("a Run that nobody watches any more", (yield* append({ runId: fresh("c") }))._tag, "Committed")
      })
  )
]

/** One life of a peer: answered appends, then a stream of them in whose middle it is killed. */
const killed = Effect.fnUntraced(function* (bench: Bench, peer: Peer, life: number) {
  const { advance, bodies, fresh, store } = bench
  const [answered, filled, agent] = [fresh(`a${life}`), fresh(`f${life}`), fresh(`agent${life}`)]
  for (let seq = 0; seq < 15; seq += 3) {
    const append: Append = {
      runId: answered,
      epoch: 0,
      expectedSeq: seq,
      events: [`${seq}`, "b", "c"],
      head: head({ agent })
    }
    yield* same("an append of the peer", yield* peer.ask({ _tag: "Append", append }), { _tag: "Committed" })
  }
  const filling = yield* Effect.forkChild(peer.ask({ _tag: "Fill", runId: filled, batch: 7, agent }))
  yield* advance(5 + life * 29)
  yield* peer.kill
  yield* Fiber.interrupt(filling)
  const kept = Array.from({ length: 5 }, (_, i) => [`${i * 3}`, "b", "c"]).flat()
  yield* same("what was answered", yield* bodies(answered), kept)
  const events = yield* bodies(filled)
  yield* same(
    "the batches",
    events,
    Array.from(events, (_, i) => `${Math.floor(i / 7)}/${i % 7}`)
  )
  yield* same("the part of a batch", events.length % 7, 0)
  const entry = yield* store.head(filled)
  const last = events.length === 0 ? undefined : `${events.length / 7 - 1}`
  yield* same("the head", [entry?.seq ?? 0, entry?.body], [events.length, last])
  const next = yield* bench.append({ runId: filled, expectedSeq: events.length, head: head({ agent }) })
  yield* same("the next append", next._tag, "Committed")
  const both = [answered, filled].toSorted()
  yield* same("what sweeps find", yield* swept(bench, agent, both), both)
})
