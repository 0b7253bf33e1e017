import { statSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { describe, expect, it } from "@effect/vitest"
import type { CheckpointStore } from "@waystone/core"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Lists from "../src/Lists.ts"
import { change, file, head, rows, store } from "./support/files.ts"

/** Many Runs that ended, written at once behind the store's back. */
const ended = (path: string, count: number) =>
  change(
    path,
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
     INSERT INTO runs (run_id, seq, epoch, until, status, agent, waiting, updated_at, head)
     SELECT 'ended-' || i, 1, 1, 0, 'completed', 'a', '[]', i, '{}' FROM n`,
    "INSERT INTO journal (rid, seq, epoch, body, run_id) SELECT rid, 1, 1, '=1', run_id FROM runs"
  )

describe("lists", () => {
  it.live("no filter makes SQLite read all Runs, or sort them", () =>
    Effect.gen(function* () {
      const path = yield* file
      yield* store(path)
      const after = { runId: "r", updatedAt: 5 }
      const filters: ReadonlyArray<readonly [CheckpointStore.Filter, CheckpointStore.Page, string]> = [
        [{ due: true }, { limit: 10 }, "runs_waking"],
        [{ due: true, parent: null }, { limit: 10, after }, "runs_waking"],
        [{}, { limit: 10 }, "runs_resting"],
        [{}, { limit: 10, after }, "runs_resting"],
        [{ status: ["completed"], updatedBefore: 7 }, { limit: 10 }, "runs_status (status=? AND updated_at<?)"],
        [{ status: ["completed"] }, { limit: 10, after }, "runs_status (status=? AND (updated_at,run_id)>(?,?))"],
        [{ status: ["accepted"], agent: ["a"], parent: null }, { limit: 10 }, "runs_status (status=?)"],
        [{ status: ["running", "waiting"] }, { limit: 10 }, "runs_status (status=?)"],
        [{ status: ["completed", "stopped", "failed"], updatedBefore: 7 }, { limit: 10 }, "runs_status (status=?"],
        [{ agent: ["a"] }, { limit: 10 }, "runs_resting"],
        [{ status: ["running"] }, { limit: 10 }, "runs_running"],
        [{ waiting: "approval" }, { limit: 10 }, "runs_waits"],
        [{ session: "s" }, { limit: 10 }, "runs_session"],
        [{ parent: "p" }, { limit: 10 }, "runs_parent"]
      ]
      const db = yield* Effect.acquireRelease(
        Effect.sync(() => new DatabaseSync(path)),
        (open) => Effect.sync(() => open.close())
      )
      for (const [filter, page, index] of filters) {
        const { parameters, sql } = Lists.query(filter, page)
        const plan = db
          .prepare(`EXPLAIN QUERY PLAN ${sql}`)
          .all(parameters)
          .map(({ detail }) => String(detail))
        expect(plan.filter((line) => line.endsWith("SCAN runs"))).toEqual([])
        // Where a journal ends is one look into its index.
        const journal = plan.filter((line) => line.includes("journal"))
        expect(new Set(journal)).toEqual(
          new Set(["SEARCH journal USING COVERING INDEX sqlite_autoindex_journal_1 (rid=?)"])
        )
        if (filter.status !== undefined) expect(plan.join("\n")).not.toContain("runs_resting")
        // The others are few: those that run, or what an index names.
        const resting = plan.slice(plan.indexOf("RIGHT"))
        if (/runs_(resting|status)/.test(index))
          expect(resting.filter((line) => line.includes("TEMP B-TREE"))).toEqual([])
        expect(plan.join("\n")).toContain(index)
      }
    })
  )

  it.live("a page among 50,000 Runs that ended is what was asked for, in order", () =>
    Effect.gen(function* () {
      const path = yield* file
      const one = yield* store(path)
      ended(path, 50_000)
      for (let i = 0; i < 20; i++) {
        yield* one.append({
          runId: `run-${i}`,
          epoch: 0,
          expectedSeq: 0,
          events: ["1"],
          head: head({ updatedAt: 25_000 + i, session: "s", ...(i % 2 === 0 ? { status: "waiting", wakeAt: 1 } : {}) })
        })
      }
      const asked: ReadonlyArray<readonly [CheckpointStore.Filter, number]> = [
        [{ due: true }, 20],
        [{ status: ["running"] }, 10],
        [{ session: "s" }, 20],
        [{ status: ["completed"], updatedBefore: 1000 }, 100],
        [{}, 100]
      ]
      for (const [filter, count] of asked) {
        expect(yield* one.list(filter, { limit: 100 })).toHaveLength(count)
      }
      const page = yield* one.list({}, { limit: 3, after: { runId: "ended-25000", updatedAt: 25_000 } })
      expect(page.map(({ runId }) => runId)).toEqual(["run-0", "ended-25001", "run-1"])
    })
  )
})

describe("a page that is none", () => {
  it.live("is a bug of its caller, not a damaged file", () =>
    Effect.gen(function* () {
      const one = yield* store(yield* file)
      for (const limit of [1.5, Infinity, NaN, 1e20]) {
        const exit = yield* Effect.exit(one.list({}, { limit }))
        expect(Exit.isFailure(exit) && Cause.hasDies(exit.cause)).toBe(true)
      }
    })
  )
})

describe("the indexes", () => {
  /** Pages that appends to a running Run write into the WAL. */
  const walBytes = (dropped: ReadonlyArray<string>) =>
    Effect.scoped(
      Effect.gen(function* () {
        const path = yield* file
        const one = yield* store(path)
        for (const name of dropped) change(path, `DROP INDEX ${name}`)
        const go = (from: number, to: number) =>
          Effect.gen(function* () {
            for (let seq = from; seq < to; seq++) {
              const append = { runId: "r", epoch: 0 as const, expectedSeq: seq, events: ["x".repeat(300)] }
              yield* one.append({ ...append, head: head({ updatedAt: seq, session: "s", parent: "p" }) })
            }
          })
        yield* go(0, 100)
        const before = statSync(`${path}-wal`).size
        yield* go(100, 200)
        return statSync(`${path}-wal`).size - before
      })
    )

  it.live("cost an append to a running Run nothing: three pages and what splits", () =>
    Effect.gen(function* () {
      const path = yield* file
      yield* store(path)
      const made = rows(path, "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")
      const all = made.map(({ name }) => String(name))
      expect(all).toContain("runs_status")
      const [indexed, bare] = yield* Effect.all([walBytes([]), walBytes(all)])
      expect(indexed).toBe(bare)
      expect(indexed / 100 / (2048 + 24)).toBeLessThan(3.6)
    })
  )
})

describe("remove", () => {
  it.live("leaves no row of the Run, and its space is used again", () =>
    Effect.gen(function* () {
      const path = yield* file
      const one = yield* store(path)
      const fill = (runId: string) =>
        Effect.gen(function* () {
          for (let seq = 0; seq < 100; seq++) {
            yield* one.append({ runId, epoch: 0, expectedSeq: seq, events: ["x".repeat(3000)], head: head() })
          }
        })
      yield* fill("kept")
      yield* fill("first")
      const pages = () => Number(rows(path, "PRAGMA page_count")[0]?.["page_count"])
      const before = pages()
      for (let round = 0; round < 5; round++) {
        const runId = round === 0 ? "first" : `r${round - 1}`
        expect(yield* one.remove(runId, 100)).toBe(true)
        expect(rows(path, "SELECT count(*) AS n FROM journal WHERE rid NOT IN (SELECT rid FROM runs)")).toEqual([
          expect.objectContaining({ n: 0 })
        ])
        expect(rows(path, "SELECT count(*) AS n FROM journal")).toEqual([expect.objectContaining({ n: 100 })])
        yield* fill(`r${round}`)
      }
      expect(pages()).toBeLessThanOrEqual(before + 5)
      expect(yield* one.read("kept", { after: 0, limit: 1000 })).toHaveLength(100)
    })
  )
})
