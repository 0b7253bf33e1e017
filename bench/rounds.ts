/**
 * What the benchmarks share: cells that are measured in interleaved rounds, medians, goals and ratios, one report.
 *
 * Rounds are interleaved and every measurement has its own process, so a noisy minute hits all alike; ratios of medians
 * count, absolute times drift.
 */
import { execFile } from "node:child_process"
import os from "node:os"
import { promisify } from "node:util"

/** What one measurement gives, by name. */
export type Figures = { readonly [figure: string]: number }

/** A measurement that is repeated in every round. */
export interface Cell {
  readonly name: string
  readonly measure: () => Promise<Figures>
  /** At most so many rounds. */
  readonly rounds?: number
}

/** Of the cell, if it was measured. */
export type Median = (cell: string, figure: string) => number | undefined

/** Something over medians. */
export interface Ratio {
  readonly name: string
  readonly value: (median: Median) => number | undefined
}

/** A number to reach: `value` is to be at most `atMost`, or below it. */
export interface Goal extends Ratio {
  readonly atMost: number
  readonly below?: true
}

/** What counts as flat, given the noise. */
export const flat = 1.05

export const options = {
  json: { type: "boolean", default: false },
  rounds: { type: "string", default: "5" },
  only: { type: "string", default: "" },
  help: { type: "boolean", default: false }
} as const

export const help = `  --json         one JSON document on stdout instead of tables
  --rounds <n>   rounds of all cells; the medians count (default 5)
  --only <text>  only cells whose name contains the text
  --help         this text
`

const run = promisify(execFile)

/** The last line of what a process prints, as JSON. */
export const node = async (...args: ReadonlyArray<string>): Promise<Figures> => {
  const { stdout } = await run(process.execPath, args, { cwd: import.meta.dirname, maxBuffer: 1 << 26 })
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "")
}

/** The built packages, as an application loads them, in a process that has loaded nothing else. */
export const importing = (name: string, ...specifiers: ReadonlyArray<string>): Cell => ({
  name: `import: ${name}`,
  measure: () =>
    node(
      "--input-type=module",
      "--eval",
      `const start = performance.now()
       const before = process.cpuUsage()
       ${specifiers.map((specifier) => `await import(${JSON.stringify(specifier)})`).join("\n")}
       const { system, user } = process.cpuUsage(before)
       console.log(JSON.stringify({ importMs: performance.now() - start, cpuMs: (system + user) / 1000 }))`
    )
})

export const cpuMs = (): number => {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1000
}

export const ratio =
  (figure: string, cell: string, other: string) =>
  (median: Median): number | undefined => {
    const [a, b] = [median(cell, figure), median(other, figure)]
    return a === undefined || b === undefined ? undefined : a / b
  }

const round = (value: number): number => Number(value.toPrecision(4))

const middle = (sorted: ReadonlyArray<number>): number => {
  const half = Math.floor(sorted.length / 2)
  const upper = sorted[half] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[half - 1] ?? Number.NaN)) / 2
}

const medians = (rows: ReadonlyArray<Figures>): Figures =>
  Object.fromEntries(
    Object.keys(rows[0] ?? {}).map((figure) => {
      const sorted = rows.map((row) => row[figure] ?? Number.NaN).toSorted((a, b) => a - b)
      return [figure, round(middle(sorted))]
    })
  )

const measureAll = async (chosen: ReadonlyArray<Cell>, rounds: number) => {
  const raw = new Map<string, Array<Figures>>(chosen.map(({ name }) => [name, []]))
  for (let count = 1; count <= rounds; count++) {
    for (const cell of chosen) {
      if (count > (cell.rounds ?? rounds)) continue
      const figures = await cell.measure()
      raw.get(cell.name)?.push(figures)
      const text = Object.entries(figures).map(([name, value]) => `${name} ${round(value)}`)
      process.stderr.write(`round ${count}/${rounds}  ${cell.name}: ${text.join(", ")}\n`)
    }
  }
  return raw
}

const valued = <A extends Ratio>(all: ReadonlyArray<A>, median: Median) =>
  all.flatMap((one) => {
    const value = one.value(median)
    return value === undefined ? [] : [{ ...one, value }]
  })

/** Measures the chosen cells and prints the report. */
export const report = async ({
  cells,
  goals,
  ratios,
  values
}: {
  readonly cells: ReadonlyArray<Cell>
  readonly goals: ReadonlyArray<Goal>
  readonly ratios: ReadonlyArray<Ratio>
  readonly values: { readonly json: boolean; readonly only: string; readonly rounds: string }
}): Promise<void> => {
  const rounds = Number(values.rounds)
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error(`--rounds ${values.rounds}: a whole number from 1`)
  const loadBefore = os.loadavg()[0]
  const raw = await measureAll(
    cells.filter(({ name }) => name.includes(values.only)),
    rounds
  )
  const summary = Object.fromEntries([...raw].map(([name, rows]) => [name, medians(rows)]))
  const median: Median = (cell, figure) => summary[cell]?.[figure]
  const targets = valued(goals, median).map(({ atMost, below = false, name, value }) => ({
    name,
    value: round(value),
    limit: `${below ? "<" : "<="} ${atMost}`,
    met: below ? value < atMost : value <= atMost
  }))
  const others = valued(ratios, median).map(({ name, value }) => ({ name, value: round(value) }))
  const about = { node: process.version, cpus: os.cpus().length, loadBefore, rounds, date: new Date().toISOString() }
  if (values.json) {
    const all = { about, targets, ratios: others, medians: summary, raw: Object.fromEntries(raw) }
    process.stdout.write(`${JSON.stringify(all)}\n`)
    return
  }
  console.table(summary)
  console.table(others)
  console.table(targets)
}
