import { describe, expect, it } from "@effect/vitest"
import type { CheckpointStore } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as TestServer from "./support/server.ts"
import * as Shared from "./support/shared.ts"
import { around, type Asked, counting, created, failing, head, ids, open, type Store } from "./support/stores.ts"

const redis = await Shared.forFile("the tests of lists of checkpoint-redis")
const { ask, available, freshPrefix, url } = redis

const unrepaired = around((command, seen) => (seen.startsWith("SCAN") ? failing("held back") : command))
const many = (count: number, name = "r") =>
  Array.from({ length: count }, (_, i) => `${name}${String(i).padStart(4, "0")}`)
const put = (store: Store, runIds: ReadonlyArray<string>, fields: (i: number) => Partial<CheckpointStore.HeadRow>) =>
  Effect.forEach(
    runIds.map((runId, i) => created(runId, { head: head({ updatedAt: i, ...fields(i) }) })),
    (append) => store.append(append),
    { concurrency: 100, discard: true }
  )
const paged = Effect.fnUntraced(function* (store: Store, filter: CheckpointStore.Filter, limit: number) {
  const seen: Array<string> = []
  let after: CheckpointStore.Page["after"]
  do {
    const page = yield* store.list(filter, { limit, ...(after && { after }) })
    seen.push(...ids(page))
    after = page.length < limit ? undefined : page.at(-1)
  } while (after !== undefined)
  return seen
})
/** Gives what was warned of, too. */
const warned = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const lines: Array<string> = []
    const logger = Logger.make(({ logLevel, message }) => void lines.push(`${logLevel} ${JSON.stringify(message)}`))
    return Effect.map(Effect.provide(effect, Logger.layer([logger])), (value) => ({ lines, value }))
  })

describe.skipIf(!available)("L1 a list", () => {
  it.live.each<readonly [string, CheckpointStore.Filter, ReadonlyArray<string>]>([
    ["several agents", { agent: ["b", "c"] }, ["x0000", "x0001", "x0002"]],
    ["several statuses", { status: ["stopped", "failed"] }, ["x0000", "x0001"]],
    ["a kind of wait", { waiting: "external" }, ["x0002"]],
    ["a kind of wait and an agent", { waiting: "approval", agent: ["b"] }, []],
    ["roots", { parent: null, status: ["waiting", "failed"] }, ["x0001", "x0002"]],
    ["a status and an agent that many Runs have, but few both", { status: ["running"], agent: ["a"] }, ["y0000"]]
  ])("of %s asks few heads in few round trips, however many other Runs there are", ([, filter, expected]) =>
    Effect.gen(function* () {
      const asked: Asked = { trips: 0, heads: 0 }
      const store = yield* open(url, { prefix: freshPrefix(), wrap: counting(asked) })
      yield* put(store, many(1200), () => ({ status: "waiting", waiting: ["approval"], agent: "a", parent: "p" }))
      yield* put(store, many(3, "x"), (i) => ({
        status: ["stopped", "failed", "waiting"][i] ?? "",
        waiting: i === 2 ? ["external"] : [],
        agent: ["b", "c", "c"][i] ?? ""
      }))
      yield* put(store, many(600, "z"), () => ({ status: "running", agent: "d" }))
      yield* put(store, ["y0000"], () => ({ status: "running", agent: "a", updatedAt: 9999 }))
      Object.assign(asked, { trips: 0, heads: 0 })
      expect(ids(yield* store.list(filter, { limit: 100 }))).toEqual(expected)
      expect(asked.heads).toBe(expected.length)
      expect(asked.trips).toBeLessThan(12)
    })
  )

  it.live("reads the heads of a page in one round trip", () =>
    Effect.gen(function* () {
      const asked: Asked = { trips: 0, heads: 0 }
      const store = yield* open(url, { prefix: freshPrefix(), wrap: counting(asked) })
      yield* put(store, many(300), () => ({}))
      Object.assign(asked, { trips: 0, heads: 0 })
      expect(yield* store.list({}, { limit: 100 })).toHaveLength(100)
      expect(asked).toEqual({ trips: 2, heads: 100 })
    })
  )

  it.live("of several sets is in order and whole, page by page, where times repeat", () =>
    Effect.gen(function* () {
      const store = yield* open(url, { prefix: freshPrefix(), wrap: unrepaired })
      const names = many(700)
      const statuses = ["completed", "stopped", "failed", "running"]
      const timeOf = (i: number) => (i < 300 ? 5 : (i * 7919) % 40)
      yield* put(store, names, (i) => ({ status: statuses[i % 4] ?? "", updatedAt: timeOf(i), agent: `a${i % 3}` }))
      const wanted = (keep: (i: number) => boolean) =>
        names
          .map((name, i) => ({ name, i }))
          .filter(({ i }) => keep(i))
          .toSorted((a, b) => timeOf(a.i) - timeOf(b.i) || (a.name < b.name ? -1 : 1))
          .map(({ name }) => name)
      for (const limit of [7, 100, 1000]) {
        const status = ["completed", "stopped", "failed"]
        expect(yield* paged(store, { status }, limit)).toEqual(wanted((i) => i % 4 !== 3))
        expect(yield* paged(store, { agent: ["a0", "a2"] }, limit)).toEqual(wanted((i) => i % 3 !== 1))
        const both = { status, agent: ["a1", "a2"], updatedBefore: 20 }
        expect(yield* paged(store, both, limit)).toEqual(wanted((i) => i % 4 !== 3 && i % 3 !== 0 && timeOf(i) < 20))
      }
    })
  )

  it.live("asks for large heads in parts", () =>
    Effect.gen(function* () {
      const asked: Asked = { trips: 0, heads: 0 }
      const store = yield* open(url, { prefix: freshPrefix(), wrap: counting(asked) })
      yield* put(store, many(40), () => ({ body: "x".repeat(100_000) }))
      Object.assign(asked, { trips: 0, heads: 0 })
      expect(ids(yield* store.list({}, { limit: 40 }))).toEqual(many(40))
      expect(asked.trips).toBeGreaterThan(3)
    })
  )
})

