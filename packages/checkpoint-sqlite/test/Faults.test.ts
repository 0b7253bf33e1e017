import type { CheckpointStore } from "@waystone/core"
import { chmodSync, closeSync, copyFileSync, openSync, readFileSync, statSync, writeFileSync, writeSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Exit from "effect/Exit"
import * as TestClock from "effect/testing/TestClock"
import { Driver } from "../src/SqliteDriver.ts"
import { child } from "./support/children.ts"
import { bytes, change, failure, file, head, rows, store } from "./support/files.ts"

const append = (expectedSeq: number, events: ReadonlyArray<string> = ["x"]): CheckpointStore.Append => ({
  runId: "r",
  epoch: 0,
  expectedSeq,
  events,
  head: head()
})

/** A file with one Run of `count` appends, closed. */
const filled = (count = 3) =>
  Effect.gen(function* () {
    const path = yield* file
    yield* Effect.scoped(
      Effect.gen(function* () {
        const one = yield* store(path)
        for (let seq = 0; seq < count; seq++) yield* one.append(append(seq, [`${seq} ${"x".repeat(500)}`]))
      })
    )
    return path
  })

/** Holds the write lock until the scope ends. */
const locked = (path: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const db = new DatabaseSync(path)
      db.exec("BEGIN IMMEDIATE")
      return db
    }),
    (db) => Effect.sync(() => db.close())
  )

describe("RI-131 busy", () => {
  it.live("a lock that lasts too long is StoreUnavailable that says so, at the open and at an append", () =>
    Effect.gen(function* () {
      const path = yield* filled()
      const one = yield* store(path, { busyTimeout: "200 millis" })
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* locked(path)
          const before = bytes(path)
          const started = performance.now()
          const error = yield* failure(one.append(append(3)))
          expect(error).toMatchObject({ _tag: "StoreUnavailable" })
          expect(error.message).toContain("raise busyTimeout")
          expect(performance.now() - started).toBeGreaterThan(150)
          expect(yield* failure(one.claim({ runId: "r", owner: "o", ttlMillis: 1 }))).toMatchObject({
            _tag: "StoreUnavailable"
          })
          // Readers wait for nobody.
          expect(yield* one.read("r", { after: 0, limit: 10 })).toHaveLength(3)
          expect(bytes(path)).toEqual(before)
        })
      )
      expect(yield* one.append(append(3))).toEqual({ _tag: "Committed" })
    })
  )

  it.effect("a busyTimeout as long as the default is not advised to be raised: core waits hardly longer", () =>
    Effect.gen(function* () {
      const path = yield* filled()
      const one = yield* store(path)
      yield* locked(path)
      const failed = yield* Effect.forkChild(failure(one.append(append(3))), { startImmediately: true })
      yield* TestClock.adjust("10 seconds")
      const error = yield* Fiber.join(failed)
      expect(error.message).toContain("Find who holds it")
      expect(error.message).not.toContain("busyTimeout")
    })
  )

  it.live("a lock that is let go in time is waited for, and other fibers run meanwhile", () =>
    Effect.gen(function* () {
      const path = yield* filled()
      const one = yield* store(path, { busyTimeout: "5 seconds" })
      const scope = yield* Scope.make()
      yield* Scope.provide(locked(path), scope)
      const waiting = yield* Effect.forkChild(one.append(append(3)), { startImmediately: true })
      let turns = 0
      for (let i = 0; i < 5; i++) {
        yield* Effect.sleep("10 millis")
        turns++
      }
      expect(turns).toBe(5)
      expect(waiting.pollUnsafe()).toBeUndefined()
      yield* Scope.close(scope, Exit.void)
      expect(yield* Fiber.join(waiting)).toEqual({ _tag: "Committed" })
    })
  )

  it.live("a busyTimeout ends when it is over by the clock, though its tries take longer than planned", () =>
    Effect.gen(function* () {
      const path = yield* filled()
      const one = yield* store(path, { busyTimeout: "1 second" })
      yield* locked(path)
      const clock = yield* Clock.Clock
      let slept = 0
      const now = () => slept * 400
      const slow = Object.assign(Object.create(clock), {
        currentTimeMillisUnsafe: now,
        currentTimeMillis: Effect.sync(now),
        sleep: () => Effect.sync(() => void slept++)
      })
      const error = yield* failure(Effect.provideService(one.append(append(3)), Clock.Clock, slow))
      expect(error).toMatchObject({ _tag: "StoreUnavailable" })
      // By their number alone there would be 16.
      expect(slept).toBeLessThan(6)
    })
  )

  it.effect("a busyTimeout of 0 does not wait: it fails while no time passes", () =>
    Effect.gen(function* () {
      const path = yield* filled()
      const timeouts: Array<number> = []
      const noting = Driver.of({
        open: (file, options) => {
          timeouts.push(options.timeout)
          return new DatabaseSync(file, options)
        }
      })
      const one = yield* Effect.provideService(store(path, { busyTimeout: 0 }), Driver, noting)
      yield* locked(path)
      expect(yield* failure(one.append(append(3)))).toMatchObject({ _tag: "StoreUnavailable" })
      // Nor does SQLite itself.
      expect(timeouts).toEqual([0])
    })
  )
})

