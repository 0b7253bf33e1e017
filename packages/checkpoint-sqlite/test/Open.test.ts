import { createHash } from "node:crypto"
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Driver, unsafe } from "../src/SqliteDriver.ts"
import type { Options } from "../src/SqliteStore.ts"
import { applicationId, migrations, version } from "../src/Tables.ts"
import { bytes, change, failure, file, folder, head, mode, rows, store } from "./support/files.ts"

const append = { runId: "r", epoch: 0, expectedSeq: 0, events: ["1"], head: head() } as const

describe("the options", () => {
  const wrong: ReadonlyArray<readonly [string, string, { readonly [field: string]: unknown }]> = [
    ["file", "MemoryStore", { file: ":memory:" }],
    ["file", "MemoryStore", { file: "file::memory:?cache=shared" }],
    ["file", "URI", { file: "file:runs.db" }],
    ["file", "path", { file: "" }],
    ["file", "path", { file: undefined }],
    ["file", "folder", { file: "data/foo/" }],
    ["file", "NUL", { file: "a\0b" }],
    ["durability", "power-loss", { durability: "fast" }],
    ["busyTimeout", "0 to 5 seconds", { busyTimeout: -1 }],
    ["busyTimeout", "0 to 5 seconds", { busyTimeout: "5001 millis" }],
    ["busyTimeout", "0 to 5 seconds", { busyTimeout: "soon" }],
    ["busyTimeout", "0 to 5 seconds", { busyTimeout: Number.NaN }],
    ["busyTimeout", "0 to 5 seconds", { busyTimeout: "Infinity" }],
    ["check", "true or false", { check: 1 }]
  ]
  it.live.each(wrong)("a wrong %s is an OptionInvalid that names it and says %s", ([field, words, given]) =>
    Effect.gen(function* () {
      const path = yield* file
      const options: Options = Object.assign({ file: path }, given)
      const error = yield* failure(store(options.file, options))
      expect(error).toMatchObject({ _tag: "OptionInvalid", field })
      expect(error.message).toContain(`"${field}"`)
      expect(error.message).toContain(words)
      expect(existsSync(path)).toBe(false)
    })
  )
})

describe("a new file", () => {
  it.live("O3 is readable by its owner alone, its WAL and shared memory too, and so is a folder made for it", () =>
    Effect.gen(function* () {
      const path = join(yield* folder, "deep", "er", "runs.db")
      const one = yield* store(path)
      yield* one.append(append)
      expect([path, `${path}-wal`, `${path}-shm`].map(mode)).toEqual(["600", "600", "600"])
      expect([dirname(path), dirname(dirname(path))].map(mode)).toEqual(["700", "700"])
    })
  )

  it.live("is a WAL file with pages of 2048 bytes and our mark", () =>
    Effect.gen(function* () {
      const path = yield* file
      yield* store(path)
      const pragma = (name: string) => rows(path, `PRAGMA ${name}`)[0]?.[name]
      expect(["journal_mode", "page_size", "application_id", "user_version"].map(pragma)).toEqual([
        "wal",
        2048,
        applicationId,
        version
      ])
    })
  )

  it.live("has one file when the last store is closed, with everything in it", () =>
    Effect.gen(function* () {
      const path = yield* file
      yield* Effect.scoped(Effect.flatMap(store(path), (one) => one.append(append)))
      expect(Object.keys(bytes(path))).toEqual(["runs.db"])
      expect(rows(path, "SELECT seq, body FROM journal")).toEqual([expect.objectContaining({ seq: 1, body: "=1" })])
    })
  )

  it.live("an existing file keeps the mode that somebody gave it", () =>
    Effect.gen(function* () {
      const path = yield* file
      writeFileSync(path, "", { mode: 0o640 })
      yield* store(path)
      expect(mode(path)).toBe("640")
    })
  )

  it.live("power-loss is synchronous FULL and the default, process is NORMAL", () =>
    Effect.gen(function* () {
      const path = yield* file
      const opened: Array<DatabaseSync> = []
      const watching = Driver.of({
        open: (file, options) => {
          const db = new DatabaseSync(file, options)
          opened.push(db)
          return db
        }
      })
      yield* Effect.provideService(store(path), Driver, watching)
      yield* Effect.provideService(store(path, { durability: "power-loss" }), Driver, watching)
      const levels = opened.map((db) => db.prepare("PRAGMA synchronous").get()?.["synchronous"])
      expect(levels).toEqual([1, 2])
    })
  )
})

describe("the version of SQLite", () => {
  /** A connection whose SQLite says that it is another version. */
  const older = (version: string) =>
    Driver.of({
      open: (file, options) => {
        const db = new DatabaseSync(file, options)
        db.function("sqlite_version", () => version)
        return db
      }
    })

  it.live(
    "RI-130 a version that can lose pages of a WAL is refused by name before it writes; the present one is not",
    () =>
      Effect.gen(function* () {
        const path = yield* file
        yield* Effect.scoped(Effect.flatMap(store(path), (one) => one.append(append)))
        const before = bytes(path)
        const error = yield* failure(Effect.provideService(store(path), Driver, older("3.49.2")))
        expect(error).toMatchObject({ _tag: "SqliteUnsafe", version: "3.49.2" })
        expect(error.message).toContain("3.49.2")
        expect(error.message).toContain("Node")
        expect(bytes(path)).toEqual(before)
        expect(yield* (yield* store(path)).head("r")).toMatchObject({ seq: 1 })
      })
  )

  it.each([
    ["3.7.0", true],
    ["3.44.5", true],
    ["3.44.6", false],
    ["3.45.0", true],
    ["3.50.4", true],
    ["3.50.7", false],
    ["3.51.2", true],
    ["3.51.3", false],
    ["3.53.4", false],
    ["4.0.0", false],
    ["unknown", true]
  ])("RI-130 of %s it is %s that it is unsafe", (version, expected) => {
    expect(unsafe(version) !== undefined).toBe(expected)
  })
})

