import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestServer from "./support/server.ts"
import * as Shared from "./support/shared.ts"
import { around, created, failing, head, open } from "./support/stores.ts"

const redis = await Shared.forFile("the tests of damage in checkpoint-redis")
const { ask, available, freshPrefix, url } = redis
const keysOf = (prefix: string) => Effect.promise(() => TestServer.keysOf(redis, prefix))
const reads = { after: 0, limit: 10_000 }

describe.skipIf(!available)("damage", () => {
  const damagedBy = (...command: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const prefix = freshPrefix()
      const store = yield* open(url, { prefix })
      for (let i = 0; i < 9; i += 3) yield* store.append(created("r", { expectedSeq: i, events: ["a", "b", "c"] }))
      yield* ask(...command.map((part) => part.replace("$", `${prefix}:{r}`)))
      const tagOf = <A, E extends { readonly _tag: string }>(effect: Effect.Effect<A, E>) =>
        Effect.match(effect, { onSuccess: () => "fine", onFailure: ({ _tag }) => _tag })
      return {
        read: yield* tagOf(store.read("r", reads)),
        head: yield* tagOf(store.head("r")),
        append: yield* tagOf(store.append(created("r", { expectedSeq: 9 }))),
        create: yield* tagOf(store.append(created("r"))),
        claim: yield* tagOf(store.claim({ runId: "r", owner: "o", ttlMillis: 10 })),
        seq: yield* Effect.map(Effect.exit(ask("HGET", `${prefix}:{r}:head`, "seq")), (exit) =>
          exit._tag === "Success" ? exit.value : "another type"
        ),
        keys: (yield* keysOf(prefix)).filter((key) => key.startsWith(`${prefix}:`)).length
      }
    })
  const corrupt = "CheckpointCorrupt"

  it.live("RI-072 a Run whose head is gone is CheckpointCorrupt, not a new one", () =>
    Effect.gen(function* () {
      expect(yield* damagedBy("DEL", "$:head")).toEqual({
        read: corrupt,
        head: corrupt,
        append: corrupt,
        create: corrupt,
        claim: corrupt,
        seq: null,
        keys: 1
      })
    })
  )

  it.live("RI-072 a Run whose events are gone is CheckpointCorrupt, and takes no more", () =>
    Effect.gen(function* () {
      expect(yield* damagedBy("DEL", "$:events")).toMatchObject({
        read: corrupt,
        append: corrupt,
        create: "fine",
        claim: corrupt,
        seq: "9",
        keys: 1
      })
    })
  )

  it.live("RI-072 a Run whose head is ahead of its events takes no append and no owner", () =>
    Effect.gen(function* () {
      const prefix = freshPrefix()
      const store = yield* open(url, { prefix })
      yield* store.append(created("r"))
      yield* ask("HSET", `${prefix}:{r}:head`, "seq", "5")
      const damaged = { _tag: "CheckpointCorrupt", seq: 0, path: "events" }
      expect(yield* Effect.flip(store.append(created("r", { expectedSeq: 5 })))).toMatchObject(damaged)
      expect(yield* Effect.flip(store.claim({ runId: "r", owner: "o", ttlMillis: 10 }))).toMatchObject(damaged)
      expect(yield* ask("HMGET", `${prefix}:{r}:head`, "seq", "epoch", "owner")).toEqual(["5", "0", null])
      expect(yield* ask("XLEN", `${prefix}:{r}:events`)).toBe(1)
    })
  )

  it.live("RI-072 events that are gone from the middle, the beginning or the end are CheckpointCorrupt", () =>
    Effect.gen(function* () {
      for (const id of ["3-0", "6-0", "9-0"]) {
        expect([id, (yield* damagedBy("XDEL", "$:events", id)).read]).toEqual([id, corrupt])
      }
    })
  )

  it.live("RI-072 events that the head does not know make the next append CheckpointCorrupt", () =>
    Effect.gen(function* () {
      expect(yield* damagedBy("XADD", "$:events", "12-0", "e", "0", "n", "1", "b", "x")).toMatchObject({
        append: corrupt
      })
    })
  )

  it.live("RI-072 a key of another type is CheckpointCorrupt", () =>
    Effect.gen(function* () {
      expect(yield* damagedBy("SET", "$:head", "x")).toMatchObject({
        read: corrupt,
        head: corrupt,
        append: corrupt,
        claim: corrupt
      })
      expect(yield* damagedBy("SET", "$:events", "x")).toMatchObject({ read: corrupt, append: corrupt, seq: "9" })
    })
  )

  it.live.each([
    ["a field is gone", ["HDEL", "$:head", "row"]],
    ["the body is gone", ["HDEL", "$:head", "body"]],
    ["the epoch is gone", ["HDEL", "$:head", "epoch"]],
    ["the seq is gone", ["HDEL", "$:head", "seq"]],
    ["the seq is no number", ["HSET", "$:head", "seq", "many"]],
    ["the time is no number", ["HSET", "$:head", "updatedAt", "soon"]],
    ["the row is not JSON", ["HSET", "$:head", "row", "{"]],
    ["the row has a wrong type", ["HSET", "$:head", "row", '{"status":1,"agent":"a","waiting":[]}']]
  ] as const)("RI-106 a head is CheckpointCorrupt when %s", ([, command]) =>
    Effect.map(damagedBy(...command), (seen) => expect(seen.head).toBe(corrupt))
  )

  it.live.each([
    ["epoch", "HDEL"],
    ["epoch", "garbage"],
    ["epoch", "-1"],
    ["until", "HDEL"],
    ["until", "garbage"],
    ["seq", "HDEL"],
    ["seq", "garbage"],
    ["updatedAt", "HDEL"],
    ["updatedAt", "nan"],
    ["row", "HDEL"],
    ["row", "zz"],
    ["row", '{"status":"running","agent":"a"}'],
    ["row", '{"status":"running","agent":"a","waiting":[],"session":1}'],
    ["body", "HDEL"]
  ] as const)(
    "RI-072 every operation is CheckpointCorrupt and changes nothing when the head's %s is %s",
    ([field, value]) =>
      Effect.gen(function* () {
        const prefix = freshPrefix()
        const store = yield* open(url, {
          prefix,
          wrap: around((c, seen) => (seen.startsWith("SCAN") ? failing("") : c))
        })
        const key = `${prefix}:{r}:head`
        yield* store.append(created("r", { epoch: 1, lease: { owner: "o", ttlMillis: 60_000 } }))
        yield* value === "HDEL" ? ask("HDEL", key, field) : ask("HSET", key, field, value)
        const before = yield* ask("HGETALL", key)
        const operations = {
          head: store.head("r"),
          read: store.read("r", reads),
          append: store.append(created("r", { expectedSeq: 1, head: head({ status: "waiting" }) })),
          appendOfOwner: store.append(created("r", { epoch: 1, expectedSeq: 1, head: head({ status: "waiting" }) })),
          create: store.append(created("r", { head: head({ status: "waiting" }) })),
          claim: store.claim({ runId: "r", owner: "p", ttlMillis: 10 }),
          takeover: store.claim({ runId: "r", owner: "p", ttlMillis: 10, takeover: 1 }),
          renew: store.renew({ runId: "r", epoch: 1, owner: "o", ttlMillis: 10 }),
          release: store.release({ runId: "r", epoch: 1, owner: "o" }),
          remove: store.remove("r", 1)
        }
        for (const [name, operation] of Object.entries<Effect.Effect<unknown, unknown>>(operations)) {
          const error = yield* Effect.flip(operation)
          const path = field === "seq" && value === "HDEL" ? "head" : `head.${field}`
          expect([name, error]).toMatchObject([name, { _tag: corrupt, runId: "r", seq: 0, path }])
        }
        expect(yield* ask("HGETALL", key)).toEqual(before)
        expect(yield* ask("XLEN", `${prefix}:{r}:events`)).toBe(1)
      })
  )

  it.live.each([
    ["lengths that do not fit", ["n", "1", "b", "xx"]],
    ["no lengths", ["n", "", "b", ""]],
    ["a length that is no number", ["n", "-1,2", "b", "x"]],
    ["no bodies", ["x", "1"]]
  ] as const)("RI-106 an append with %s is CheckpointCorrupt and stays as it is", ([, fields]) =>
    Effect.gen(function* () {
      const prefix = freshPrefix()
      const store = yield* open(url, { prefix })
      const events = `${prefix}:{r}:events`
      yield* store.append(created("r", { events: ["a", "b"] }))
      yield* ask("XADD", events, "3-0", "e", "0", ...fields)
      yield* ask("HSET", `${prefix}:{r}:head`, "seq", "3")
      const before = yield* ask("XRANGE", events, "-", "+")
      expect(yield* Effect.flip(store.read("r", reads))).toMatchObject({ _tag: corrupt, runId: "r", seq: 3 })
      expect(yield* ask("XRANGE", events, "-", "+")).toEqual(before)
      expect(yield* store.read("r", { after: 0, limit: 2 })).toHaveLength(2)
    })
  )
})
