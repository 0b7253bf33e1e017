import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { join } from "node:path"
import { afterAll } from "vitest"
import { effects } from "../src/Job.ts"
import * as Kill from "../src/Kill.ts"
import * as Stores from "../src/Stores.ts"
import { type Backend, backends, folder, isFull } from "./support.ts"

/** Kill points of each row of the table, evenly spread over those that there are. */
const pointsPerRow = 30
/** One in thirty is run, another one with another seed; all with `WAYSTONE_FULL=1`. */
const seed = Number(process.env["WAYSTONE_SEED"] ?? 20_261_130)

const all = effects.flatMap((effect) =>
  [1, 3].flatMap((concurrency) =>
    [1, 2].map((workers) => ({
      effect,
      concurrency,
      workers,
      mode: `${concurrency === 1 ? "serial" : "parallel"}, ${workers === 1 ? "alone" : "two competing"}`
    }))
  )
)
type Kind = (typeof all)[number]
/** Unsafe tools always, of the others every second kind (alone in series, competing in parallel, or the other way round). */
const kinds = all.filter(
  ({ concurrency, effect, workers }) =>
    isFull || effect === "unsafe" || (concurrency > 1 === workers > 1) === (seed % 2 === 0)
)

const table: Array<string> = []
const columns = [8, 11, 25, 5, 5, 7, 6, 9]
const line = (cells: ReadonlyArray<unknown>): string =>
  cells
    .map((cell, i) => (i < 3 ? String(cell).padEnd(columns[i] ?? 0) : String(cell).padStart(columns[i] ?? 0)))
    .join(" ")
afterAll(() => {
  const head = line(["store", "class", "mode", "kills", "lives", "doubts", "again", "problems"])
  if (table.length > 0) console.log([head, ...table].join("\n"))
})

/** How many points a Run of a kind has when nobody dies; they hardly differ from store to store. */
const known = new Map<string, number>()

describe.each(backends)("on $name", ({ available, name, open }) => {
  describe.skipIf(!available)("SIGKILL at any point: no unsafe effect twice, no finished effect lost, no stall", () => {
    it.live.each(kinds)(
      "$effect tools, $mode",
      (kind) =>
        Effect.scoped(
          Effect.gen(function* () {
            const reports = yield* row(open, kind)
            const total = (of: (report: Kill.Report) => number) => reports.reduce((sum, one) => sum + of(one), 0)
            const problems = reports.flatMap((one) => one.problems)
            const counts = (["killed", "lives", "doubts", "again"] as const).map((key) =>
              total((report) => report[key])
            )
            table.push(line([name, kind.effect, kind.mode, ...counts, problems.length]))
            expect(problems).toEqual([])
          })
        ),
      { timeout: 900_000 }
    )
  })
})

/** One row of the table: each Run is killed once (or its two workers are), and goes on. */
const row = Effect.fnUntraced(function* (open: Backend["open"], { concurrency, effect, mode, workers }: Kind) {
  const store = yield* open
  const base = yield* folder
  const kill = (runId: string, deaths: ReadonlyArray<number>) =>
    Kill.run({ job: { store, effect, concurrency, runId, ledger: join(base, runId) }, deaths })
  const killed = Effect.gen(function* () {
    const key = `${effect} ${concurrency}`
    const undisturbed = isFull || !known.has(key) ? [yield* kill("undisturbed", [Number.MAX_SAFE_INTEGER])] : []
    const points = undisturbed[0]?.points ?? known.get(key) ?? 0
    known.set(key, points)
    const offset = (seed + 7 * all.findIndex((one) => one.effect === effect && one.mode === mode)) % pointsPerRow
    const chosen = Array.from({ length: pointsPerRow }, (_, i) => Math.floor((i * points) / pointsPerRow)).filter(
      (_, i) => isFull || i === offset
    )
    const deaths = (point: number) => [point, ...(workers === 1 ? [] : [(7 * point + seed) % points])]
    const reports = yield* Effect.forEach(chosen, (point) => kill(`dies-at-${point}`, deaths(point)), {
      concurrency: 2
    })
    return [...undisturbed, ...reports]
  })
  return yield* Effect.provide(killed, Stores.layer(store))
})
