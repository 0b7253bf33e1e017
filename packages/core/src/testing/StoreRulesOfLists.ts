/**
 * The rules of the store suite about lists and removal (C5).
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Filter, HeadRow, Page } from "../CheckpointStore.ts"
import {
  type Bench,
  type Capabilities,
  type Rule,
  type Skipped,
  head,
  holds,
  needing,
  rule,
  same
} from "./StoreRules.ts"

/** Ids without what `fresh` adds. */
const listed = ({ store }: Bench, filter: Filter, page: Page = { limit: 100 }) =>
  Effect.map(store.list(filter, page), (entries) => entries.map(({ runId }) => runId.split("-")[0] ?? ""))

/** Stores Runs with these heads, all of one agent of their own. */
const stored = (bench: Bench, heads: { readonly [name: string]: Partial<HeadRow> }) =>
  Effect.forEach(
    Object.entries(heads),
    ([name, fields]) =>
      bench.append({ runId: bench.fresh(name), head: head({ agent: bench.fresh("agent"), ...fields }) }),
    { discard: true }
  )

/** CS40 to CS55. */
export const rules = (capabilities: Capabilities): ReadonlyArray<Rule | Skipped> => [
  rule("CS40 lists by status, one or several", capabilities, (bench) =>
    Effect.gen(function* () {
      yield* stored(bench, { a: { status: "running" }, b: { status: "waiting" }, c: { status: "completed" } })
      const agent = [bench.fresh("agent")]
      yield* same("one", yield* listed(bench, { agent, status: ["waiting"] }), ["b"])
      yield* same("two", yield* listed(bench, { agent, status: ["completed", "running"] }), ["a", "c"])
      yield* same("none of them", yield* listed(bench, { agent, status: ["failed"] }), [])
      yield* same("no status at all", yield* listed(bench, { agent, status: [] }), [])
    })
  ),
  rule("CS41 lists by agent, one or several", capabilities, (bench) =>
    Effect.gen(function* () {
      const [one, two, three] = [bench.fresh("x"), bench.fresh("y"), bench.fresh("z")]
      yield* stored(bench, { a: { agent: one }, b: { agent: two }, c: { agent: three } })
      yield* same("one", yield* listed(bench, { agent: [two] }), ["b"])
      yield* same("two", yield* listed(bench, { agent: [three, one] }), ["a", "c"])
      yield* same("an unknown one", yield* listed(bench, { agent: [bench.fresh("other")] }), [])
    })
  ),
  rule("CS42 lists by session", capabilities, (bench) =>
    Effect.gen(function* () {
      const session = bench.fresh("session ž")
      yield* stored(bench, { a: { session }, b: { session: `${session}x` }, c: {} })
      yield* same("of the session", yield* listed(bench, { session }), ["a"])
    })
  ),
  rule("CS43 lists the children of a Run, or roots only", capabilities, (bench) =>
    Effect.gen(function* () {
      const agent = [bench.fresh("agent")]
      const parent = bench.fresh("a")
      yield* stored(bench, { a: {}, b: { parent }, c: { parent: bench.fresh("other") } })
      yield* same("its children", yield* listed(bench, { parent }), ["b"])
      yield* same("roots", yield* listed(bench, { agent, parent: null }), ["a"])
      yield* same("all", yield* listed(bench, { agent }), ["a", "b", "c"])
    })
  ),
  rule("CS44 lists by what a Run waits for", capabilities, (bench) =>
    Effect.gen(function* () {
      const agent = [bench.fresh("agent")]
      yield* stored(bench, {
        a: { waiting: ["approval"] },
        b: { waiting: ["external", "approval", "paused"] },
        c: { waiting: ["in-doubt"] },
        d: { waiting: [] }
      })
      yield* same("approval", yield* listed(bench, { agent, waiting: "approval" }), ["a", "b"])
      yield* same("paused", yield* listed(bench, { agent, waiting: "paused" }), ["b"])
      yield* same("in-doubt", yield* listed(bench, { agent, waiting: "in-doubt" }), ["c"])
      yield* same("part of a kind", yield* listed(bench, { agent, waiting: "doubt" }), [])
    })
  ),
  rule("CS45 lists what nothing happened to since a time, exclusive", capabilities, (bench) =>
    Effect.gen(function* () {
      const agent = [bench.fresh("agent")]
      yield* stored(bench, { a: { updatedAt: 10 }, b: { updatedAt: 20 }, c: { updatedAt: 30 } })
      yield* same("before 20", yield* listed(bench, { agent, updatedBefore: 20 }), ["a"])
      yield* same("before 21", yield* listed(bench, { agent, updatedBefore: 21 }), ["a", "b"])
    })
  ),
  rule("CS46 combines filters: all of them must hold", capabilities, (bench) =>
    Effect.gen(function* () {
      const session = bench.fresh("s")
      yield* stored(bench, {
        a: { session, status: "waiting", waiting: ["approval"], updatedAt: 1 },
        b: { session, status: "waiting", waiting: ["retry"], updatedAt: 2 },
        c: { session, status: "running", updatedAt: 3 },
        d: { status: "waiting", waiting: ["approval"], updatedAt: 4 }
      })
      const filter = { agent: [bench.fresh("agent")], session, status: ["waiting"], parent: null, updatedBefore: 10 }
      yield* same("all", yield* listed(bench, filter), ["a", "b"])
      yield* same("one more", yield* listed(bench, { ...filter, waiting: "retry" }), ["b"])
    })
  ),
  rule("CS47 lists the oldest first, then by id, big letters before small ones", capabilities, (bench) =>
    Effect.gen(function* () {
      const agent = [bench.fresh("agent")]
      yield* stored(bench, {
        d: { updatedAt: 5 },
        a: { updatedAt: 5 },
        B: { updatedAt: 5 },
        c: { updatedAt: 9 },
        e: { updatedAt: 1_700_000_000_000 },
        f: { updatedAt: 0 }
      })
      yield* same("in order", yield* listed(bench, { agent }), ["f", "B", "a", "d", "c", "e"])
    })
  ),
  rule("CS48 lists page by page, without gaps and without repeats", capabilities, (bench) =>
    Effect.gen(function* () {
      const { fresh, store } = bench
      const agent = [fresh("agent")]
      const names = Array.from({ length: 23 }, (_, i) => `p${String(i).padStart(2, "0")}`)
      yield* stored(bench, Object.fromEntries(names.map((name, i) => [name, { updatedAt: Math.floor(i / 5) }])))
      for (const limit of [1, 4, 5, 23, 100]) {
        const seen: Array<string> = []
        let after: Page["after"]
        for (let page = 0; page < 30; page++) {
          const entries = yield* store.list({ agent }, { limit, ...(after && { after }) })
          // Who lists takes a short page for the last one.
          yield* same(`a page of ${limit}`, entries.length, Math.min(limit, names.length - seen.length))
          seen.push(...entries.map(({ runId }) => runId.split("-")[0] ?? ""))
          const last = entries.at(-1)
          if (last === undefined) break
          after = { runId: last.runId, updatedAt: last.updatedAt }
        }
        yield* same(`pages of ${limit}`, seen, names)
      }
    })
  ),
  rule("CS49 pages on from a Run that is gone or has moved", capabilities, (bench) =>
    Effect.gen(function* () {
      const { fresh, store } = bench
      const agent = [fresh("agent")]
      yield* stored(bench, { a: { updatedAt: 1 }, b: { updatedAt: 2 }, c: { updatedAt: 3 } })
      yield* store.remove(fresh("b"), 1)
      const after = { runId: fresh("b"), updatedAt: 2 }
      yield* same("the rest", yield* listed(bench, { agent }, { limit: 10, after }), ["c"])
    })
  ),
  rule("CS50 lists whole entries: head, seq, epoch and owner", capabilities, (bench) =>
    Effect.gen(function* () {
      const { append, expire, fresh, store, shortMillis: ttlMillis } = bench
      const agent = fresh("agent")
      const row = head({ agent, session: "s", waiting: ["approval"], wakeAt: 7, updatedAt: 5, body: "{}" })
      const held = (runId: string, ttlMillis: number) =>
        append({ runId, epoch: 1, lease: { owner: "o", ttlMillis }, events: ["1", "2"], head: row })
      yield* held(fresh("a"), ttlMillis)
      yield* held(fresh("b"), ttlMillis * 100)
      yield* expire
      const entry = { ...row, seq: 2, epoch: 1, owner: "o" }
      yield* same(
        "one whose lease is over, and one that is live",
        yield* store.list({ agent: [agent] }, { limit: 10 }),
        [
          { ...entry, runId: fresh("a"), live: false },
          { ...entry, runId: fresh("b"), live: true }
        ]
      )
    })
  ),
  rule("CS51 lists what is due: running, or with a wakeAt that has come by the store's clock", capabilities, (bench) =>
    Effect.gen(function* () {
      const { expire, fresh, shortMillis: ttlMillis } = bench
      const agent = [fresh("agent")]
      const now = yield* Clock.currentTimeMillis
      const waiting = { status: "waiting", waiting: ["retry"] }
      yield* stored(bench, {
        a: { status: "running" },
        b: { ...waiting, wakeAt: now - 1000 },
        c: { ...waiting, wakeAt: now + ttlMillis },
        d: { ...waiting, wakeAt: now + 1_000_000 },
        e: { status: "waiting", waiting: ["approval"] },
        f: { status: "completed" }
      })
      const due = yield* listed(bench, { agent, due: true })
      // On a machine that was busy for that long, the time of c has come already.
      const isLate = (yield* Clock.currentTimeMillis) >= now + ttlMillis
      yield* same("due now", isLate ? due.filter((name) => name !== "c") : due, ["a", "b"])
      yield* expire
      yield* same("due later", yield* listed(bench, { agent, due: true }), ["a", "b", "c"])
      yield* same("with a status", yield* listed(bench, { agent, due: true, status: ["waiting"] }), ["b", "c"])
      yield* same("not asked for", (yield* listed(bench, { agent })).length, 6)
    })
  ),
  rule("CS52 lists by the newest head only", capabilities, (bench) =>
    Effect.gen(function* () {
      const { append, fresh } = bench
      const agent = fresh("agent")
      const [one, two] = [fresh("s"), fresh("t")]
      const first = head({
        agent,
        session: one,
        status: "waiting",
        waiting: ["approval"],
        wakeAt: 1,
        parent: fresh("p")
      })
      yield* append({ runId: fresh("a"), head: first })
      yield* append({ runId: fresh("a"), expectedSeq: 1, head: head({ agent, session: two, status: "completed" }) })
      const none: ReadonlyArray<Filter> = [
        { session: one },
        { agent: [agent], status: ["waiting"] },
        { agent: [agent], waiting: "approval" },
        { agent: [agent], due: true },
        { parent: fresh("p") }
      ]
      for (const filter of none) yield* same(JSON.stringify(filter), yield* listed(bench, filter), [])
      const now = { session: two, agent: [agent], status: ["completed"], parent: null }
      yield* same("as it is now", yield* listed(bench, now), ["a"])
    })
  ),
  rule("CS53 removes a Run that is at that seq, and nothing of it is left", capabilities, (bench) =>
    Effect.gen(function* () {
      const { append, bodies, fresh, store, ttlMillis } = bench
      const agent = fresh("agent")
      const runId = fresh("a")
      const row = head({ agent, session: fresh("s"), waiting: ["approval"], wakeAt: 1 })
      yield* append({ runId, epoch: 1, lease: { owner: "o", ttlMillis }, events: ["a", "b"], head: row })
      yield* append({ runId: fresh("b"), head: row })
      for (const seq of [0, 1, 3]) yield* same(`at ${seq}`, yield* store.remove(runId, seq), false)
      yield* same("which changes nothing", yield* bodies(runId), ["a", "b"])
      yield* same("at 2", yield* store.remove(runId, 2), true)
      yield* same("again", yield* store.remove(runId, 2), false)
      yield* same("an unknown one", yield* store.remove(fresh("unknown"), 0), false)
      yield* same("its events", yield* bodies(runId), [])
      yield* same("its head", yield* store.head(runId), undefined)
      yield* same("lists", yield* listed(bench, { agent: [agent] }), ["b"])
      yield* same("due", yield* listed(bench, { agent: [agent], due: true }), ["b"])
      yield* same("its session", yield* listed(bench, { session: fresh("s") }), ["b"])
      yield* same("an append where it was", yield* append({ runId, expectedSeq: 2 }), { _tag: "Conflict", seq: 0 })
      const claimed = yield* store.claim({ runId, owner: "p", ttlMillis })
      yield* same("a claim", claimed, { _tag: "Claimed", epoch: 1, seq: 0 })
      yield* same("creating it again", yield* append({ runId, events: ["new"] }), { _tag: "Committed" })
      yield* same("starts at 0", yield* bodies(runId), ["new"])
      const entry = yield* store.head(runId)
      yield* same("without its owner", [entry?.seq, entry?.epoch, entry?.owner], [1, 0, undefined])
    })
  ),
  rule("CS54 takes an updatedAt that goes back as it is, in heads, lists and pages", capabilities, (bench) =>
    Effect.gen(function* () {
      const { append, fresh, store } = bench
      const agent = fresh("agent")
      const filter = { agent: [agent] }
      const move = (name: string, expectedSeq: number, updatedAt: number, status = "running") =>
        append({ runId: fresh(name), expectedSeq, head: head({ agent, updatedAt, status }) })
      yield* move("a", 0, 100)
      yield* move("b", 0, 200)
      yield* move("c", 0, 300)
      yield* move("c", 1, 50)
      yield* same("the head", (yield* store.head(fresh("c")))?.updatedAt, 50)
      yield* same("the list", yield* listed(bench, filter), ["c", "a", "b"])
      yield* same("before 100", yield* listed(bench, { ...filter, updatedBefore: 100 }), ["c"])
      const after = { runId: fresh("c"), updatedAt: 50 }
      yield* same("the page after it", yield* listed(bench, filter, { limit: 10, after }), ["a", "b"])
      yield* move("b", 1, 10, "completed")
      yield* same("the list", yield* listed(bench, filter), ["b", "c", "a"])
      yield* same("the first of it", yield* listed(bench, filter, { limit: 1 }), ["b"])
      yield* move("b", 2, 400, "waiting")
      yield* same("the list", yield* listed(bench, filter), ["c", "a", "b"])
    })
  ),
  needing("CS55 remove leaves no orphans behind", "leftovers", capabilities, (bench, leftovers) =>
    Effect.gen(function* () {
      const { append, fresh, store, ttlMillis } = bench
      const [runId, other] = [fresh("a"), fresh("b")]
      yield* store.claim({ runId, owner: "o", ttlMillis })
      yield* append({ runId, expectedSeq: 7 })
      yield* same("what a claim and a Conflict leave of an unknown Run", yield* leftovers(runId), 0)
      const full = { session: fresh("s"), parent: other, waiting: ["approval", "retry"], wakeAt: 1 }
      yield* append({ runId: other, head: head({ ...full, parent: fresh("p") }) })
      yield* append({ runId, epoch: 1, lease: { owner: "o", ttlMillis }, events: ["a", "b"], head: head(full) })
      const moved = head({ ...full, session: fresh("t"), status: "waiting", updatedAt: 9 })
      yield* append({ runId, epoch: 1, owner: "o", expectedSeq: 2, events: ["c", mebibyte], head: moved })
      yield* append({ runId, epoch: 1, owner: "o", expectedSeq: 4, head: head({ status: "completed", updatedAt: 5 }) })
      yield* holds("something is kept of a Run", (yield* leftovers(runId)) > 0)
      const before = yield* leftovers(other)
      yield* same("removing it", yield* store.remove(runId, 5), true)
      yield* same("what is left of it", yield* leftovers(runId), 0)
      yield* same("what is kept of another one", yield* leftovers(other), before)
      yield* same("removing the other", yield* store.remove(other, 1), true)
      yield* same("what is left of that", yield* leftovers(other), 0)
    })
  )
]

const mebibyte = "0123456789abcdef".repeat(65_536)