describe.skipIf(!available)("L2 a damaged Run", () => {
  it.live.each<readonly [string, ReadonlyArray<string>, string]>([
    ["row", ["HSET", "$:head", "row", "zz"], "head.row"],
    ["lease", ["HSET", "$:head", "owner", "o", "until", "zz"], "head.until"],
    ["missing head", ["DEL", "$:head"], "head"],
    ["head of another type", ["SET", "$:head", "x"], "the type of a key"]
  ])("(%s) is left out of lists, is warned of once in each, and pages stay full", ([, command, path]) =>
    Effect.gen(function* () {
      const prefix = freshPrefix()
      const store = yield* open(url, { prefix, wrap: unrepaired })
      yield* put(store, ["a", "bad", "c", "d"], () => ({ waiting: ["approval", "retry"] }))
      yield* ask(...command.map((part) => part.replace("$", `${prefix}:{bad}`)))
      for (const filter of [{}, { due: true }, { status: ["running", "waiting"] }, { agent: ["test"] }]) {
        const { lines, value } = yield* warned(store.list(filter, { limit: 3 }))
        expect(ids(value)).toEqual(["a", "c", "d"])
        expect(lines).toHaveLength(1)
        expect(lines[0]).toMatch(/^Warn/)
        expect(lines[0]).toContain("Run bad")
        expect(lines[0]).toContain(`at ${path}.`)
      }
      const many = Array.from({ length: 12 }, (_, i) => `bad${i}`)
      yield* put(store, many, () => ({}))
      for (const runId of many) yield* ask(...command.map((part) => part.replace("$", `${prefix}:{${runId}}`)))
      const { lines } = yield* warned(store.list({}, { limit: 100 }))
      expect(lines).toEqual([expect.stringMatching(/And 3 more\."\]$/)])
      expect(yield* paged(store, {}, 1)).toEqual(["a", "c", "d"])
      expect(yield* Effect.flip(store.head("bad"))).toMatchObject({ _tag: "CheckpointCorrupt", path })
    }).pipe(Effect.provide(Logger.layer([])))
  )
})

describe.skipIf(!TestServer.canStart)("L3 a server that takes no writes", () => {
  /** Runs that stand in the index where they do not belong: early, in the wrong sets, or though they are gone. */
  const stale = Effect.fnUntraced(function* (server: TestServer.Server) {
    const dying = around((command, seen) =>
      seen.startsWith("SCAN") || seen.includes("ZADD") ? failing("the process died") : command
    )
    const store = yield* open(server.url, { wrap: unrepaired })
    const dead = yield* open(server.url, { wrap: dying })
    yield* put(store, ["a", "b", "c", "d", "e"], () => ({}))
    yield* store.append(created("a", { expectedSeq: 1, head: head({ updatedAt: 99 }) }))
    yield* dead.append(created("b", { expectedSeq: 1, head: head({ updatedAt: 3, status: "completed" }) }))
    yield* dead.remove("c", 1)
    return store
  })
  const isRight = Effect.fnUntraced(function* (store: Store) {
    expect(ids(yield* store.list({}, { limit: 10 }))).toEqual(["b", "d", "e", "a"])
    expect(ids(yield* store.list({}, { limit: 3 }))).toEqual(["b", "d", "e"])
    expect(ids(yield* store.list({ due: true }, { limit: 10 }))).toEqual(["d", "e", "a"])
    expect(ids(yield* store.list({ status: ["running"] }, { limit: 2 }))).toEqual(["d", "e"])
  })

  it.live("since its memory is full: lists are right, and Runs can be removed", () =>
    Effect.gen(function* () {
      const server = yield* TestServer.scoped()
      const store = yield* stale(server)
      yield* Effect.promise(() => server.send("CONFIG", "SET", "maxmemory", "1"))
      expect(yield* Effect.flip(store.append(created("f")))).toMatchObject({ _tag: "StoreUnavailable" })
      yield* isRight(store)
      expect(yield* store.remove("b", 2)).toBe(true)
      expect(yield* store.head("b")).toBeUndefined()
      expect(ids(yield* store.list({}, { limit: 10 }))).toEqual(["d", "e", "a"])
    })
  )

  it.live("since it is a replica: lists are right", () =>
    Effect.gen(function* () {
      const server = yield* TestServer.scoped()
      const store = yield* stale(server)
      const nobody = yield* Effect.promise(() => TestServer.freePort())
      yield* Effect.promise(() => server.send("REPLICAOF", "127.0.0.1", String(nobody)))
      yield* isRight(store)
    })
  )
})
