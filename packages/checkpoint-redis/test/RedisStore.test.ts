import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Keys from "../src/Keys.ts"
import * as RedisStore from "../src/RedisStore.ts"
import * as TestServer from "./support/server.ts"
import * as Shared from "./support/shared.ts"
import { around, built, created, failing, head, ids, isAppend, open } from "./support/stores.ts"

const redis = await Shared.forFile("the tests of RedisStore")
const { ask, available, freshPrefix, url } = redis
const keysOf = (prefix: string) => Effect.promise(() => TestServer.keysOf(redis, prefix))
const reads = { after: 0, limit: 10_000 }

/** The slot of a cluster that a key is in: CRC16 (XMODEM) of its hash tag. */
const slotOf = (key: string): number => {
  const tag = /\{([^}]+)\}/.exec(key)?.[1] ?? key
  let crc = 0
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
    crc &= 0xffff
  }
  return crc % 16_384
}

/** Every character that a run id may have, and ids that look like each other or like other keys. */
const lookAlikes = [
  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-",
  "a",
  "A",
  "a:head",
  "a:events",
  "a:",
  ":a",
  ".",
  "-",
  "_",
  "index",
  "index:all",
  "0",
  "0-0",
  "x".repeat(128)
]

describe.skipIf(!available)("keys", () => {
  it.live("RI-018 all keys of a Run are in one slot, and all keys of the index", () =>
    Effect.gen(function* () {
      const prefix = freshPrefix()
      const store = yield* open(url, { prefix })
      const row = head({ session: "s {x} ž", parent: "p{y}", waiting: ["approval"], wakeAt: 1 })
      for (const runId of lookAlikes) yield* store.append(created(runId, { head: row }))
      const keys = yield* keysOf(prefix)
      for (const runId of lookAlikes) {
        const own = keys.filter((key) => key.startsWith(`${prefix}:{${runId}}:`))
        expect(own).toHaveLength(2)
        expect(new Set(own.map(slotOf)).size).toBe(1)
      }
      expect(slotOf("{a}b")).toBe(15_495) // as CLUSTER KEYSLOT says
      const index = keys.filter((key) => key.startsWith("{"))
      expect(index.length).toBe(8)
      expect(new Set(index.map(slotOf)).size).toBe(1)
    })
  )

  it.live("Runs whose ids look alike, with every allowed character, do not see each other", () =>
    Effect.gen(function* () {
      const store = yield* open(url, { prefix: freshPrefix() })
      for (const runId of lookAlikes)
        yield* store.append(created(runId, { events: [runId], head: head({ body: runId }) }))
      for (const runId of lookAlikes) {
        expect((yield* store.read(runId, reads)).map(({ body }) => body)).toEqual([runId])
        expect((yield* store.head(runId))?.body).toBe(runId)
      }
      expect(ids(yield* store.list({}, { limit: 100 }))).toEqual(lookAlikes.toSorted())
    })
  )

  it.live("stores with different prefixes on one server do not see each other", () =>
    Effect.gen(function* () {
      const base = freshPrefix()
      const all = [base, `${base}:`, `${base}.b`, `${base}:index`, `${base}-1`]
      redis.cleanUp(...all)
      const stores = yield* Effect.forEach(all, (prefix) => open(url, { prefix }))
      for (const [i, store] of stores.entries()) yield* store.append(created("r", { events: [`${i}`] }))
      for (const [i, store] of stores.entries()) {
        expect((yield* store.read("r", reads)).map(({ body }) => body)).toEqual([`${i}`])
        expect(ids(yield* store.list({ due: true }, { limit: 10 }))).toEqual(["r"])
        expect(yield* store.append(created(`only-${i}`))).toEqual({ _tag: "Committed" })
        expect(ids(yield* store.list({}, { limit: 10 }))).toEqual([`only-${i}`, "r"])
        expect(yield* store.remove(`only-${i}`, 1)).toBe(true)
      }
      expect(yield* stores[0]?.remove("r", 1) ?? Effect.succeed(false)).toBe(true)
      for (const store of stores.slice(1)) expect((yield* store.head("r"))?.seq).toBe(1)
    })
  )

  it.live("a prefix that could look into other keys is refused", () =>
    Effect.gen(function* () {
      for (const prefix of ["", "a{b", "a}", "a b", "a*", "x".repeat(65)]) {
        const error = yield* Effect.flip(open(url, { prefix }))
        expect(error).toBeInstanceOf(RedisStore.OptionInvalid)
        expect(error).toMatchObject({ field: "prefix" })
      }
      expect(Keys.isPrefix("my-app:waystone.v1_")).toBe(true)
    })
  )

  it.live("RI-155 no key of a live or waiting Run has a time to live", () =>
    Effect.gen(function* () {
      const prefix = freshPrefix()
      const store = yield* open(url, { prefix })
      yield* store.append(created("live", { epoch: 1, lease: { owner: "o", ttlMillis: 1000 } }))
      yield* store.append(created("live", { epoch: 1, expectedSeq: 1 }))
      yield* store.renew({ runId: "live", epoch: 1, owner: "o", ttlMillis: 1000 })
      yield* store.append(created("parked", { head: head({ status: "waiting", waiting: ["approval"], wakeAt: 5 }) }))
      yield* store.claim({ runId: "parked", owner: "o", ttlMillis: 1000 })
      yield* store.release({ runId: "parked", epoch: 1, owner: "o" })
      const keys = yield* keysOf(prefix)
      expect(keys.length).toBeGreaterThan(7)
      for (const key of keys) expect([key, yield* ask("PTTL", key)]).toEqual([key, -1])
    })
  )

  it.live("RI-155 removing the last Run leaves no key but the mark of the index, which promises nothing", () =>
    Effect.gen(function* () {
      const prefix = freshPrefix()
      const store = yield* open(url, { prefix })
      const row = head({ session: "s", parent: "p", waiting: ["approval"], wakeAt: 1 })
      yield* store.append(created("r", { epoch: 1, lease: { owner: "o", ttlMillis: 60_000 }, head: row }))
      yield* store.append(created("r", { epoch: 1, expectedSeq: 1, head: { ...row, updatedAt: 9, status: "waiting" } }))
      yield* store.append(
        created("r", { epoch: 1, expectedSeq: 2, head: { ...row, updatedAt: 7, status: "completed" } })
      )
      expect((yield* keysOf(prefix)).length).toBeGreaterThan(2)
      expect(yield* store.remove("r", 3)).toBe(true)
      yield* built(store)
      const mark = `{${prefix}}:index:mark`
      expect(yield* keysOf(prefix)).toEqual([mark])
      expect(yield* ask("HGETALL", mark)).toEqual(["version", "1"])
    })
  )
})

