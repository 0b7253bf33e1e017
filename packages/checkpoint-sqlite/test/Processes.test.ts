import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { child } from "./support/children.ts"
import { file, folder, rows, store } from "./support/files.ts"

/** A quick look in `npm test`, a longer one with `WAYSTONE_FULL=1`; `WAYSTONE_KILLS=200` is what RI-082 asks for. */
const isFull = process.env["WAYSTONE_FULL"] === "1"
const kills = Number(process.env["WAYSTONE_KILLS"] ?? (isFull ? 40 : 5))
const openers = isFull ? 20 : 8

describe("processes that share a file", () => {
  it.live(
    `O2 ${openers} that open a new file at the same moment all succeed`,
    () =>
      Effect.gen(function* () {
        const path = join(yield* folder, "new", "runs.db")
        const ready = yield* Effect.all(
          Array.from({ length: openers }, (_, i) => child("open", [path, String(i)])),
          { concurrency: "unbounded" }
        )
        const answers = yield* Effect.forEach(ready, ({ ask }) => ask("go"), { concurrency: "unbounded" })
        expect(answers).toEqual(Array(openers).fill({ value: { _tag: "Committed" } }))
        const found = yield* (yield* store(path)).list({}, { limit: 100 })
        expect(found.map(({ runId }) => runId).toSorted()).toEqual(
          Array.from({ length: openers }, (_, i) => `run-${i}`).toSorted()
        )
        expect(rows(path, "PRAGMA integrity_check")).toEqual([expect.objectContaining({ integrity_check: "ok" })])
      }),
    120_000
  )

  it.live(
    "RI-082 a process killed in a stream of appends leaves every batch that it was told of, whole, and a sound file",
    () =>
      Effect.gen(function* () {
        const path = yield* file
        for (let round = 0; round < kills; round++) {
          const name = `life-${round}`
          const acked = yield* Effect.scoped(killed(path, name, 5 + ((round * 37) % 90)))
          const one = yield* store(path)
          const events = yield* Effect.orDie(one.read(name, { after: 0, limit: 1_000_000 }))
          expect(events.length).toBeGreaterThanOrEqual(acked)
          expect(events.length % 5).toBe(0)
          expect(
            events.every(({ body, ends, seq }) => body.startsWith(`${name} ${seq} `) && ends === (seq % 5 === 0))
          ).toBe(true)
          const last = yield* one.head(name)
          expect([last?.seq ?? 0, last?.body]).toEqual([events.length, events.at(-1)?.body])
          expect(rows(path, "PRAGMA integrity_check")).toEqual([expect.objectContaining({ integrity_check: "ok" })])
        }
      }).pipe(Effect.scoped),
    120_000 + kills * 5000
  )
})

/** Kills a writer after so many ms of writing; the seq that it was last told of. */
const killed = (path: string, name: string, after: number) =>
  Effect.gen(function* () {
    const acks = join(yield* folder, "acks")
    writeFileSync(acks, "")
    const writer = yield* child("stream", [path, name, acks])
    yield* writer.ask("go")
    yield* Effect.sleep(after)
    const dead = new Promise((resolve) => writer.process.once("exit", resolve))
    writer.process.kill("SIGKILL")
    yield* Effect.promise(() => dead)
    const lines = readFileSync(acks, "utf8").split("\n")
    // What stands behind the last line break may be half a number.
    return Number(lines.at(-2) ?? 0)
  })

describe("processes that drive Runs", () => {
  const lines = (path: string) => (existsSync(path) ? readFileSync(path, "utf8").split("\n").filter(Boolean) : [])

  it.live(
    "RI-001 RI-069 of two processes that start one Run ten times each at the same moment one drives it, 50 Runs",
    () =>
      Effect.gen(function* () {
        const path = yield* file
        const log = join(yield* folder, "log")
        const both = yield* Effect.forEach(["one", "two"], (name) => child("start", [path, name, log]), {
          concurrency: "unbounded"
        })
        const told = new Set<unknown>()
        for (let round = 0; round < 50; round++) {
          const answers = yield* Effect.forEach(both, ({ ask }) => ask(`run-${round} 10`), { concurrency: "unbounded" })
          const outcomes = answers.flatMap(({ value }) => (Array.isArray(value) ? value : [value]))
          expect(outcomes).toHaveLength(20)
          for (const outcome of outcomes) told.add(outcome)
          expect(outcomes).toContain("Completed")
        }
        expect([...told].toSorted()).toEqual(expect.arrayContaining(["Completed", "RunBusy"]))
        expect([...told].filter((outcome) => outcome !== "Completed" && outcome !== "RunBusy")).toEqual([])
        expect(lines(log).toSorted()).toEqual(Array.from({ length: 50 }, (_, i) => `tool run-${i}`).toSorted())
        const found = yield* (yield* store(path)).list({}, { limit: 100 })
        expect(found.map(({ status }) => status)).toEqual(Array(50).fill("completed"))
      }),
    120_000
  )
})
