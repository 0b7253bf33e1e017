import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestServer from "./support/server.ts"
import * as Shared from "./support/shared.ts"
import {
  around,
  counting,
  created,
  eventually,
  failing,
  gated,
  head,
  ids,
  isAppend,
  isIndex,
  open,
  type Service
} from "./support/stores.ts"

const redis = await Shared.forFile("the tests of the index of checkpoint-redis")
const { ask, available, freshPrefix, url } = redis
const indexOf = (prefix: string) =>
  Effect.map(
    Effect.promise(() => TestServer.keysOf(redis, prefix)),
    (keys) => keys.filter((key) => key.startsWith("{") && !key.endsWith(":mark"))
  )

/** Like a process that dies between an append and its index entry: the entry is never written. */
const forgetful = around((command, seen) => (isIndex(seen) ? failing("Socket closed unexpectedly") : command))
/** Repairs nothing. */
const unrepaired = around((command, seen) =>
  seen.startsWith("SCAN") ? failing("Socket closed unexpectedly") : command
)
const both = (redis: Service) => forgetful(unrepaired(redis))

describe.skipIf(!available)("the index", () => {
  it.live("is written after the Run: an append that fails leaves nothing in it", () =>
    Effect.gen(function* () {
      const prefix = freshPrefix()
      const refusing = around((command, seen) => (isAppend(seen) ? failing("OOM command not allowed") : command))
      const store = yield* open(url, { prefix, wrap: refusing })
      yield* Effect.flip(store.append(created("r")))
      expect(yield* indexOf(prefix)).toEqual([])
    })
  )

  it.live("does not decide whether an append has happened", () =>
    Effect.gen(function* () {
      const store = yield* open(url, { prefix: freshPrefix(), wrap: forgetful })
      expect(yield* store.append(created("r"))).toEqual({ _tag: "Committed" })
      expect(yield* store.append(created("r", { expectedSeq: 1 }))).toEqual({ _tag: "Committed" })
      expect(yield* store.remove("r", 2)).toBe(true)
    })
  )

  it.live("is repaired when a store is opened: a Run whose entry was lost is listed again", () =>
    Effect.gen(function* () {
      const prefix = freshPrefix()
      const dying = yield* open(url, { prefix, wrap: both })
      yield* dying.append(created("lost", { head: head({ session: "s", waiting: ["approval"] }) }))
      expect(yield* indexOf(prefix)).toEqual([])
      const store = yield* open(url, { prefix })
      const listed = yield* eventually(store.list({}, { limit: 10 }), (entries) => entries.length > 0)
      expect(ids(listed)).toEqual(["lost"])
      for (const filter of [{ session: "s" }, { waiting: "approval" }, { status: ["running"] }, { due: true }]) {
        expect(ids(yield* eventually(store.list(filter, { limit: 10 }), (entries) => entries.length > 0))).toEqual([
          "lost"
        ])
      }
    })
  )

  it.live("is repaired by each sweep for due Runs, and many sweeps look at all keys", () =>
    Effect.gen(function* () {
      const prefix = freshPrefix()
      const { gate, wrap } = gated()
      const store = yield* open(url, { prefix, wrap })
      const dying = yield* open(url, { prefix, wrap: both })
      const names = Array.from({ length: 1500 }, (_, i) => `r${String(i).padStart(4, "0")}`)
      yield* Effect.forEach(names, (runId) => dying.append(created(runId)), { concurrency: 100 })
      expect(yield* store.list({ due: true }, { limit: 10 })).toEqual([])
      gate.open = true
      let found = 0
      let sweeps = 0
      while (found < names.length && sweeps < 50) {
        found = (yield* store.list({ due: true }, { limit: 10_000 })).length
        sweeps++
      }
      expect(found).toBe(names.length)
      expect(sweeps).toBeGreaterThan(1) // bounded: not all of them at once
    })
  )

  it.live("of a Run that is gone or changed since is put right by whoever lists it", () =>
    Effect.gen(function* () {
      const prefix = freshPrefix()
      const store = yield* open(url, { prefix, wrap: unrepaired })
      const dying = yield* open(url, { prefix, wrap: both })
      const waiting = head({ status: "waiting", waiting: ["retry"], wakeAt: 5, updatedAt: 10 })
      for (const runId of ["a", "b", "c"]) yield* store.append(created(runId, { head: waiting }))
      yield* dying.append(created("a", { expectedSeq: 1, head: head({ status: "completed", updatedAt: 20 }) }))
      yield* dying.append(created("b", { expectedSeq: 1, head: { ...waiting, updatedAt: 30 } }))
      yield* dying.remove("c", 1)
      expect(ids(yield* store.list({ due: true }, { limit: 10 }))).toEqual(["b"])
      expect(ids(yield* store.list({ waiting: "retry" }, { limit: 10 }))).toEqual(["b"])
      expect(ids(yield* store.list({}, { limit: 10 }))).toEqual(["a", "b"])
      const members = (set: string) => ask("ZRANGE", `{${prefix}}:index:${set}`, "0", "-1", "WITHSCORES")
      expect(yield* members("due")).toEqual(["b", "30"])
      expect(yield* members("all")).toEqual(["a", "20", "b", "30"])
    })
  )

  it.live("keeps a Run that two writers moved, whichever of them writes the index last", () =>
    Effect.gen(function* () {
      const prefix = freshPrefix()
      const held: Array<Effect.Effect<unknown>> = []
      const late = around((command, seen) => {
        if (!isIndex(seen)) return command
        held.push(Effect.ignore(command))
        return failing("late")
      })
      const store = yield* open(url, { prefix, wrap: unrepaired })
      const slow = yield* open(url, { prefix, wrap: (redis) => late(unrepaired(redis)) })
      yield* store.append(created("r", { head: head({ status: "running", updatedAt: 1 }) }))
      yield* slow.append(created("r", { expectedSeq: 1, head: head({ status: "waiting", updatedAt: 2 }) }))
      yield* store.append(created("r", { expectedSeq: 2, head: head({ status: "running", updatedAt: 3 }) }))
      for (const command of held) yield* command
      expect(ids(yield* store.list({ status: ["running"] }, { limit: 10 }))).toEqual(["r"])
      expect(ids(yield* store.list({ due: true }, { limit: 10 }))).toEqual(["r"])
      expect(ids(yield* store.list({ status: ["waiting"] }, { limit: 10 }))).toEqual([])
    })
  )

  it.live("pages through many Runs of the same time, while stale entries are put right", () =>
    Effect.gen(function* () {
      const prefix = freshPrefix()
      const store = yield* open(url, { prefix, wrap: unrepaired })
      const dying = yield* open(url, { prefix, wrap: both })
      const names = Array.from({ length: 700 }, (_, i) => `r${String(i).padStart(3, "0")}`)
      yield* Effect.forEach(names, (runId) => store.append(created(runId)), { concurrency: 100 })
      const gone = names.filter((_, i) => i % 7 === 0)
      for (const runId of gone) yield* dying.remove(runId, 1)
      const left = names.filter((_, i) => i % 7 !== 0)
      expect(ids(yield* store.list({}, { limit: 1000 }))).toEqual(left)
      expect(ids(yield* store.list({}, { limit: 1000 }))).toEqual(left)
      const seen: Array<string> = []
      let after: { readonly runId: string; readonly updatedAt: number } | undefined
      do {
        const page = yield* store.list({}, { limit: 150, ...(after && { after }) })
        seen.push(...ids(page))
        after = page.at(-1)
      } while (after !== undefined)
      expect(seen).toEqual(left)
    })
  )

  it.live("lists a running Run by its latest time, however many others lie between", () =>
    Effect.gen(function* () {
      const prefix = freshPrefix()
      const store = yield* open(url, { prefix, wrap: unrepaired })
      const names = Array.from({ length: 500 }, (_, i) => `r${String(i).padStart(3, "0")}`)
      const times = new Map(names.map((runId, i) => [runId, i * 10]))
      const put = (runId: string, expectedSeq: number, updatedAt: number) =>
        store.append(created(runId, { expectedSeq, head: head({ updatedAt }) }))
      yield* Effect.forEach(times, ([runId, updatedAt]) => put(runId, 0, updatedAt), { concurrency: 100 })
      for (const [runId, updatedAt] of [
        ["r000", 1005],
        ["r001", 3005],
        ["r002", 9999],
        ["r003", 1995],
        ["r300", 4]
      ] as const) {
        yield* put(runId, 1, updatedAt)
        times.set(runId, updatedAt)
      }
      const expected = names.toSorted((a, b) => (times.get(a) ?? 0) - (times.get(b) ?? 0))
      for (const limit of [200, 90, 1000]) {
        // The index as it was before the first list put it right.
        yield* Effect.forEach(["r000", "r001", "r002", "r003"], (runId, i) =>
          ask("ZADD", `{${prefix}}:index:all`, `${i * 10}`, runId)
        )
        const seen: Array<string> = []
        let after: { readonly runId: string; readonly updatedAt: number } | undefined
        do {
          const page = yield* store.list({}, { limit, ...(after && { after }) })
          seen.push(...ids(page))
          after = page.at(-1)
        } while (after !== undefined)
        expect(seen).toEqual(expected)
      }
    })
  )

  it.live("follows a Run whose time went back, so that a list by time does not miss it", () =>
    Effect.gen(function* () {
      const store = yield* open(url, { prefix: freshPrefix(), wrap: unrepaired })
      yield* store.append(created("r", { head: head({ updatedAt: 50 }) }))
      yield* store.append(created("r", { expectedSeq: 1, head: head({ updatedAt: 10 }) }))
      expect(ids(yield* store.list({ updatedBefore: 20 }, { limit: 10 }))).toEqual(["r"])
    })
  )

  it.live("asks only the heads of due Runs in a sweep, not those of all that ended", () =>
    Effect.gen(function* () {
      const prefix = freshPrefix()
      const asked = { trips: 0, heads: 0 }
      const store = yield* open(url, { prefix, wrap: counting(asked) })
      const ended = Array.from({ length: 100 }, (_, i) => `done${i}`)
      yield* Effect.forEach(ended, (runId) => store.append(created(runId, { head: head({ status: "completed" }) })))
      yield* store.append(created("due"))
      expect(ids(yield* store.list({ due: true }, { limit: 10 }))).toEqual(["due"])
      expect(asked.heads).toBe(1)
    })
  )
})
