/**
 * The rules of the store suite about appends: compare-and-set, all or nothing (C1, C2).
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { type Capabilities, type Rule, head, holds, rule, same } from "./StoreRules.ts"

const committed = { _tag: "Committed" } as const
const fenced = { _tag: "Fenced" } as const
const conflict = (seq: number) => ({ _tag: "Conflict", seq }) as const

/** CS06 to CS13, CS60. */
export const rules = (capabilities: Capabilities): ReadonlyArray<Rule> => [
  rule("CS06 an append at another seq is a Conflict with the present one and writes nothing", capabilities, (bench) =>
    Effect.gen(function* () {
      const { append, bodies, fresh, store } = bench
      const runId = fresh("a")
      yield* same("an append ahead of an unknown Run", yield* append({ runId, expectedSeq: 1 }), conflict(0))
      yield* same("which creates nothing", yield* store.head(runId), undefined)
      yield* append({ runId, events: ["a", "b"], head: head({ body: "first" }) })
      for (const expectedSeq of [0, 1, 3, 100]) {
        const result = yield* append({ runId, expectedSeq, events: ["x", "y"], head: head({ body: "never" }) })
        yield* same(`an append at ${expectedSeq}`, result, conflict(2))
      }
      yield* same("its events", yield* bodies(runId), ["a", "b"])
      yield* same("its head", (yield* store.head(runId))?.body, "first")
    })
  ),
  rule("CS07 an append with another epoch or owner is Fenced and writes nothing (C2)", capabilities, (bench) =>
    Effect.gen(function* () {
      const { append, bodies, fresh, store, ttlMillis } = bench
      const runId = fresh("a")
      yield* append({ runId, events: ["a"], head: head({ body: "first" }) })
      yield* store.claim({ runId, owner: "one", ttlMillis })
      yield* store.claim({ runId, owner: "two", ttlMillis, takeover: 1 })
      for (const [epoch, owner] of [
        [1, "one"],
        [3, "two"],
        [100, "two"],
        [2, "one"],
        [2, ""]
      ] as const) {
        const result = yield* append({
          runId,
          epoch,
          owner,
          expectedSeq: 1,
          events: ["x"],
          head: head({ body: "never" })
        })
        yield* same(`an append of "${owner}" with epoch ${epoch}`, result, fenced)
      }
      yield* same("its events", yield* bodies(runId), ["a"])
      yield* same("its head", (yield* store.head(runId))?.body, "first")
      yield* same("the owner's append", yield* append({ runId, epoch: 2, owner: "two", expectedSeq: 1 }), committed)
    })
  ),
  rule("CS08 a writer without an epoch is bound by seq alone and takes nothing from the owner", capabilities, (bench) =>
    Effect.gen(function* () {
      const { append, fresh, store, ttlMillis } = bench
      const runId = fresh("a")
      yield* append({ runId, epoch: 1, lease: { owner: "o", ttlMillis: ttlMillis * 100 } })
      yield* same("an outside append", yield* append({ runId, expectedSeq: 1, events: ["x"] }), committed)
      const entry = yield* store.head(runId)
      yield* same("the owner", [entry?.owner, entry?.epoch, entry?.live], ["o", 1, true])
      yield* same("a late outside append", yield* append({ runId, expectedSeq: 1 }), conflict(2))
      yield* same("the owner's next append", yield* append({ runId, epoch: 1, owner: "o", expectedSeq: 2 }), committed)
    })
  ),
  rule("CS09 of 20 appends at once exactly one wins, 100 rounds", capabilities, ({ append, bodies, fresh }) =>
    Effect.gen(function* () {
      const runId = fresh("a")
      for (let round = 0; round < 100; round++) {
        const race = Array.from({ length: 20 }, (_, i) =>
          append({ runId, expectedSeq: round, events: [`${round}/${i}`], head: head({ body: `${i}` }) })
        )
        const results = yield* Effect.all(race, { concurrency: "unbounded" })
        const winners = results.flatMap(({ _tag }, i) => (_tag === "Committed" ? [i] : []))
        yield* same(`winners of round ${round}`, winners.length, 1)
        yield* same("what was written", (yield* bodies(runId)).slice(round), [`${round}/${winners[0]}`])
      }
    })
  ),
  rule("CS10 a batch is stored whole or not at all, together with its head", capabilities, (bench) =>
    Effect.gen(function* () {
      const { append, bodies, fresh, store } = bench
      const runId = fresh("a")
      const batch = (writer: number) => Array.from({ length: 5 }, (_, i) => `${writer}/${i}`)
      let seq = 0
      for (let round = 0; round < 20; round++) {
        const race = Array.from({ length: 8 }, (_, writer) =>
          append({ runId, expectedSeq: seq, events: batch(writer), head: head({ body: `${writer}` }) })
        )
        const results = yield* Effect.all(race, { concurrency: "unbounded" })
        const winner = results.findIndex(({ _tag }) => _tag === "Committed")
        yield* same("the batch", (yield* bodies(runId)).slice(seq), batch(winner))
        const entry = yield* store.head(runId)
        yield* same("its head", [entry?.body, entry?.seq], [`${winner}`, seq + 5])
        seq += 5
      }
    })
  ),
  rule("CS11 an append at seq 0 creates the Run, with who holds it", capabilities, (bench) =>
    Effect.gen(function* () {
      const { append, fresh, store, ttlMillis } = bench
      const [accepted, started] = [fresh("a"), fresh("b")]
      yield* same("without an owner", yield* append({ runId: accepted }), committed)
      const free = yield* store.head(accepted)
      yield* same("its owner", [free?.owner, free?.epoch, free?.live], [undefined, 0, false])
      const lease = { owner: "o", ttlMillis: ttlMillis * 100 }
      yield* same("with an owner", yield* append({ runId: started, epoch: 1, lease }), committed)
      const held = yield* store.head(started)
      yield* same("its owner", [held?.owner, held?.epoch, held?.live], ["o", 1, true])
      yield* same("creating it again", yield* append({ runId: accepted, events: ["again"] }), conflict(1))
    })
  ),
  rule("CS12 of two that create a Run at once one wins, and holds it", capabilities, (bench) =>
    Effect.gen(function* () {
      const { append, bodies, fresh, store, ttlMillis } = bench
      for (let round = 0; round < 20; round++) {
        const runId = fresh(`a${round}`)
        for (const owner of ["one", "two"]) {
          const claimed = yield* store.claim({ runId, owner, ttlMillis })
          yield* same("the claim of an unknown Run", claimed, { _tag: "Claimed", epoch: 1, seq: 0 })
        }
        const create = (owner: string) =>
          append({ runId, epoch: 1, lease: { owner, ttlMillis: ttlMillis * 100 }, events: [owner, owner] })
        const results = yield* Effect.all([create("one"), create("two")], { concurrency: "unbounded" })
        const winners = results.flatMap(({ _tag }, i) => (_tag === "Committed" ? [["one", "two"][i] ?? ""] : []))
        yield* same("winners", winners.length, 1)
        yield* same("the events", yield* bodies(runId), [...winners, ...winners])
        const entry = yield* store.head(runId)
        yield* same("the owner", [entry?.owner, entry?.epoch, entry?.live], [winners[0], 1, true])
        yield* same("a claim", (yield* store.claim({ runId, owner: "three", ttlMillis }))._tag, "Busy")
      }
    })
  ),
  rule("CS13 Runs with ids that look alike do not see each other", capabilities, (bench) =>
    Effect.gen(function* () {
      const { append, bodies, fresh, store } = bench
      const base = fresh("r")
      const ids = [base, `${base}:`, `${base}.b`, `${base}_b`, `${base}-b`, `${base}:1`, `${base}1`, `${base}.b:head`]
      const all = [
        ...ids,
        ...ids.map((id) => id.toUpperCase()),
        base.slice(0, -1),
        `${base}${"x".repeat(128 - base.length)}`
      ]
      for (const runId of all) yield* append({ runId, events: [runId, "2"], head: head({ body: runId }) })
      for (const runId of all) {
        yield* same(`the events of ${runId}`, yield* bodies(runId), [runId, "2"])
        yield* same(`the head of ${runId}`, (yield* store.head(runId))?.body, runId)
      }
      yield* same("removing one", yield* store.remove(base, 2), true)
      for (const runId of all) yield* same("the others", (yield* bodies(runId)).length, runId === base ? 0 : 2)
    })
  ),
  rule(
    "CS60 an append that is interrupted lands whole or not at all, and holds up no later one",
    capabilities,
    (bench) =>
      Effect.gen(function* () {
        const { advance, append, bodies, fresh, store } = bench
        const runId = fresh("a")
        const batch = (what: string) => Array.from({ length: 5 }, (_, i) => `${what}/${i}`)
        let after = 0
        for (let round = 0; round < 30; round++) {
          const left = store.append({
            runId,
            epoch: 0,
            expectedSeq: after,
            events: batch(`l${round}`),
            head: head({ body: `l${round}` })
          })
          const fiber = yield* Effect.forkChild(left, { startImmediately: true })
          for (let turns = 0; turns < round % 10; turns++) yield* Effect.yieldNow
          if (round > 20) yield* advance(round - 20)
          yield* Fiber.interrupt(fiber)
          // It may be under way still, so a store that lets it land a moment later is right, too.
          while (true) {
            const result = yield* append({
              runId,
              expectedSeq: after,
              events: batch(`${round}`),
              head: head({ body: `${round}` })
            })
            if (result._tag === "Committed") break
            yield* holds(
              `${result._tag} at ${after} after an interruption`,
              result._tag === "Conflict" && result.seq === after + 5
            )
            after += 5
          }
          after += 5
        }
        const found = yield* bodies(runId)
        const writers = found.filter((_, i) => i % 5 === 0).map((body) => body.slice(0, -2))
        yield* same("the batches", found, writers.flatMap(batch))
        const answered = writers.filter((writer) => !writer.startsWith("l"))
        yield* same(
          "what was answered",
          answered,
          Array.from({ length: 30 }, (_, round) => `${round}`)
        )
        const entry = yield* store.head(runId)
        yield* same("the head", [entry?.seq, entry?.body], [found.length, "29"])
      })
  )
]
