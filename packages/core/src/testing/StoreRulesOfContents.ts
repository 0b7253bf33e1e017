/**
 * The rules of the store suite about what is kept and how it is read.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { type Capabilities, type Rule, type Skipped, head, holds, needing, rule, same, timeless } from "./StoreRules.ts"

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

/** Appends whose bodies a store that joins or splits lines would mix up. */
const brokenLines: ReadonlyArray<ReadonlyArray<string>> = [
  ["a\nb", "", "\n"],
  ["\r\n"],
  ["{}", "[]"],
  [""],
  ["", ""],
  ["\n"],
  ["\\n", "\r", "\t\v\f", "\u0085\u2028\u2029"],
  ['{"a":"\\u0000"}', "\\u0000", "\\0", "x\\u0000\n\\ud83d"],
  ["a\n", "\nb", ",", "\n,\n"]
]

/** CS01 to CS05, CS14 to CS18. */
export const rules = (capabilities: Capabilities): ReadonlyArray<Rule | Skipped> => [
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
      yield* append({ runId, epoch: 1, owner: "o", expectedSeq: 3, events: ["d"] })
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
  needing("CS16 everything is there when another process opens it", "reopen", capabilities, (bench, reopen) =>
    Effect.gen(function* () {
      const { append, fresh, store, ttlMillis } = bench
      const runId = fresh("a")
      const owned = { epoch: 1, owner: "o" }
      yield* append({ runId, ...owned, lease: { owner: "o", ttlMillis: ttlMillis * 100 }, events: contents })
      yield* append({ runId, ...owned, expectedSeq: contents.length, events: ["b"], head: head({ body: "last" }) })
      const other = timeless(yield* reopen)
      const range = { after: 0, limit: 100 }
      yield* same("its events", yield* other.read(runId, range), yield* store.read(runId, range))
      yield* same("its head", yield* other.head(runId), yield* store.head(runId))
      const claimed = yield* other.claim({ runId, owner: "p", ttlMillis })
      yield* same("its lease", claimed, { _tag: "Busy", epoch: 1, owner: "o" })
      yield* same("a takeover", (yield* other.claim({ runId, owner: "p", ttlMillis, takeover: 1 }))._tag, "Claimed")
      yield* same("the first one's append", yield* append({ runId, ...owned, expectedSeq: contents.length + 1 }), {
        _tag: "Fenced"
      })
    })
  ),
  rule(
    "CS17 keeps line breaks, and NUL as the Journal escapes it, whatever stands beside them",
    capabilities,
    (bench) =>
      Effect.gen(function* () {
        const { append, bodies, fresh, store } = bench
        const runId = fresh("a")
        let seq = 0
        for (const events of brokenLines) {
          yield* append({ runId, expectedSeq: seq, events, head: head({ body: events.join("\n"), updatedAt: seq }) })
          seq += events.length
          yield* same("the body of the head", (yield* store.head(runId))?.body, events.join("\n"))
        }
        yield* same("its events", yield* bodies(runId), brokenLines.flat())
      })
  ),
  rule(
    "CS18 a page of read is short only at the end, wherever appends end and however long they are",
    capabilities,
    (bench) =>
      Effect.gen(function* () {
        const { append, fresh, store } = bench
        const runId = fresh("a")
        const all: Array<readonly [number, string, boolean]> = []
        for (const size of [1, 7, 2, 10, 3, 7]) {
          const events = Array.from({ length: size }, (_, i) => `e${all.length + i + 1}`)
          yield* append({ runId, expectedSeq: all.length, events })
          for (const [i, body] of events.entries()) all.push([all.length + 1, body, i === size - 1])
        }
        const page = (after: number, limit: number) =>
          Effect.map(store.read(runId, { after, limit }), (events) =>
            events.map(({ body, ends, seq }) => [seq, body, ends] as const)
          )
        for (let after = 0; after <= 31; after += 1) {
          for (const limit of [0, 1, 2, 5, 6, 11, 12]) {
            yield* same(`${limit} events after ${after}`, yield* page(after, limit), all.slice(after, after + limit))
          }
        }
        yield* same("of an unknown Run", yield* store.read(fresh("b"), { after: 3, limit: 2 }), [])
        const large = fresh("c")
        for (let i = 0; i < 8; i += 2) {
          yield* append({ runId: large, expectedSeq: i, events: [`${i}${mebibyte}`, `${i + 1}${mebibyte}`] })
        }
        const whole = yield* store.read(large, { after: 0, limit: 8 })
        yield* holds(
          "8 MiB in one page",
          whole.length === 8 && whole.every(({ body }, i) => body === `${i}${mebibyte}`)
        )
      })
  )
]
