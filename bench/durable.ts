/**
 * Measures durable Runs on SQLite and Redis beside the raw drivers, the resume of a killed Run and the imports, and says
 * which of the numbers to reach are reached. See README.md.
 */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import os from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import type { Job } from "./durable-child.ts"
import * as Resume from "./resume.ts"
import {
  type Cell,
  type Figures,
  flat,
  type Goal,
  help,
  importing,
  node,
  options,
  type Ratio,
  ratio,
  report
} from "./rounds.ts"
import * as Redis from "./subjects/redis.ts"

const usage = `node --conditions=@waystone/source bench/durable.ts [options]

${help}`

const { values } = parseArgs({ options })

const script = ["--conditions=@waystone/source", "--no-warnings", "durable-child.ts"]
const child = (job: Job): Promise<Figures> => node(...script, JSON.stringify(job))

const step = (name: string, job: Job): Cell => ({ name, measure: () => child(job) })

/** What the cells share is made when the first of them needs it, and removed at the end. */
const shared = <A>(make: () => A) => {
  let made: A | undefined
  return { get: () => (made ??= make()), made: () => made }
}
const redis = shared(Redis.start)
const killed = shared(Resume.prepare)

const lengths = [1000, 10_000]
const durabilities = ["process", "power-loss"] as const
const redisSteps = 1000
const onRedis = (name: string, raw: boolean): Cell => ({
  name,
  measure: async () => child({ store: "redis", url: (await redis.get()).url, raw, steps: redisSteps })
})

/** Fsyncs of a Run of 1,000 steps less those of one of 200, per step: opening and closing cancel out. */
const fsyncs = (durability: (typeof durabilities)[number]): Cell => ({
  name: `fsyncs: ${durability}`,
  rounds: 1,
  measure: async () => {
    const [few, many] = [200, 1000]
    return { perStep: (traced(durability, many) - traced(durability, few)) / (many - few) }
  }
})

const traced = (durability: (typeof durabilities)[number], steps: number): number => {
  const job: Job = { store: "sqlite", raw: false, durability, steps }
  const folder = mkdtempSync(join(os.tmpdir(), "waystone-bench-"))
  const out = join(folder, "strace")
  const trace = ["-f", "-c", "-e", "trace=fsync,fdatasync", "-o", out]
  const options = { cwd: import.meta.dirname, stdio: "ignore" } as const
  const { status } = spawnSync("strace", [...trace, process.execPath, ...script, JSON.stringify(job)], options)
  if (status !== 0) throw new Error(`strace ended with ${status}`)
  const text = readFileSync(out, "utf8")
  rmSync(folder, { recursive: true })
  const counts = [...text.matchAll(/^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+).*f(?:data)?sync$/gm)]
  return counts.reduce((sum, [, count]) => sum + Number(count), 0)
}

const canTrace = spawnSync("strace", ["-V"]).status === 0
if (!canTrace) process.stderr.write("there is no strace: fsyncs are not counted\n")

const [core, onSqlite, client] = ["@waystone/core", "@waystone/checkpoint-sqlite", "@effect/platform-node/NodeRedis"]
const cells: ReadonlyArray<Cell> = [
  ...lengths.flatMap((steps) => [
    step(`memory ${steps}`, { store: "memory", raw: false, steps }),
    ...durabilities.flatMap((durability) => [
      step(`sqlite ${steps}, ${durability}`, { store: "sqlite", raw: false, durability, steps }),
      step(`sqlite ${steps}, ${durability}: raw driver`, { store: "sqlite", raw: true, durability, steps })
    ])
  ]),
  onRedis(`redis ${redisSteps}`, false),
  onRedis(`redis ${redisSteps}: raw client`, true),
  ...lengths.flatMap((steps): ReadonlyArray<Cell> => [
    { name: `resume ${steps}`, measure: () => killed.get().resume(steps) },
    { name: `resume ${steps}: raw driver`, measure: () => killed.get().raw(steps) }
  ]),
  importing("effect/ai/LanguageModel", "effect/ai/LanguageModel"),
  importing("core", core),
  importing("core, SQLite", core, onSqlite),
  importing("core, Redis", core, "@waystone/checkpoint-redis", client),
  ...(canTrace ? durabilities.map(fsyncs) : [])
]

const of =
  (cell: string, figure: string): Goal["value"] =>
  (median) =>
    median(cell, figure)
const goal = (name: string, atMost: number, value: Goal["value"]): Goal => ({ name, atMost, value })

/** SPEC 13. */
const goals: ReadonlyArray<Goal> = [
  goal("SQLite, process, ms per step at 1,000", 0.5, of("sqlite 1000, process", "msPerStep")),
  goal(
    "SQLite, process, ms per step: 10,000 / 1,000",
    flat,
    ratio("msPerStep", "sqlite 10000, process", "sqlite 1000, process")
  ),
  goal("SQLite, power-loss, fsyncs per step", 2, of("fsyncs: power-loss", "perStep")),
  goal("SQLite, KB kept per step", 0.9, of("sqlite 1000, process", "keptKbPerStep")),
  goal("SQLite, process, KB written per step", 18, of("sqlite 1000, process", "writtenKbPerStep")),
  goal("SQLite, power-loss, KB written per step", 25, of("sqlite 1000, power-loss", "writtenKbPerStep")),
  goal("Redis, ms per step at 1,000", 1, of("redis 1000", "msPerStep")),
  goal("new process to next model call at 1,000, ms", 280, of("resume 1000", "ms")),
  goal("new process to next model call at 10,000, ms", 420, of("resume 10000", "ms")),
  goal("import of core, ms", 180, of("import: core", "importMs")),
  goal("import of core with SQLite, ms", 190, of("import: core, SQLite", "importMs")),
  goal("import of core with Redis and its client, ms", 330, of("import: core, Redis", "importMs"))
]

const over = (figure: string, cell: string, other: string): Ratio => ({
  name: `${figure}: ${cell} / ${other}`,
  value: ratio(figure, cell, other)
})
const ratios: ReadonlyArray<Ratio> = [
  ...lengths.flatMap((steps) => [
    ...durabilities.flatMap((durability) => {
      const cell = `sqlite ${steps}, ${durability}`
      return [over("msPerStep", cell, `${cell}: raw driver`), over("cpuMsPerStep", cell, `${cell}: raw driver`)]
    }),
    over("cpuMsPerStep", `sqlite ${steps}, process`, `memory ${steps}`),
    over("cpuMs", `resume ${steps}`, `resume ${steps}: raw driver`)
  ]),
  over("cpuMsPerStep", "sqlite 10000, process", "sqlite 1000, process"),
  over("msPerStep", "redis 1000", "redis 1000: raw client"),
  over("cpuMsPerStep", "redis 1000", "redis 1000: raw client"),
  over("cpuMsPerStep", "redis 1000", "memory 1000"),
  ...["core", "core, SQLite", "core, Redis"].map((what) =>
    over("cpuMs", `import: ${what}`, "import: effect/ai/LanguageModel")
  )
]

const main = async (): Promise<void> => {
  try {
    await report({ cells, goals, ratios, values })
  } finally {
    await (await redis.made())?.stop()
    killed.made()?.remove()
  }
}

if (values.help) process.stdout.write(usage)
else await main()
