/**
 * Measures Waystone's loop beside the AI SDK and the bare loop on effect/ai, in memory, with an instant scripted model.
 * Rounds are interleaved and every measurement has its own process, so a noisy minute hits all alike; ratios of medians
 * count, absolute times drift. See README.md.
 */
import { execFile } from "node:child_process"
import os from "node:os"
import { parseArgs, promisify } from "node:util"
import type { Figures, Job } from "./child.ts"

const help = `node --conditions=@waystone/source bench/loop.ts [options]

  --json         one JSON document on stdout instead of tables
  --rounds <n>   rounds of all cells; the medians count (default 5)
  --only <text>  only cells whose name contains the text
  --long         also the peers over 10,000 steps, once: some minutes more
  --help         this text
`

const { values } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    rounds: { type: "string", default: "5" },
    only: { type: "string", default: "" },
    long: { type: "boolean", default: false },
    help: { type: "boolean", default: false }
  }
})

/** A measurement that is repeated in every round. */
interface Cell {
  readonly name: string
  readonly measure: () => Promise<Figures>
  /** At most so many rounds. */
  readonly rounds?: number
}

const run = promisify(execFile)

const node = async (...args: ReadonlyArray<string>): Promise<Figures> => {
  const { stdout } = await run(process.execPath, args, { cwd: import.meta.dirname, maxBuffer: 1 << 26 })
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "")
}

const child = (job: Job): Promise<Figures> =>
  node("--expose-gc", "--conditions=@waystone/source", "child.ts", JSON.stringify(job))

/** The built package, as an application loads it, in a process that has loaded nothing else. */
const importing = (specifier: string): Promise<Figures> =>
  node(
    "--input-type=module",
    "--eval",
    `const start = performance.now()
     await import(${JSON.stringify(specifier)})
     console.log(JSON.stringify({ importMs: performance.now() - start }))`
  )

const mode = (stream: boolean): string => (stream ? "streaming" : "whole replies")

const shown = (window: number | undefined): string => (window === undefined ? "" : `, window ${window}`)

const cpu = (job: Omit<Extract<Job, { readonly measure: "cpu" }>, "measure">): Cell => ({
  name: `cpu ${job.steps}: ${job.subject}, ${mode(job.stream)}${shown(job.window)}`,
  measure: () => child({ measure: "cpu", ...job })
})

const concurrent = (subject: "waystone" | "aisdk", stream: boolean): Cell => ({
  name: `concurrent: ${subject}, ${mode(stream)}`,
  measure: () => child({ measure: "concurrent", subject, stream, steps: 10, runs: 1000, delayMs: 50 })
})

const long = (cell: Cell): Cell => ({ ...cell, rounds: 1 })

const window = 200
const modes = [true, false]
const cells: ReadonlyArray<Cell> = [
  ...modes.flatMap((stream) => [
    cpu({ subject: "waystone", stream, steps: 1000 }),
    cpu({ subject: "waystone", stream, steps: 1000, window }),
    cpu({ subject: "aisdk", stream, steps: 1000 }),
    cpu({ subject: "effect", stream, steps: 1000 }),
    cpu({ subject: "waystone", stream, steps: 10_000, window }),
    concurrent("waystone", stream),
    concurrent("aisdk", stream)
  ]),
  ...(values.long
    ? modes.flatMap((stream) => [
        long(cpu({ subject: "aisdk", stream, steps: 10_000 })),
        long(cpu({ subject: "aisdk", stream, steps: 10_000, window })),
        long(cpu({ subject: "effect", stream, steps: 10_000, window }))
      ])
    : []),
  { name: "import: @waystone/core", measure: () => importing("@waystone/core") },
  { name: "import: ai", measure: () => importing("ai") }
]

/** A goal of SPEC 13 over medians: `value` is to be at most `atMost`, or below it. */
interface Goal {
  readonly name: string
  readonly value: (median: Median) => number | undefined
  readonly atMost: number
  readonly below?: true
}

/** Of the cell, if it was measured. */
type Median = (cell: string, figure: string) => number | undefined

const ratio =
  (figure: string, cell: string, other: string) =>
  (median: Median): number | undefined => {
    const [a, b] = [median(cell, figure), median(other, figure)]
    return a === undefined || b === undefined ? undefined : a / b
  }

/** What counts as flat, given the noise. */
const flat = 1.05

