/**
 * The rules of the store suite about appends and reads (C1, C2).
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { type Capabilities, type Rule, head, holds, rule, same } from "./StoreRules.ts"

/** One MiB of text that is not all one character. */
const mebibyte = "0123456789abcdef".repeat(65_536)
/** What a store must not change: JSON with escapes, other scripts, emoji, quotes, what looks like code. */
const contents = [
  "",
  " ",
  '{"a":"\\u0000 \\ud800 \\n"}',
  "žluťoučký kůň 漢字 🧭👩‍👩‍👧 \u2028\u2029\uFEFF",
  `'"; DROP TABLE events; -- \\ % _ ${"`"}`,
  "0",
  "null",
  "undefined",
  mebibyte
]

const committed = { _tag: "Committed" } as const
const fenced = { _tag: "Fenced" } as const
const conflict = (seq: number) => ({ _tag: "Conflict", seq }) as const

/** CS01 to CS16. */
export const rules = (capabilities: Capabilities): ReadonlyArray<Rule> => [
  rule("CS01 an unknown Run has no events and no head", capabilities, ({ bodies, fresh, store }) =>
    Effect.gen(function* () {
      yield* same("its events", yield* bodies(fresh("a")), [])
      yield* same("its head", yield* store.head(fresh("a")), undefined)
    })
  ),
  rule("CS02 keeps order and content: empty, 1 MiB, Unicode, escapes", capabilities, ({ append, bodies, fresh }) =>
    Effect.gen(function* () {
      const runId = fresh("a")
      yield* append({ runId, events: contents })
      yield* append({ runId, expectedSeq: contents.length, events: [""] })
      yield* append({ runId, expectedSeq: contents.length + 1, events: contents.toReversed() })
      yield* same("its events", yield* bodies(runId), [...contents, "", ...contents.toReversed()])
    })
  ),
  rule("CS03 keeps every field of a head, replaces all of them with each append", capabilities, (bench) =>
    Effect.gen(function* () {
      const { append, fresh, store } = bench
      const runId = fresh("a")
      const full = head({
        status: "waiting",
        agent: "agent 🧭 '\"",
        session: "s/1 ž",
        parent: "p:1",
        waiting: ["approval", "retry"],
        wakeAt: 1_700_000_000_123,
        updatedAt: 1_700_000_000_456,
        body: mebibyte
      })
      yield* append({ runId, head: full })
      yield* same("the head", yield* store.head(runId), { ...full, runId, seq: 1, epoch: 0, live: false })
      yield* append({
        runId,
        expectedSeq: 1,
        events: ["1", "2"],
        head: head({ updatedAt: 2, body: contents[3] ?? "" })
      })
      const next = { ...head({ updatedAt: 2, body: contents[3] ?? "" }), runId, seq: 3, epoch: 0, live: false }
      yield* same("the next head", yield* store.head(runId), next)
    })
  ),
  rule("CS04 numbers events from 1 without gaps, and keeps the epoch of each writer", capabilities, (bench) =>
    Effect.gen(function* () {
      const { append, fresh, store, ttlMillis } = bench
      const runId = fresh("a")
      yield* append({ runId, epoch: 1, lease: { owner: "o", ttlMillis }, events: ["a", "b"] })
      yield* append({ runId, epoch: 0, expectedSeq: 2, events: ["c"] })
      yield* append({ runId, epoch: 1, expectedSeq: 3, events: ["d"] })
      const events = yield* store.read(runId, { after: 0, limit: 10 })
      yield* same(
        "seq and epoch",
        events.map(({ epoch, seq }) => [seq, epoch]),
        [
          [1, 1],
          [2, 1],
          [3, 0],
          [4, 1]
        ]
      )
    })
  ),
  rule("CS05 marks the last event of each append, and no other", capabilities, ({ append, fresh, store }) =>
    Effect.gen(function* () {
      const runId = fresh("a")
      yield* append({ runId, events: ["a", "b", "c"] })
      yield* append({ runId, expectedSeq: 3, events: ["d"] })
      yield* append({ runId, expectedSeq: 4, events: ["e", "f"] })
      const events = yield* store.read(runId, { after: 0, limit: 10 })
      yield* same(
        "ends",
        events.map(({ ends }) => ends),
        [false, false, true, true, false, true]
      )
      const some = yield* store.read(runId, { after: 1, limit: 1 })
      yield* same(
        "ends of a page that stops inside an append",
        some.map(({ ends, seq }) => [seq, ends]),
        [[2, false]]
      )
    })
  ),
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
  rule("CS07 an append with another epoch is Fenced and writes nothing (C2)", capabilities, (bench) =>
    Effect.gen(function* () {
      const { append, bodies, fresh, store, ttlMillis } = bench
      const runId = fresh("a")
      yield* append({ runId, events: ["a"], head: head({ body: "first" }) })
      yield* store.claim({ runId, owner: "one", ttlMillis })
      yield* store.claim({ runId, owner: "two", ttlMillis, takeover: 1 })
      for (const epoch of [1, 3, 100]) {
        const result = yield* append({ runId, epoch, expectedSeq: 1, events: ["x"], head: head({ body: "never" }) })
        yield* same(`an append with epoch ${epoch}`, result, fenced)
      }
      yield* same("its events", yield* bodies(runId), ["a"])
      yield* same("its head", (yield* store.head(runId))?.body, "first")
      yield* same("the owner's append", yield* append({ runId, epoch: 2, expectedSeq: 1 }), committed)
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
      yield* same("the owner's next append", yield* append({ runId, epoch: 1, expectedSeq: 2 }), committed)
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
  rule("CS14 reads page by page, across appends", capabilities, ({ append, fresh, store }) =>
    Effect.gen(function* () {
      const runId = fresh("a")
      const all = Array.from({ length: 25 }, (_, i) => `${i + 1}`)
      for (let i = 0; i < 25; i += 5) yield* append({ runId, expectedSeq: i, events: all.slice(i, i + 5) })
      for (const [after, limit] of [
        [0, 25],
        [0, 1],
        [3, 4],
        [5, 5],
        [7, 11],
        [24, 10],
        [25, 10],
        [100, 10],
        [0, 1000]
      ] as const) {
        const page = yield* store.read(runId, { after, limit })
        const expected = all.slice(after, after + limit)
        yield* same(
          `${limit} events after ${after}`,
          page.map(({ body, seq }) => [body, seq]),
          expected.map((body) => [body, Number(body)])
        )
      }
    })
  ),
  rule("CS15 keeps 5,000 events in one append and reads them in one page", capabilities, (bench) =>
    Effect.gen(function* () {
      const { append, fresh, store } = bench
      const runId = fresh("a")
      const events = Array.from({ length: 5000 }, (_, i) => `{"i":${i}}`)
      yield* append({ runId, events })
      const page = yield* store.read(runId, { after: 0, limit: 5000 })
      yield* holds(
        "all of them, in order",
        page.length === 5000 && page.every(({ body, seq }, i) => body === events[i] && seq === i + 1)
      )
    })
  ),
  ...(capabilities.reopen === undefined ? [] : [reopened(capabilities, capabilities.reopen)])
]

const reopened = (capabilities: Capabilities, reopen: NonNullable<Capabilities["reopen"]>): Rule =>
  rule("CS16 everything is there when another process opens it", capabilities, (bench) =>
    Effect.gen(function* () {
      const { append, fresh, store, ttlMillis } = bench
      const runId = fresh("a")
      yield* append({ runId, epoch: 1, lease: { owner: "o", ttlMillis: ttlMillis * 100 }, events: contents })
      yield* append({ runId, epoch: 1, expectedSeq: contents.length, events: ["b"], head: head({ body: "last" }) })
      const other = yield* reopen
      const range = { after: 0, limit: 100 }
      yield* same("its events", yield* other.read(runId, range), yield* store.read(runId, range))
      yield* same("its head", yield* other.head(runId), yield* store.head(runId))
      const claimed = yield* other.claim({ runId, owner: "p", ttlMillis })
      yield* same("its lease", claimed, { _tag: "Busy", epoch: 1, owner: "o" })
      yield* same("a takeover", (yield* other.claim({ runId, owner: "p", ttlMillis, takeover: 1 }))._tag, "Claimed")
      yield* same(
        "the first one's append",
        yield* append({ runId, epoch: 1, expectedSeq: contents.length + 1 }),
        fenced
      )
    })
  )
