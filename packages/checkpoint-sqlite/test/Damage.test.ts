/** What somebody changed behind the store's back: it is said, it hides nothing else, and nothing of it is repaired. */
import { readFileSync, writeFileSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { describe, expect, it } from "@effect/vitest"
import type { CheckpointStore } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { Driver } from "../src/SqliteDriver.ts"
import { applicationId, migrations } from "../src/Tables.ts"
import { change, failure, file, head, rows, store } from "./support/files.ts"

type Service = CheckpointStore.CheckpointStore["Service"]
type Asked = Effect.Effect<unknown, { readonly _tag: string }>

const append = (
  runId: string,
  expectedSeq = 0,
  fields: Partial<CheckpointStore.HeadRow> = {}
): CheckpointStore.Append => ({
  runId,
  epoch: 0,
  expectedSeq,
  events: [`${runId} ${expectedSeq}`],
  head: head({ updatedAt: expectedSeq, ...fields })
})

/** Every operation that looks at that Run. */
const operations = (one: Service, runId: string, seq: number): ReadonlyArray<Asked> => [
  one.head(runId),
  one.read(runId, { after: 0, limit: 10 }),
  one.append(append(runId, seq)),
  one.claim({ runId, owner: "o", ttlMillis: 1 })
]

/** A closed file with these Runs, of two appends each. */
const filled = (...runIds: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const path = yield* file
    yield* Effect.scoped(
      Effect.gen(function* () {
        const one = yield* store(path)
        for (const runId of runIds) yield* Effect.andThen(one.append(append(runId)), one.append(append(runId, 1)))
      })
    )
    return path
  })

const all = "SELECT rid, seq, body FROM journal ORDER BY rid, seq"

/** A file as the first version of this package left it: two Runs of two appends. */
const ofVersion1 = Effect.map(file, (path) => {
  const row = (rid: number, id: string) => [
    `INSERT INTO runs (rid, run_id, seq, epoch, until, status, agent, waiting, updated_at, head)
     VALUES (${rid}, '${id}', 2, 1, 0, 'waiting', 'a', '["approval"]', ${rid}, '{}')`,
    `INSERT INTO journal (rid, seq, epoch, body) VALUES (${rid}, 1, 1, '=${id} 0'), (${rid}, 2, 1, '=${id} 1')`
  ]
  const marks = [`PRAGMA application_id = ${applicationId}`, "PRAGMA user_version = 1"]
  change(path, "PRAGMA journal_mode = WAL", ...(migrations[0] ?? []), ...row(1, "a"), ...row(2, "b"), ...marks)
  return path
})

describe("RI-106 a head that cannot be", () => {
  it.live.each<readonly [string, string]>([
    ["UPDATE runs SET seq = -5 WHERE run_id = 'bad'", "runs.seq"],
    ["UPDATE runs SET seq = seq + 3 WHERE run_id = 'bad'", "runs.seq"],
    ["UPDATE runs SET seq = seq - 1 WHERE run_id = 'bad'", "runs.seq"],
    ["DELETE FROM journal WHERE rid = (SELECT rid FROM runs WHERE run_id = 'bad')", "runs.seq"],
    ["UPDATE runs SET epoch = -1 WHERE run_id = 'bad'", "runs.epoch"]
  ])("(%s) fails every operation, and nothing is changed", ([sql, where]) =>
    Effect.gen(function* () {
      const path = yield* filled("kept", "bad")
      change(path, sql)
      const before = rows(path, all)
      const one = yield* store(path)
      for (const seq of [-5, 0, 1, 2, 5]) {
        for (const operation of [...operations(one, "bad", seq), one.remove("bad", seq)]) {
          expect(yield* failure(operation)).toMatchObject({ _tag: "CheckpointCorrupt", runId: "bad", path: where })
        }
      }
      expect(rows(path, all)).toEqual(before)
    })
  )

  it.live.each<readonly [string, string]>([
    ["UPDATE runs SET updated_at = 9e999 WHERE run_id = 'bad'", "runs.updated_at"],
    ["UPDATE runs SET wake_at = -9e999 WHERE run_id = 'bad'", "runs.wake_at"],
    ["UPDATE runs SET seq = -5 WHERE run_id = 'bad'", "runs.seq"],
    ["UPDATE runs SET seq = seq + 3 WHERE run_id = 'bad'", "runs.seq"],
    ["DELETE FROM journal WHERE rid = (SELECT rid FROM runs WHERE run_id = 'bad')", "runs.seq"],
    ["UPDATE runs SET epoch = -1 WHERE run_id = 'bad'", "runs.epoch"]
  ])("(%s) is left out of lists and named", ([sql, where]) =>
    Effect.gen(function* () {
      const path = yield* filled("kept", "bad")
      change(path, sql)
      const one = yield* store(path)
      const said: Array<string> = []
      const noting = Logger.layer([Logger.make(({ message }) => void said.push(String(message)))])
      const listed = yield* Effect.provide(one.list({}, { limit: 10 }), noting)
      expect(listed.map(({ runId }) => runId)).toEqual(["kept"])
      expect(said).toEqual([`Left out of a list: Run bad is damaged at ${where}. It was left as it is.`])
      expect(yield* failure(one.head("bad"))).toMatchObject({ _tag: "CheckpointCorrupt", path: where })
    })
  )
})