describe("RI-131 full", () => {
  /** A disk with room for so many pages. */
  const small = (pages: number) =>
    Driver.of({
      open: (file, options) => {
        const db = new DatabaseSync(file, options)
        db.exec(`PRAGMA max_page_count = ${pages}`)
        return db
      }
    })

  it.live("an append that finds no room is StoreUnavailable and half of it is nowhere; with room it lands", () =>
    Effect.gen(function* () {
      const path = yield* filled()
      const pages = Number(rows(path, "PRAGMA page_count")[0]?.["page_count"])
      const one = yield* Effect.provideService(store(path), Driver, small(pages + 1))
      const before = yield* one.read("r", { after: 0, limit: 100 })
      const error = yield* failure(one.append(append(3, ["a", "b".repeat(50_000)])))
      expect(error).toMatchObject({ _tag: "StoreUnavailable" })
      expect(error.message).toContain("full")
      expect(yield* one.read("r", { after: 0, limit: 100 })).toEqual(before)
      expect(yield* one.head("r")).toMatchObject({ seq: 3 })
      // The connection is not stuck in the transaction that failed.
      expect(yield* one.append(append(3, ["small"]))).toEqual({ _tag: "Committed" })
      const roomy = yield* store(path)
      expect(yield* roomy.append(append(4, ["b".repeat(50_000)]))).toEqual({ _tag: "Committed" })
      expect(rows(path, "PRAGMA integrity_check")).toEqual([expect.objectContaining({ integrity_check: "ok" })])
    })
  )
})

describe("RI-082 an append is one transaction", () => {
  it.live("whichever of its statements fails, nothing of it is stored: neither events nor head nor Run", () =>
    Effect.gen(function* () {
      const path = yield* filled()
      // A constraint of the test's own stands for a failure at that statement.
      const refuse = (table: string, when: string, event: string) =>
        `CREATE TRIGGER no_${table}_${event} AFTER ${event} ON ${table} WHEN ${when}
         BEGIN SELECT RAISE(ABORT, 'refused'); END`
      change(
        path,
        refuse("runs", "NEW.head = 'poison'", "UPDATE"),
        refuse("journal", "NEW.body LIKE '%poison%'", "INSERT")
      )
      const one = yield* store(path)
      const before = rows(path, "SELECT * FROM runs, journal")
      const poisoned = [
        { ...append(3, ["a", "b"]), head: head({ body: "poison" }) },
        { ...append(3, ["a", "b"]), head: head({ body: "poison", status: "waiting", waiting: ["approval"] }) },
        append(3, ["a", "poison"]),
        append(3, ["poison", "a"]),
        { ...append(0, ["a", "poison"]), runId: "new" }
      ]
      for (const request of poisoned) {
        expect(Exit.isFailure(yield* Effect.exit(one.append(request)))).toBe(true)
        expect(rows(path, "SELECT * FROM runs, journal")).toEqual(before)
      }
      expect(yield* one.append(append(3, ["a", "b"]))).toEqual({ _tag: "Committed" })
    })
  )
})

describe("RI-131 no access", () => {
  it.live(
    "a file that may not be written is StoreUnavailable that says what to check, and is left as it is",
    () =>
      Effect.gen(function* () {
        const path = yield* filled()
        chmodSync(path, 0o444)
        chmodSync(path.replace(/\/[^/]*$/, ""), 0o755)
        const before = bytes(path)
        const told = yield* child("open", [path], { unprivileged: true })
        const answer = yield* told.ask("go")
        expect(answer).toMatchObject({ failed: "StoreUnavailable" })
        expect(answer["message"]).toContain("EACCES")
        expect(answer["message"]).toContain("may read and write")
        expect(bytes(path)).toEqual(before)
      }),
    120_000
  )

  it.live(
    "a folder that may not be written is StoreUnavailable, too",
    () =>
      Effect.gen(function* () {
        const path = yield* file
        chmodSync(path.replace(/\/[^/]*$/, ""), 0o555)
        const told = yield* child("open", [path], { unprivileged: true })
        expect(yield* told.ask("go")).toMatchObject({ failed: "StoreUnavailable" })
      }),
    120_000
  )
})

