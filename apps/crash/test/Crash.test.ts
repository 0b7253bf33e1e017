import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { join } from "node:path"
import { afterAll } from "vitest"
import * as Kill from "../src/Kill.ts"
import * as Stores from "../src/Stores.ts"
import { type Backend, backends, folder, isFull } from "./support.ts"
import * as Table from "./table.ts"

interface Row {
  readonly store: string
  readonly kind: Table.Kind
  readonly reports: ReadonlyArray<Kill.Report>
}
const rows: Array<Row> = []

afterAll(() => {
  if (rows.length === 0) return
  const part = isFull ? "all points" : `WAYSTONE_SEED=${Table.seed}`
  console.log([part, Table.heading, ...rows.map((row) => Table.row(row.store, row.kind, row.reports))].join("\n"))
})

describe.each(backends)("on $name", ({ available, name, open }) => {
  describe.skipIf(!available)("SIGKILL at any point: no unsafe effect twice, no finished effect lost, no stall", () => {
    it.live.each(Table.kinds)(
      "$effect tools, $mode",
      (kind) =>
        Effect.scoped(
          Effect.gen(function* () {
            const reports = yield* killed(open, kind)
            rows.push({ store: name, kind, reports })
            const problems = reports.flatMap(({ problems }) => problems)
            console.log([`${rows.length}: ${Table.row(name, kind, reports)}`, ...problems].join("\n"))
            expect(problems).toEqual([])
            expect(Table.reached(reports)).toBeGreaterThanOrEqual(isFull ? Table.pointsPerRow : 3)
          })
        ),
      { timeout: 900_000 }
    )

    it("two processes that compete keep each other out, and take over from each other", ({ skip }) => {
      const competing = rows.filter(({ kind, store }) => store === name && kind.workers === 2)
      if (competing.length === 0) skip("no row of the table was run")
      const reports = competing.flatMap((row) => row.reports)
      expect(reports.filter(({ refused }) => refused > 0).length).toBeGreaterThan(0)
      expect(reports.filter(({ byRivals }) => byRivals > 0).length).toBeGreaterThan(0)
    })
  })
})

/** How many points a Run has that nobody disturbs: the same on each store, alone and competing. */
const points = new Map<string, number>()

/** One row of the table: each Run is killed at its points, and goes on. */
const killed = Effect.fnUntraced(function* (open: Backend["open"], kind: Table.Kind) {
  const { concurrency, effect, team, workers } = kind
  const store = yield* open
  const base = yield* folder
  const begun = (runId: string, deaths: ReadonlyArray<number>) => {
    const ledger = join(base, runId)
    const work = { store, effect, concurrency, ...(team ? { team } : undefined) }
    return Kill.begin({ job: { ...work, runId, ledger, trace: `${ledger}.trace`, deaths }, workers })
  }
  /** Calls at once may share appends, so that a Run can have fewer points: then another one is killed a bit earlier. */
  const surely = Effect.fnUntraced(function* (runId: string, planned: ReadonlyArray<number>) {
    const runs = [yield* begun(runId, planned)]
    let deaths = planned
    while (runs.at(-1)?.isMissed === true && runs.length < 5) {
      deaths = deaths.map((point, i) => Math.max(i, point - 4))
      runs.push(yield* begun(`${runId}-try-${runs.length}`, deaths))
    }
    return runs
  })
  return yield* Effect.gen(function* () {
    const key = `${effect} ${concurrency} ${team}`
    const first = points.has(key) ? [] : [yield* begun("undisturbed", [])]
    yield* Kill.goOn(first)
    const undisturbed = yield* Effect.forEach(first, Kill.report)
    const passed = points.get(key) ?? undisturbed[0]?.points ?? 0
    points.set(key, passed)
    const runs = yield* Effect.forEach(
      Table.deaths(kind, passed),
      (deaths) => surely(`dies-at-${deaths.join("-and-")}`, deaths),
      { concurrency: 3 }
    )
    yield* Kill.goOn(runs.flat())
    return [...undisturbed, ...(yield* Effect.forEach(runs.flat(), Kill.report))]
  }).pipe(Effect.provide(Stores.layer(store)))
})
