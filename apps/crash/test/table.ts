/**
 * The table of all kill points: its rows, which points are run, and how it is printed.
 */
import { effects } from "../src/Job.ts"
import type * as Kill from "../src/Kill.ts"
import { isFull } from "./support.ts"

/** Kill points of each row of the table, evenly spread over those that a Run has. */
export const pointsPerRow = 30
/** One point in ten of each row is run, others with another seed; all with `WAYSTONE_FULL=1`. */
const oneIn = 10
export const seed = Number(process.env["WAYSTONE_SEED"] ?? 20_261_130)

/** A tree: all tools are unsafe, two work at once. Two that compete for it are a case of the long table. */
const teams = [1, ...(isFull ? [2] : [])].map((workers) => ({
  effect: "unsafe" as const,
  concurrency: 2,
  workers,
  team: true,
  mode: `a team, ${workers === 1 ? "alone" : "two competing"}`
}))

const alone = effects.flatMap((effect) =>
  [1, 3].flatMap((concurrency) =>
    [1, 2].map((workers) => ({
      effect,
      concurrency,
      workers,
      team: false,
      mode: `${concurrency === 1 ? "serial" : "parallel"}, ${workers === 1 ? "alone" : "two competing"}`
    }))
  )
)
export const kinds = [...alone, ...teams]
export type Kind = (typeof kinds)[number]

/**
 * The deaths of each Run of a row. Of two competing processes, both die: who drives the Run at the point, and who drives it
 * at a second one after that.
 */
export const deaths = (kind: Kind, points: number): ReadonlyArray<ReadonlyArray<number>> => {
  const first = seed + 7 * kinds.indexOf(kind)
  return Array.from({ length: pointsPerRow }, (_, i) => i)
    .filter((i) => isFull || i % oneIn === first % oneIn)
    .map((i) => Math.floor((i * points) / pointsPerRow))
    .map((point) => (kind.workers === 1 ? [point] : [point, point + 1 + ((7 * point + seed) % (points - point))]))
}

const columns = ["points", "missed", "kills", "lives", "taken", "rivals", "refused", "doubts", "again", "problems"]

const line = (left: ReadonlyArray<string>, right: ReadonlyArray<unknown>): string =>
  [
    ...left.map((cell, i) => cell.padEnd([8, 11, 24][i] ?? 0)),
    ...right.map((cell, i) => String(cell).padStart(columns[i]?.length ?? 0))
  ].join(" ")

export const heading = line(["store", "class", "mode"], columns)

/** A Run that was not killed where it was meant to be counts as missed, not as a point. */
export const row = (store: string, { effect, mode }: Kind, reports: ReadonlyArray<Kill.Report>): string => {
  const total = (of: (report: Kill.Report) => number) => reports.reduce((sum, one) => sum + of(one), 0)
  const cells = [
    reached(reports),
    total(({ missed }) => missed.length),
    total(({ killed }) => killed),
    total(({ lives }) => lives),
    total(({ takeovers }) => takeovers),
    total(({ byRivals }) => byRivals),
    total(({ refused }) => refused),
    total(({ doubts }) => doubts),
    total(({ again }) => again),
    total(({ problems }) => problems.length)
  ]
  return line([store, effect, mode], cells)
}

/** Runs that were killed, and never missed a point. */
export const reached = (reports: ReadonlyArray<Kill.Report>): number =>
  reports.filter(({ killed, missed }) => killed > 0 && missed.length === 0).length
