import { mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { afterAll, describe, expect, it } from "@effect/vitest"
import { CheckpointStore } from "@waystone/core"
import { AnswerLosingStore, CheckpointStoreSuite, YieldingStore } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Driver } from "../src/SqliteDriver.ts"
import * as SqliteStore from "../src/SqliteStore.ts"
import { peer } from "./support/children.ts"
import { change, file, head, rows, store } from "./support/files.ts"

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

/** Rows of the Run, and those of no Run. */
const leftovers = (path: string) => (runId: string) =>
  Effect.sync(() => {
    const [found] = rows(
      path,
      `SELECT (SELECT count(*) FROM runs WHERE run_id = '${runId}') + (SELECT count(*) FROM journal WHERE rid NOT IN
         (SELECT rid FROM runs WHERE run_id <> '${runId}')) AS n`
    )
    return Number(found?.["n"])
  })

/** What a Run waits for is no JSON any more. */
const damage = (path: string) => (runId: string) =>
  Effect.sync(() => {
    change(path, `UPDATE runs SET waiting = 'no' WHERE run_id = '${runId}'`)
    return Effect.sync(() => JSON.stringify(rows(path, `SELECT * FROM runs WHERE run_id = '${runId}'`)))
  })

const suite = (
  name: string,
  durability: "power-loss" | "process",
  {
    several = false,
    wrap = (same) => same
  }: { readonly several?: boolean; readonly wrap?: (store: Service) => Service } = {}
) =>
  describe(name, () => {
    const options = { file: join(shared, `${name}.db`), durability }
    CheckpointStoreSuite.register(it.live, {
      layer: Layer.effect(CheckpointStore.CheckpointStore, Effect.map(SqliteStore.make(options), wrap)),
      capabilities: {
        reopen: SqliteStore.make(options),
        leftovers: leftovers(options.file),
        damage: damage(options.file),
        ...(several ? { peer: peer(options.file) } : undefined)
      }
    })
  })

suite("power-loss", "power-loss")
suite("process", "process", { several: true })
suite("process, losing every second answer", "process", {
  wrap: (one) => AnswerLosingStore.make(YieldingStore.make(one), AnswerLosingStore.every(2))
})

describe("SqliteStore", () => {
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
