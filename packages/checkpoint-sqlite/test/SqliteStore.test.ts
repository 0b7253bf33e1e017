import { mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { afterAll, describe, expect, it } from "@effect/vitest"
import { CheckpointStore } from "@waystone/core"
import { AnswerLosingStore, CheckpointStoreSuite, YieldingStore } from "@waystone/core/testing"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Driver } from "../src/SqliteDriver.ts"
import * as SqliteStore from "../src/SqliteStore.ts"
import { change, file, fresh, head, rows, store } from "./support/files.ts"

type Service = CheckpointStore.CheckpointStore["Service"]

/** All rules share one file, as the Runs of an application do. */
const shared = mkdtempSync(join(tmpdir(), "waystone-sqlite-suite-"))
afterAll(() => rmSync(shared, { recursive: true, force: true }))

/** SQLite that notes which statements on rows it is asked to prepare. */
const listening = (asked: Set<string>): Driver =>
  Driver.of({
    open: (path, options) => {
      const db = new DatabaseSync(path, options)
      const prepare = db.prepare.bind(db)
      db.prepare = (sql, ...rest) => {
        if (/^\s*(?:SELECT|INSERT|UPDATE|DELETE)/.test(sql)) asked.add(sql)
        return prepare(sql, ...rest)
      }
      return db
    }
  })

const suite = (
  name: string,
  durability: "power-loss" | "process",
  wrap: (store: Service) => Service = (same) => same
) =>
  describe(name, () => {
    const options = { file: join(shared, `${name}.db`), durability }
    CheckpointStoreSuite.register(it.live, {
      layer: Layer.effect(CheckpointStore.CheckpointStore, Effect.map(SqliteStore.make(options), wrap)),
      capabilities: { reopen: SqliteStore.make(options) }
    })
  })

suite("power-loss", "power-loss")
suite("process", "process")
suite("process, yielding", "process", YieldingStore.make)
suite("process, losing every second answer", "process", (one) =>
  AnswerLosingStore.make(YieldingStore.make(one), AnswerLosingStore.every(2))
)

describe("SqliteStore", () => {
  it.live("C4 leases end by the machine's clock, whatever the Clock of the caller says", () =>
    Effect.gen(function* () {
      const one = yield* fresh
      const at =
        (millis: number) =>
        <A, E, R>(effect: Effect.Effect<A, E, R>) =>
          Effect.provideService(effect, Clock.Clock, {
            currentTimeMillisUnsafe: () => millis,
            currentTimeMillis: Effect.succeed(millis),
            currentTimeNanosUnsafe: () => BigInt(millis) * 1_000_000n,
            currentTimeNanos: Effect.succeed(BigInt(millis) * 1_000_000n),
            monotonicTimeNanosUnsafe: () => BigInt(millis) * 1_000_000n,
            monotonicTimeNanos: Effect.succeed(BigInt(millis) * 1_000_000n),
            sleep: () => Effect.void
          })
      const past = at(1)
      const future = at(Date.now() + 1_000_000_000)
      yield* past(
        one.append({
          runId: "r",
          epoch: 1,
          expectedSeq: 0,
          events: ["1"],
          head: head({ status: "waiting", wakeAt: Date.now() + 60_000 }),
          lease: { owner: "created", ttlMillis: 60_000 }
        })
      )
      expect((yield* future(one.head("r")))?.live).toBe(true)
      expect(yield* future(one.list({ due: true }, { limit: 10 }))).toEqual([])
      expect((yield* future(one.claim({ runId: "r", owner: "late", ttlMillis: 60_000 })))._tag).toBe("Busy")
      yield* one.release({ runId: "r", epoch: 1 })
      yield* past(one.claim({ runId: "r", owner: "claimed", ttlMillis: 60_000 }))
      expect((yield* future(one.head("r")))?.live).toBe(true)
      yield* past(one.renew({ runId: "r", epoch: 2, ttlMillis: 60_000 }))
      expect((yield* future(one.head("r")))?.live).toBe(true)
      expect((yield* future(one.claim({ runId: "r", owner: "late", ttlMillis: 1 })))._tag).toBe("Busy")
    })
  )

  it.live("a page may begin and end in the middle of an append", () =>
    Effect.gen(function* () {
      const one = yield* fresh
      const all = Array.from({ length: 30 }, (_, i) => `e${i + 1}`)
      const sizes = [1, 7, 2, 10, 3, 7]
      let seq = 0
      const ends: Array<number> = []
      for (const size of sizes) {
        yield* one.append({ runId: "r", epoch: 0, expectedSeq: seq, events: all.slice(seq, seq + size), head: head() })
        ends.push((seq += size))
      }
      for (let after = 0; after <= 31; after++) {
        for (let limit = 0; limit <= 12; limit++) {
          const page = yield* one.read("r", { after, limit })
          expect(page.map(({ body, ends, seq }) => [seq, body, ends])).toEqual(
            all.slice(after, after + limit).map((body, i) => [after + i + 1, body, ends.includes(after + i + 1)])
          )
        }
      }
    })
  )

  it.live("any well-formed text is kept, line breaks too, beside events that have none", () =>
    Effect.gen(function* () {
      const path = yield* file
      const one = yield* store(path)
      const appends = [["a\nb", "", "\n"], ["\r\n"], ["{}", "[]"], [""], ["", ""], ["\n"]]
      let seq = 0
      for (const events of appends) {
        yield* one.append({ runId: "r", epoch: 0, expectedSeq: seq, events, head: head({ body: "x\ny" }) })
        seq += events.length
      }
      const other = yield* store(path)
      expect((yield* other.read("r", { after: 0, limit: 100 })).map(({ body }) => body)).toEqual(appends.flat())
      expect((yield* other.head("r"))?.body).toBe("x\ny")
    })
  )

  it.live("10,000 appends to one Run: the last ones read no table as a whole, and write as much as the first", () =>
    Effect.gen(function* () {
      const path = yield* file
      const asked = new Set<string>()
      const one = yield* Effect.provideService(store(path), Driver, listening(asked))
      /** The bytes that these appends wrote, in frames of the WAL. */
      const written = (from: number, to: number) =>
        Effect.gen(function* () {
          change(path, "PRAGMA wal_checkpoint(TRUNCATE)")
          for (let expectedSeq = from; expectedSeq < to; expectedSeq++) {
            const events = ["x".repeat(300)]
            yield* one.append({ runId: "r", epoch: 0, expectedSeq, events, head: head({ updatedAt: expectedSeq }) })
          }
          return statSync(`${path}-wal`).size
        })
      const first = yield* written(0, 200)
      yield* written(200, 9800)
      expect(yield* written(9800, 10_000)).toBeLessThan(1.5 * first)
      const plans = [...asked].flatMap((sql) => rows(path, `EXPLAIN QUERY PLAN ${sql}`))
      expect(plans.length).toBeGreaterThan(5)
      expect(plans.map(({ detail }) => detail)).not.toContainEqual(expect.stringMatching(/^SCAN (?:runs|journal)/))
    })
  )
})