describe("an append that SQLite refuses", () => {
  it.live("by a trigger of somebody else is StoreUnavailable with its words, not damage", () =>
    Effect.gen(function* () {
      const path = yield* filled("r")
      change(path, "CREATE TRIGGER mine BEFORE INSERT ON journal BEGIN SELECT RAISE(ABORT, 'not today'); END")
      const error = yield* failure((yield* store(path)).append(append("r", 2)))
      expect(error).toMatchObject({ _tag: "StoreUnavailable" })
      expect(error.message).toContain("a trigger that is not ours refused it: not today")
    })
  )

  it.live("since the tables do not agree is damage that is told without SQL and without an event 0", () =>
    Effect.gen(function* () {
      const path = yield* filled("r")
      change(path, "CREATE UNIQUE INDEX only ON journal (rid) WHERE seq > 1")
      const error = yield* failure((yield* store(path)).append(append("r", 2)))
      expect(error.message).toBe("Run r is damaged at runs and journal: they do not agree. It was left as it is.")
    })
  )
})

describe("RI-106 a Run that has lost its row", () => {
  it.live("is damaged, not unknown, and the next new Run does not take over its events", () =>
    Effect.gen(function* () {
      const path = yield* filled("kept", "bad")
      change(path, "DELETE FROM runs WHERE run_id = 'bad'")
      const before = rows(path, all)
      const one = yield* store(path)
      const missing = { _tag: "CheckpointCorrupt", runId: "bad", path: "runs: missing" }
      for (const operation of [...operations(one, "bad", 2), ...operations(one, "bad", 0), one.remove("bad", 2)]) {
        expect(yield* failure(operation)).toMatchObject(missing)
      }
      expect(rows(path, all)).toEqual(before)
      for (const seq of [0, 1, 2]) expect(yield* one.append(append("new", seq))).toEqual({ _tag: "Committed" })
      const read = yield* one.read("new", { after: 0, limit: 10 })
      expect(read.map(({ body }) => body)).toEqual(["new 0", "new 1", "new 2"])
    })
  )

  it.live("what is left of it has no first row: no new Run takes its rid either", () =>
    Effect.gen(function* () {
      const path = yield* filled("bad")
      change(path, "DELETE FROM runs", "DELETE FROM journal WHERE seq = 1")
      const one = yield* store(path)
      yield* one.append(append("new"))
      expect(yield* one.read("new", { after: 0, limit: 10 })).toHaveLength(1)
      expect(yield* one.append(append("new", 1))).toEqual({ _tag: "Committed" })
    })
  )

  it.live("events that name another Run are damage, not events", () =>
    Effect.gen(function* () {
      const path = yield* filled("a", "b")
      change(path, "UPDATE runs SET rid = 9 WHERE run_id = 'b'", "UPDATE runs SET rid = 2 WHERE run_id = 'a'")
      const one = yield* store(path)
      const error = yield* failure(one.read("a", { after: 0, limit: 10 }))
      expect(error).toMatchObject({ _tag: "CheckpointCorrupt", runId: "a", path: "journal.run_id" })
    })
  )
})