describe("RI-131 corrupt", () => {
  it.live.each([
    ["text", Buffer.from("this is no database, but somebody's notes\n".repeat(100))],
    ["zeros", Buffer.alloc(8192)],
    ["half a header", Buffer.from("SQLite format 3\0")]
  ] as const)("a file of %s is StoreCorrupt that names it, and is left as it is", ([, content]) =>
    Effect.gen(function* () {
      const path = yield* file
      writeFileSync(path, content)
      const before = bytes(path)
      const error = yield* failure(store(path))
      expect(error).toMatchObject({
        _tag: "StoreCorrupt",
        store: path,
        detail: expect.stringContaining("SQLite code 26")
      })
      expect(error.message).toContain(path)
      expect(error.message).toContain("left as it is")
      expect(bytes(path)).toEqual(before)
    })
  )

  /** Overwrites every page but the first two. */
  const ruin = (path: string) => {
    const { size } = statSync(path)
    const descriptor = openSync(path, "r+")
    for (let at = 2 * 2048; at < size; at += 2048) writeSync(descriptor, Buffer.alloc(1024, 0xa5), 0, 1024, at)
    closeSync(descriptor)
  }

  it.live("damaged pages are StoreCorrupt when they are met, at the open with check; the bytes stay", () =>
    Effect.gen(function* () {
      const path = yield* filled(50)
      ruin(path)
      const before = readFileSync(path)
      const checked = yield* failure(store(path, { check: true }))
      expect(checked).toMatchObject({ _tag: "StoreCorrupt", store: path, detail: expect.stringContaining("page") })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const one = yield* store(path)
          const operations: ReadonlyArray<Effect.Effect<unknown, { readonly _tag: string }>> = [
            one.read("r", { after: 0, limit: 100 }),
            one.head("r"),
            one.append(append(50)),
            one.list({}, { limit: 10 })
          ]
          for (const operation of operations) {
            expect(yield* failure(operation)).toMatchObject({ _tag: "StoreCorrupt", store: path })
          }
        })
      )
      expect(readFileSync(path).equals(before)).toBe(true)
    })
  )

  it.live("a file that is cut off is StoreCorrupt, and is not grown again", () =>
    Effect.gen(function* () {
      const path = yield* filled(50)
      const cut = readFileSync(path).subarray(0, 5 * 2048)
      const other = yield* file
      writeFileSync(other, cut)
      expect(yield* failure(store(other, { check: true }))).toMatchObject({ _tag: "StoreCorrupt", store: other })
      expect(readFileSync(other).equals(cut)).toBe(true)
    })
  )

  it.live("RI-106 a row that this store never writes is CheckpointCorrupt that says where; the row stays", () =>
    Effect.gen(function* () {
      const path = yield* filled()
      const copies: ReadonlyArray<readonly [string, string, "read" | "head"]> = [
        ["UPDATE journal SET body = x'ff00' WHERE seq = 2", "journal.body", "read"],
        ["UPDATE journal SET body = 7 WHERE seq = 2", "journal.body", "read"],
        ["DELETE FROM journal WHERE seq = 2", "journal: missing", "read"],
        ["UPDATE journal SET body = body || char(10) || '=more' WHERE seq = 3", "journal: missing", "read"],
        ["UPDATE runs SET waiting = '{}'", "runs.waiting", "head"],
        ["UPDATE runs SET waiting = 'no'", "runs.waiting", "head"]
      ]
      for (const [sql, where, operation] of copies) {
        const other = yield* file
        copyFileSync(path, other)
        change(other, sql)
        const all = "SELECT * FROM journal, runs"
        const before = rows(other, all)
        const one = yield* store(other)
        const asked: Effect.Effect<unknown, { readonly _tag: string }> =
          operation === "read" ? one.read("r", { after: 0, limit: 100 }) : one.head("r")
        const error = yield* failure(asked)
        expect(error).toMatchObject({ _tag: "CheckpointCorrupt", runId: "r", path: where })
        expect(rows(other, all)).toEqual(before)
      }
    })
  )

  it.live("a file with our mark and without our tables is StoreCorrupt", () =>
    Effect.gen(function* () {
      const path = yield* filled()
      change(path, "DROP TABLE journal")
      expect(yield* failure(store(path))).toMatchObject({ _tag: "StoreCorrupt", store: path })
    })
  )
})

it.live("a store whose scope has ended is StoreUnavailable, not a crash", () =>
  Effect.gen(function* () {
    const path = yield* file
    const one = yield* Effect.scoped(store(path))
    const error = yield* failure(one.append(append(0)))
    expect(error).toMatchObject({ _tag: "StoreUnavailable" })
    expect(error.message).toContain("closed")
    expect(yield* failure(one.head("r"))).toMatchObject({ _tag: "StoreUnavailable" })
    expect(yield* failure(one.list({}, { limit: 1 }))).toMatchObject({ _tag: "StoreUnavailable" })
  })
)
