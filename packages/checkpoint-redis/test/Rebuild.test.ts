import { describe, expect, it } from "@effect/vitest"
import type { CheckpointStore } from "@waystone/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as TestServer from "./support/server.ts"
import * as Shared from "./support/shared.ts"
import { around, created, failing, gated, head, ids, open, type Store } from "./support/stores.ts"

const redis = await Shared.forFile("the tests of rebuilding the index of checkpoint-redis")
const { ask, available, freshPrefix, url } = redis

/** Cannot look for heads, so it cannot build. */
const unable = around((command, seen) => (seen.startsWith("SCAN") ? failing("held back") : command))

/** What a worker asks for. */
const wanted: CheckpointStore.Filter = { status: ["accepted"], agent: ["a"], parent: null }
const names = Array.from({ length: 600 }, (_, i) => `r${String(i).padStart(3, "0")}`)
const put = (store: Store, runIds: ReadonlyArray<string>) =>
  Effect.forEach(
    runIds,
    (runId) =>
      store.append(created(runId, { head: head({ status: "accepted", agent: "a", session: "s", waiting: ["x"] }) })),
    { concurrency: 100, discard: true }
  )
const all = (store: Store, filter: CheckpointStore.Filter = wanted) =>
  Effect.map(store.list(filter, { limit: 1000 }), ids)
const keyOf = (prefix: string, what: string) => `{${prefix}}:index:${what}`
const lose = Effect.fnUntraced(function* (prefix: string, what: ReadonlyArray<string>) {
  for (const key of yield* Effect.promise(() => TestServer.keysOf(redis, prefix))) {
    if (what.some((one) => key === keyOf(prefix, one)) || (what.length === 0 && key.startsWith("{"))) {
      yield* ask("DEL", key)
    }
  }
})
const warned = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const lines: Array<string> = []
    const logger = Logger.make(({ logLevel, message }) => {
      if (logLevel === "Warn") lines.push(String(message))
    })
    return Effect.map(Effect.provide(effect, Logger.layer([logger])), (value) => ({ lines, value }))
  })

describe.skipIf(!available)("X3 a list misses no Run", () => {
  it.live.each<readonly [string, ReadonlyArray<string>]>([
    ["its smallest set", ["roots"]],
    ["another of its sets", ["agent:a"]],
    ["the set of a status", ["status:accepted"]],
    ["the mark", ["mark"]],
    ["all sets but the mark", ["all", "roots", "agent:a", "status:accepted", "session:s", "waiting:x"]],
    ["the whole index", []]
  ])("after %s was lost", ([, what]) =>
    Effect.gen(function* () {
      const prefix = freshPrefix()
      const store = yield* open(url, { prefix })
      yield* put(store, names)
      const other = yield* open(url, { prefix, wrap: unable })
      yield* lose(prefix, what)
      // What is written since must not hide the loss.
      yield* put(other, ["s"])
      const blind = yield* Effect.flip(all(other))
      expect(blind).toMatchObject({ _tag: "StoreUnavailable" })
      expect(yield* all(store)).toEqual([...names, "s"])
      for (const filter of [{}, { parent: null }, { session: "s" }, { waiting: "x" }, { agent: ["a"] }]) {
        expect(yield* all(other, filter)).toEqual([...names, "s"])
      }
    })
  )

  it.live("after one entry was taken out of a set", () =>
    Effect.gen(function* () {
      const prefix = freshPrefix()
      const store = yield* open(url, { prefix })
      yield* put(store, ["a", "b"])
      yield* ask("ZREM", keyOf(prefix, "roots"), "a")
      expect(yield* all(store)).toEqual(["a", "b"])
    })
  )

  it.live("where an earlier version did not write a set, nor a mark", () =>
    Effect.gen(function* () {
      const prefix = freshPrefix()
      const store = yield* open(url, { prefix })
      yield* put(store, ["a", "b"])
      yield* lose(prefix, ["mark", "roots", "agent:a"])
      expect(yield* all(yield* open(url, { prefix }))).toEqual(["a", "b"])
    })
  )

  it.live("and builds nothing where nothing was lost: Runs that end leave no promise behind", () =>
    Effect.gen(function* () {
      const prefix = freshPrefix()
      const store = yield* open(url, { prefix, wrap: unable })
      yield* put(store, ["a", "b", "c"])
      yield* store.append(created("a", { expectedSeq: 1, head: head({ status: "completed", agent: "a" }) }))
      yield* store.remove("b", 1)
      expect(yield* all(store)).toEqual(["c"])
      yield* store.remove("c", 1)
      expect(yield* all(store)).toEqual([])
      expect(yield* all(store, { session: "s" })).toEqual([])
      expect(yield* all(store, {})).toEqual(["a"])
      const mark = yield* ask("HGETALL", keyOf(prefix, "mark"))
      const sets = ["all", "status:completed", "agent:a", "roots"].map((what) => [keyOf(prefix, what), "1"])
      const found = Array.isArray(mark) ? mark.map(String) : []
      const pairs = found.flatMap((field, i) => (i % 2 === 0 ? [[field, found[i + 1]]] : []))
      expect(pairs.toSorted()).toEqual([...sets, ["version", "1"]].toSorted())
    })
  )
})