describe("a file of schema version 1", () => {
  it.live("goes on, and its Runs are named from then on", () =>
    Effect.gen(function* () {
      const path = yield* ofVersion1
      const said: Array<string> = []
      const noting = Logger.layer([Logger.make(({ message }) => void said.push(String(message)))])
      const one = yield* Effect.provide(store(path), noting)
      expect(said).toEqual([
        expect.stringContaining(`${path} is brought to schema version ${migrations.length}: about 4 appends.`),
        expect.stringContaining(`${path} has schema version ${migrations.length} now, after `)
      ])
      yield* Effect.provide(store(path), noting)
      yield* Effect.provide(store(yield* file), noting)
      expect(said).toHaveLength(2)
      expect(rows(path, "PRAGMA user_version")).toEqual([expect.objectContaining({ user_version: migrations.length })])
      const listed = yield* one.list({ status: ["waiting"] }, { limit: 10 })
      expect(listed.map(({ runId }) => runId)).toEqual(["a", "b"])
      expect(yield* one.list({ waiting: "approval" }, { limit: 10 })).toEqual(listed)
      expect(yield* one.append(append("b", 2))).toEqual({ _tag: "Committed" })
      const read = yield* one.read("b", { after: 0, limit: 10 })
      expect(read.map(({ body }) => body)).toEqual(["b 0", "b 1", "b 2"])
      change(path, "DELETE FROM runs WHERE run_id = 'a'")
      expect(yield* failure(one.head("a"))).toMatchObject({ _tag: "CheckpointCorrupt", path: "runs: missing" })
    })
  )

  it.live("a Run that a process of that version adds meanwhile, without a name, is read", () =>
    Effect.gen(function* () {
      const path = yield* filled("a")
      change(path, "UPDATE journal SET run_id = NULL")
      expect(yield* (yield* store(path)).read("a", { after: 0, limit: 10 })).toHaveLength(2)
    })
  )
})

describe("RI-106 a list", () => {
  const damages = [
    ["waiting = 'no'", "runs.waiting"],
    ["epoch = 1 << 60", "runs.epoch"]
  ] as const
  it.live.each(damages)("leaves out a Run with %s, says so once, and fills its page from the others", ([set, where]) =>
    Effect.gen(function* () {
      const ids = ["a", "b", "c", "d", "e"]
      const path = yield* file
      const one = yield* store(path)
      for (const runId of ids) yield* one.append(append(runId, 0, { status: "waiting", waiting: ["approval"] }))
      change(path, `UPDATE runs SET ${set} WHERE run_id IN ('b', 'c')`)
      const said: Array<string> = []
      const noting = Logger.layer([Logger.make(({ logLevel, message }) => void said.push(`${logLevel} ${message}`))])
      const filters: ReadonlyArray<CheckpointStore.Filter> = [{}, { status: ["waiting"] }, { waiting: "approval" }]
      for (const filter of filters) {
        const first = yield* Effect.provide(one.list(filter, { limit: 2 }), noting)
        expect(first.map(({ runId }) => runId)).toEqual(["a", "d"])
        const rest = yield* one.list(filter, { limit: 2, after: { runId: "d", updatedAt: 0 } })
        expect(rest.map(({ runId }) => runId)).toEqual(["e"])
      }
      const [b, c] = ["b", "c"].map((runId) => `Run ${runId} is damaged at ${where}. It was left as it is.`)
      const warning = `Warn Left out of a list: ${b} ${c}`
      expect(said).toEqual(filters.map(() => warning))
      for (const operation of operations(one, "b", 1)) {
        expect(yield* failure(operation)).toMatchObject({ _tag: "CheckpointCorrupt", runId: "b" })
      }
    })
  )
})