const goals: ReadonlyArray<Goal> = [
  ...modes.flatMap((stream): ReadonlyArray<Goal> => {
    const how = mode(stream)
    const windowed = `waystone, ${how}${shown(window)}`
    const [ours, theirs] = [`concurrent: waystone, ${how}`, `concurrent: aisdk, ${how}`]
    return [
      {
        name: `CPU per step at 1,000, ${how}: waystone / AI SDK`,
        value: ratio("cpuMsPerStep", `cpu 1000: waystone, ${how}`, `cpu 1000: aisdk, ${how}`),
        atMost: 0.7
      },
      {
        name: `CPU per step with a window, ${how}: 10,000 / 1,000`,
        value: ratio("cpuMsPerStep", `cpu 10000: ${windowed}`, `cpu 1000: ${windowed}`),
        atMost: flat
      },
      {
        name: `1,000 Runs, ${how}, wall: waystone / AI SDK`,
        value: ratio("wallMs", ours, theirs),
        atMost: 1,
        below: true
      },
      {
        name: `1,000 Runs, ${how}, memory: waystone / AI SDK`,
        value: ratio("rssKbPerRun", ours, theirs),
        atMost: 1,
        below: true
      }
    ]
  }),
  { name: "import of @waystone/core, ms", value: (median) => median("import: @waystone/core", "importMs"), atMost: 180 }
]

/** Beside the goals: where the time goes, and what the peers do over long runs. */
const others: ReadonlyArray<Omit<Goal, "atMost">> = [
  ...modes.flatMap((stream) => {
    const how = mode(stream)
    const windowed = `cpu 10000: waystone, ${how}${shown(window)}`
    const over = (name: string, cell: string, other: string) => ({ name, value: ratio("cpuMsPerStep", cell, other) })
    return [
      over(
        `CPU per step at 1,000, ${how}: waystone / bare effect/ai loop`,
        `cpu 1000: waystone, ${how}`,
        `cpu 1000: effect, ${how}`
      ),
      over(
        `CPU per step at 1,000, ${how}: waystone with a window / AI SDK`,
        `cpu 1000: waystone, ${how}${shown(window)}`,
        `cpu 1000: aisdk, ${how}`
      ),
      over(`CPU per step at 10,000, ${how}: waystone with a window / AI SDK`, windowed, `cpu 10000: aisdk, ${how}`),
      over(
        `CPU per step at 10,000, ${how}: both with a window, waystone / AI SDK`,
        windowed,
        `cpu 10000: aisdk, ${how}${shown(window)}`
      )
    ]
  }),
  { name: "import: @waystone/core / ai", value: ratio("importMs", "import: @waystone/core", "import: ai") }
]

const middle = (sorted: ReadonlyArray<number>): number => {
  const half = Math.floor(sorted.length / 2)
  const upper = sorted[half] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[half - 1] ?? Number.NaN)) / 2
}

const round = (value: number): number => Number(value.toPrecision(4))

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

const main = async (): Promise<void> => {
  if (values.help) {
    process.stdout.write(help)
    return
  }
  const rounds = Number(values.rounds)
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error(`--rounds ${values.rounds}: a whole number from 1`)
  const load = os.loadavg()[0]
  const raw = await measureAll(
    cells.filter(({ name }) => name.includes(values.only)),
    rounds
  )
  const summary = Object.fromEntries([...raw].map(([name, rows]) => [name, medians(rows)]))
  const median: Median = (cell, figure) => summary[cell]?.[figure]
  const targets = goals.flatMap(({ atMost, below = false, name, value }) => {
    const got = value(median)
    if (got === undefined) return []
    return [
      { name, value: round(got), limit: `${below ? "<" : "<="} ${atMost}`, met: below ? got < atMost : got <= atMost }
    ]
  })
  const ratios = others.flatMap(({ name, value }) => {
    const got = value(median)
    return got === undefined ? [] : [{ name, value: round(got) }]
  })
  const about = {
    node: process.version,
    cpus: os.cpus().length,
    loadBefore: load,
    rounds,
    date: new Date().toISOString()
  }
  if (values.json) {
    process.stdout.write(
      `${JSON.stringify({ about, targets, ratios, medians: summary, raw: Object.fromEntries(raw) })}\n`
    )
    return
  }
  console.table(summary)
  console.table(ratios)
  console.table(targets)
}

await main()