describe.skipIf(!available)("a key of the index that has another type", () => {
  it.live.each(["roots", "status:accepted", "mark"])("(%s) is deleted with a warning, and lists are right", (what) =>
    Effect.gen(function* () {
      const prefix = freshPrefix()
      const { gate, wrap } = gated()
      const store = yield* open(url, { prefix, wrap })
      yield* put(store, ["a", "b"])
      gate.open = true
      yield* ask("SET", keyOf(prefix, what), "x")
      const { lines, value } = yield* warned(all(store))
      expect(value).toEqual(["a", "b"])
      expect(lines[0]).toContain(keyOf(prefix, what))
      expect(lines.slice(1)).toEqual(what === "mark" ? [] : [expect.stringContaining("was lost")])
      expect((yield* warned(all(store))).lines).toEqual([])
    })
  )

  it.live("keeps no append from writing the other sets, and what it held is found again", () =>
    Effect.gen(function* () {
      const prefix = freshPrefix()
      const { gate, wrap } = gated()
      const store = yield* open(url, { prefix, wrap })
      yield* put(store, ["a", "b"])
      gate.open = true
      yield* ask("SET", keyOf(prefix, "status:accepted"), "x")
      const { lines } = yield* warned(put(store, ["c"]))
      expect(lines).toEqual([expect.stringContaining(keyOf(prefix, "status:accepted"))])
      expect(yield* ask("ZSCORE", keyOf(prefix, "roots"), "c")).toBe("1")
      expect(yield* all(store)).toEqual(["a", "b", "c"])
    })
  )
})

describe.skipIf(!available)("B1 of several processes", () => {
  it.live("one builds, the others wait for it, and one that died is followed by another", () =>
    Effect.gen(function* () {
      const prefix = freshPrefix()
      const stalled = { armed: false }
      const begun = yield* Deferred.make<void>()
      const stuck = around((command, seen) =>
        seen.startsWith("SCAN") && stalled.armed
          ? Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)
          : command
      )
      const { gate, wrap } = gated()
      const store = yield* open(url, { prefix })
      const first = yield* open(url, { prefix, wrap: stuck })
      const second = yield* open(url, { prefix, wrap })
      yield* put(store, ["a", "b"])
      yield* lose(prefix, ["roots"])
      stalled.armed = true
      const building = yield* Effect.forkChild(all(first))
      yield* Deferred.await(begun)
      // Had it begun itself, it would have failed with what holds its commands back.
      const waiting = yield* Effect.flip(all(second))
      expect(waiting).toMatchObject({ _tag: "StoreUnavailable", detail: expect.stringContaining("built anew") })
      gate.open = true
      yield* ask("HSET", keyOf(prefix, "mark"), "until", "1")
      expect(yield* all(second)).toEqual(["a", "b"])
      yield* Fiber.interrupt(building)
    })
  )
})