describe("RI-106 no damage is a defect", () => {
  const ofTheRun = [
    "UPDATE runs SET seq = 1",
    "UPDATE runs SET seq = 1 << 60",
    "UPDATE runs SET rid = 1 << 60",
    "UPDATE journal SET seq = 1 << 60 WHERE seq = 2",
    "UPDATE journal SET epoch = 1 << 60"
  ]
  const ofTheFile = [
    "ALTER TABLE runs RENAME COLUMN head TO h",
    "ALTER TABLE journal RENAME COLUMN body TO b",
    "ALTER TABLE runs DROP COLUMN wake_at",
    "DROP TABLE runs"
  ]
  const failures = (sql: string) =>
    Effect.gen(function* () {
      const path = yield* filled("r")
      change(path, "DROP INDEX runs_waking", sql)
      const tags: Array<string> = []
      const opened = Effect.gen(function* () {
        const one = yield* store(path)
        // A defect fails the test.
        const asked: ReadonlyArray<Asked> = [
          one.append(append("r", 1)),
          ...operations(one, "r", 2),
          one.append(append("new")),
          one.list({}, { limit: 10 })
        ]
        for (const operation of asked) {
          yield* Effect.match(operation, { onFailure: ({ _tag }) => void tags.push(_tag), onSuccess: () => undefined })
        }
      })
      yield* Effect.match(opened, { onFailure: ({ _tag }) => void tags.push(_tag), onSuccess: () => undefined })
      return new Set(tags)
    })

  it.live.each(ofTheRun)("%s: CheckpointCorrupt", (sql) =>
    Effect.gen(function* () {
      expect(yield* failures(sql)).toEqual(new Set(["CheckpointCorrupt"]))
    })
  )

  it.live.each(ofTheFile)("%s: StoreCorrupt", (sql) =>
    Effect.gen(function* () {
      expect(yield* failures(sql)).toEqual(new Set(["StoreCorrupt"]))
    })
  )

  it.live("a file format that SQLite does not know: StoreCorrupt", () =>
    Effect.gen(function* () {
      const path = yield* filled("r")
      const content = readFileSync(path)
      // The schema format number, https://sqlite.org/fileformat2.html#database_header
      content.writeUInt32BE(9, 44)
      writeFileSync(path, content)
      const error = yield* failure(store(path))
      expect(error).toMatchObject({ _tag: "StoreCorrupt", store: path })
      expect(error.message).toContain("unsupported file format")
    })
  )
})

/** SQLite that does something right after it has found no row of a Run. */
const meanwhile = (act: () => void): Driver =>
  Driver.of({
    open: (path, options) => {
      const db = new DatabaseSync(path, options)
      const prepare = db.prepare.bind(db)
      db.prepare = (sql, ...rest) => {
        const statement = prepare(sql, ...rest)
        if (!/^\s*SELECT (?!1 )[^]*FROM runs WHERE run_id/.test(sql)) return statement
        const get = statement.get.bind(statement)
        return Object.assign(statement, {
          get: (...values: ReadonlyArray<string>) => {
            const row = get(...values)
            if (row === undefined) act()
            return row
          }
        })
      }
      return db
    }
  })

describe("RI-106 a Run that another process creates between two looks", () => {
  it.live.each(["head", "read"] as const)("is unknown to %s, not damaged", (operation) =>
    Effect.gen(function* () {
      const path = yield* filled("other")
      const creator = yield* store(path)
      let created = 0
      const racing = meanwhile(() => {
        if (created++ === 0) Effect.runSync(creator.append(append("late")))
      })
      const one = yield* Effect.provideService(store(path), Driver, racing)
      const asked = { head: one.head("late"), read: one.read("late", { after: 0, limit: 1 }) }
      yield* asked[operation]
      expect(created).toBe(1)
      expect(yield* one.head("late")).toMatchObject({ seq: 1 })
    })
  )
})