describe("the schema version", () => {
  it.live("a newer file is refused with both versions, and left as it is", () =>
    Effect.gen(function* () {
      const path = yield* file
      yield* Effect.scoped(store(path))
      change(path, `PRAGMA user_version = ${version + 1}`)
      const before = bytes(path)
      const error = yield* failure(store(path))
      expect(error).toMatchObject({ _tag: "FileTooNew", version: version + 1, supported: version })
      expect(error.message).toContain("Upgrade")
      expect(bytes(path)).toEqual(before)
    })
  )

  it.live("RI-131 our file with a version that no version of ours writes is StoreCorrupt, and left as it is", () =>
    Effect.gen(function* () {
      for (const wrong of [0, -1]) {
        const path = yield* file
        yield* Effect.scoped(store(path))
        change(path, `PRAGMA user_version = ${wrong}`)
        const before = bytes(path)
        const error = yield* failure(store(path))
        expect(error).toMatchObject({ _tag: "StoreCorrupt", store: path })
        expect(error.message).toContain(`(user_version) is ${wrong}`)
        expect(bytes(path)).toEqual(before)
      }
    })
  )

  it.live("the SQLite file of another application is refused, and left as it is", () =>
    Effect.gen(function* () {
      const files = yield* Effect.all([file, file, file])
      const kinds = ["CREATE TABLE t (a)", "PRAGMA application_id = 7", "PRAGMA user_version = 1"]
      for (const [i, path] of files.entries()) {
        change(path, kinds[i] ?? "")
        const before = bytes(path)
        expect(yield* failure(store(path))).toMatchObject({ _tag: "OptionInvalid", field: "file" })
        expect(bytes(path)).toEqual(before)
      }
    })
  )

  it.live("a migration that cannot end leaves nothing, and the next open does it again", () =>
    Effect.gen(function* () {
      const path = yield* file
      const cramped = Driver.of({
        open: (file, options) => {
          const db = new DatabaseSync(file, options)
          db.exec("PRAGMA page_size = 2048; PRAGMA max_page_count = 4")
          return db
        }
      })
      expect(yield* failure(Effect.provideService(store(path), Driver, cramped))).toMatchObject({
        _tag: "StoreUnavailable"
      })
      expect(rows(path, "SELECT name FROM sqlite_schema")).toEqual([])
      expect(yield* (yield* store(path)).append(append)).toEqual({ _tag: "Committed" })
    })
  )

  it.live("a file that has the present tables is looked at once when it is opened", () =>
    Effect.gen(function* () {
      const path = yield* file
      const begun: Array<string> = []
      const noting = Driver.of({
        open: (file, options) => {
          const db = new DatabaseSync(file, options)
          const exec = db.exec.bind(db)
          db.exec = (sql) => {
            if (sql.startsWith("BEGIN")) begun.push(sql)
            exec(sql)
          }
          return db
        }
      })
      const opened = Effect.scoped(Effect.provideService(store(path), Driver, noting))
      yield* opened
      expect(begun.splice(0)).toEqual(["BEGIN", "BEGIN IMMEDIATE"])
      yield* opened
      expect(begun).toEqual(["BEGIN"])
    })
  )

  it.live("O2 a process that loses the race to make the tables takes them as they are", () =>
    Effect.gen(function* () {
      const path = yield* file
      let raced = 0
      /** Between its look at the empty file and its lock another one makes the tables and a Run. */
      const late = Driver.of({
        open: (file, options) => {
          const db = new DatabaseSync(file, options)
          const exec = db.exec.bind(db)
          db.exec = (sql) => {
            if (sql === "BEGIN IMMEDIATE" && raced++ === 0) {
              Effect.runSync(Effect.scoped(Effect.flatMap(store(path), (other) => other.append(append))))
            }
            exec(sql)
          }
          return db
        }
      })
      const one = yield* Effect.provideService(store(path), Driver, late)
      expect(raced).toBe(1)
      expect(yield* one.head("r")).toMatchObject({ seq: 1 })
      expect(yield* one.append({ ...append, expectedSeq: 1 })).toEqual({ _tag: "Committed" })
    })
  )

  it("migrations are only ever added: the statements of each are the ones that were released", () => {
    const digests = migrations.map((statements) =>
      createHash("sha256").update(statements.join(";").replace(/\s+/g, " ")).digest("hex").slice(0, 16)
    )
    expect(digests).toEqual(["79b575b3940a5eb2", "e5baaca21472406f"])
    expect(version).toBe(migrations.length)
  })

  it.live("opening a file that has everything changes nothing of its tables", () =>
    Effect.gen(function* () {
      const path = yield* file
      yield* Effect.scoped(Effect.flatMap(store(path), (one) => one.append(append)))
      const before = bytes(path)
      yield* Effect.scoped(store(path, { check: true }))
      expect(bytes(path)).toEqual(before)
    })
  )
})

describe("a path that is none", () => {
  it.live("a folder is OptionInvalid that names file, and a file as a folder is StoreUnavailable", () =>
    Effect.gen(function* () {
      const path = yield* file
      mkdirSync(path)
      const asFile = yield* failure(store(path))
      expect(asFile).toMatchObject({ _tag: "OptionInvalid", field: "file" })
      expect(asFile.message).toContain(`${path}, a folder`)
      const plain = join(path, "plain")
      writeFileSync(plain, "x")
      expect(yield* failure(store(join(plain, "runs.db")))).toMatchObject({ _tag: "StoreUnavailable" })
    })
  )
})