describe.skipIf(!available)("contents", () => {
  it.live("RI-042 keeps NUL, line breaks, commas and whatever else a well-formed text can hold", () =>
    Effect.gen(function* () {
      const store = yield* open(url, { prefix: freshPrefix() })
      const events = ["a\u0000b", "\n", "", "\r\n,\n", ",", "0", "\u{10FFFF}\uFFFF", "👩‍👩‍👧", "\u0000", "\u0085\u2028"]
      yield* store.append(created("r", { events, head: head({ body: "\u0000\n", session: "a\u0000b" }) }))
      yield* store.append(created("r", { expectedSeq: events.length, events: ["", ""], head: head({ session: "x" }) }))
      const stored = yield* store.read("r", reads)
      expect(stored.map(({ body }) => body)).toEqual([...events, "", ""])
      expect(stored.filter(({ ends }) => ends).map(({ seq }) => seq)).toEqual([events.length, events.length + 2])
    })
  )

  it.live("RI-010 reads a Run of 24 MB in parts that the server can give without stopping for others", () =>
    Effect.gen(function* () {
      let reading = 0
      const counted = around((command, seen) => {
        if (seen.includes("XRANGE")) reading++
        return command
      })
      const store = yield* open(url, { prefix: freshPrefix(), wrap: counted })
      const body = (i: number) => `${i}${"0123456789abcdef".repeat(65_536)}`
      for (let i = 0; i < 24; i += 2) {
        yield* store.append(created("r", { expectedSeq: i, events: [body(i), body(i + 1)] }))
      }
      const stored = yield* store.read("r", reads)
      expect(stored.map(({ seq }) => seq)).toEqual(Array.from({ length: 24 }, (_, i) => i + 1))
      expect(stored.every((event, i) => event.body === body(i))).toBe(true)
      expect(reading).toBeGreaterThanOrEqual(6)
      expect((yield* store.read("r", { after: 5, limit: 9 })).map(({ seq }) => seq)).toEqual([
        6, 7, 8, 9, 10, 11, 12, 13, 14
      ])
    })
  )

  it.live("RI-069 of 20 first appends at once one creates the Run, whether or not they come with a lease", () =>
    Effect.gen(function* () {
      const store = yield* open(url, { prefix: freshPrefix() })
      const first = (i: number) =>
        store.append(created("r", { epoch: i % 2, events: [`${i}`], lease: { owner: `${i}`, ttlMillis: 60_000 } }))
      const results = yield* Effect.forEach(
        Array.from({ length: 20 }, (_, i) => i),
        first,
        { concurrency: "unbounded" }
      )
      const winners = results.flatMap(({ _tag }, i) => (_tag === "Committed" ? [i] : []))
      expect(winners).toHaveLength(1)
      expect((yield* store.read("r", reads)).map(({ body }) => body)).toEqual([`${winners[0]}`])
    })
  )
})

describe.skipIf(!available)("leases and appends", () => {
  it.live("an append is one command on the keys of its Run, however many events it has", () =>
    Effect.gen(function* () {
      const prefix = freshPrefix()
      const seen: Array<string> = []
      const counted = around((command, what) => {
        if (what.startsWith("SCAN")) return failing("the repair at the start is not what this is about")
        if (what.includes("'builder'")) return command
        seen.push(isAppend(what) ? "append" : what.includes("ZADD") ? "index" : what)
        return command
      })
      const store = yield* open(url, { prefix, wrap: counted })
      seen.length = 0
      yield* store.append(created("r", { events: ["a", "b", "c"] }))
      yield* store.append(created("r", { expectedSeq: 3, events: ["d", "e"] }))
      expect(seen).toEqual(["append", "index", "append"]) // where only the time has changed, the index stays as it is
      expect(yield* ask("XLEN", `${prefix}:{r}:events`)).toBe(2)
    })
  )

  it.live("an append whose answer is lost is not repeated by the store", () =>
    Effect.gen(function* () {
      let sent = 0
      const losing = around((command, what) => {
        if (!isAppend(what)) return command
        const counted = Effect.andThen(
          Effect.sync(() => void sent++),
          command
        )
        return Effect.andThen(counted, failing("Socket closed unexpectedly"))
      })
      const store = yield* open(url, { prefix: freshPrefix(), wrap: losing })
      expect(yield* Effect.flip(store.append(created("r")))).toMatchObject({ _tag: "StoreUnavailable" })
      expect(sent).toBe(1)
      expect(yield* store.read("r", reads)).toHaveLength(1)
    })
  )
})
