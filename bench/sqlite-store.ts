/**
 * Measures a durable step on SQLite: a Run with a scripted model and an effect tool, and the raw driver doing the same
 * statements. Every measurement has its own process; rounds are interleaved and medians count. See README.md.
 *
 * Bytes written are what the process passes to write calls (`wchar` of /proc/self/io, Linux only): WAL and write-back.
 * The fsyncs of a step are counted with strace where there is one.
 */
import { execFile, execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs"
import os from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { parseArgs, promisify } from "node:util"
import { SqliteStore } from "@waystone/checkpoint-sqlite"
import { Agent, CheckpointStore, MemoryStore, Run, Window } from "@waystone/core"
import * as Effect from "effect/Effect"
import { answer, type Script, task } from "./script.ts"
import { Add, layer } from "./subjects/model.ts"

const help = `node --conditions=@waystone/source bench/sqlite-store.ts [options]

  --json         one JSON document on stdout instead of tables
  --rounds <n>   rounds of all cells; the medians count (default 3)
  --only <text>  only cells whose name contains the text
  --fsyncs       also count fsyncs under strace
  --help         this text
`

const { values } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    rounds: { type: "string", default: "3" },
    only: { type: "string", default: "" },
    fsyncs: { type: "boolean", default: false },
    job: { type: "string", default: "" },
    help: { type: "boolean", default: false }
  }
})

interface Job {
  readonly name: string
  /** `memory` is the loop without a durable store. */
  readonly subject: "run" | "memory" | "raw"
  readonly durability: "process" | "power-loss"
  readonly steps: number
}

type Figures = { readonly [figure: string]: number }
type Appends = ReadonlyArray<CheckpointStore.Append>

const cpuMs = (): number => {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1000
}

const written = (): number => Number(/wchar: (\d+)/.exec(readFileSync("/proc/self/io", "utf8"))?.[1] ?? Number.NaN)

/** One Run of so many steps: a model call and a call of an unsafe tool with 200 bytes each. */
const runOf = (script: Script, runId: string) => {
  const agent = Agent.make("bench", {
    instructions: "Add the numbers until you are done.",
    tools: [Add],
    stream: false,
    window: Window.lastMessages(200),
    limits: { maxTurns: 20_000, activeTime: "1 hour" }
  })
  return Run.start(agent, { runId, task }).pipe(
    Effect.provide(layer(script)),
    Effect.flatMap((outcome) =>
      outcome._tag === "Completed" && outcome.output === answer ? Effect.void : Effect.die(outcome)
    )
  )
}

/** The same store, with the time of its appends added up, and the appends kept if asked for. */
const watched = (store: CheckpointStore.CheckpointStore["Service"], kept?: Array<CheckpointStore.Append>) => {
  const spent = { ms: 0, appends: 0 }
  const append: typeof store.append = (request) =>
    Effect.suspend(() => {
      kept?.push(request)
      const started = performance.now()
      return Effect.map(store.append(request), (result) => {
        spent.ms += performance.now() - started
        spent.appends++
        return result
      })
    })
  return { spent, store: { ...store, append } }
}

/** What the loop appends over so many steps. */
const recorded = async (steps: number): Promise<Appends> => {
  const kept: Array<CheckpointStore.Append> = []
  const recording = Effect.flatMap(MemoryStore.make, (store) =>
    Effect.provideService(
      runOf({ steps, delayMs: 0 }, "run"),
      CheckpointStore.CheckpointStore,
      watched(store, kept).store
    )
  )
  await Effect.runPromise(recording)
  return kept
}

/** The statements of the store without the store: no Effect, no types, no checks of what comes back. */
const raw = (db: DatabaseSync) => {
  const begin = db.prepare("BEGIN IMMEDIATE")
  const commit = db.prepare("COMMIT")
  const find = db.prepare("SELECT rid, seq, epoch FROM runs WHERE run_id = ?")
  const create = db.prepare(
    "INSERT INTO runs (run_id, seq, epoch, until, status, agent, waiting, updated_at, head) VALUES (?, 0, ?, 0, 'running', 'a', '[]', 0, '')"
  )
  const add = db.prepare("INSERT INTO journal (rid, seq, epoch, body) VALUES (?, ?, ?, ?)")
  const touch = db.prepare("UPDATE runs SET seq = ?, updated_at = ?, head = ? WHERE rid = ?")
  return ({ epoch, events, head, runId }: CheckpointStore.Append) => {
    begin.run()
    if (find.get(runId) === undefined) create.run(runId, epoch)
    const run = find.get(runId)
    const rid = Number(run?.["rid"])
    const seq = Number(run?.["seq"]) + events.length
    add.run(rid, seq, epoch, events.join("\n"))
    touch.run(seq, head.updatedAt, head.body, rid)
    commit.run()
  }
}

const measure = async ({ durability, steps, subject }: Job): Promise<Figures> => {
  const folder = mkdtempSync(join(os.tmpdir(), "waystone-bench-"))
  const file = join(folder, "runs.db")
  const script: Script = { steps: 20, delayMs: 0 }
  try {
    const program = Effect.gen(function* () {
      const store = subject === "run" ? yield* SqliteStore.make({ file, durability }) : yield* MemoryStore.make
      yield* Effect.provideService(runOf(script, "warm-up"), CheckpointStore.CheckpointStore, store)
      script.steps = steps
      const { spent, store: timed } = watched(store)
      const before = written()
      const cpu = cpuMs()
      const started = performance.now()
      yield* Effect.provideService(runOf(script, "run"), CheckpointStore.CheckpointStore, timed)
      const msPerStep = (performance.now() - started) / steps
      const cpuMsPerStep = (cpuMs() - cpu) / steps
      return {
        msPerStep,
        cpuMsPerStep,
        storeMsPerStep: spent.ms / steps,
        appendsPerStep: spent.appends / steps,
        before
      }
    })
    if (subject === "raw") return await rawly(file, durability, await recorded(steps), steps)
    const { before, ...figures } = await Effect.runPromise(Effect.scoped(program))
    if (subject === "memory") return figures
    // The store is closed now: everything is in the file.
    return {
      ...figures,
      writtenKbPerStep: (written() - before) / 1024 / steps,
      keptKbPerStep: statSync(file).size / 1024 / (steps + 20)
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const rawly = async (file: string, durability: Job["durability"], appends: Appends, steps: number) => {
  await Effect.runPromise(Effect.scoped(SqliteStore.make({ file })))
  const db = new DatabaseSync(file)
  db.exec(`PRAGMA synchronous = ${durability === "process" ? "NORMAL" : "FULL"}`)
  const append = raw(db)
  const before = written()
  const cpu = cpuMs()
  const started = performance.now()
  for (const one of appends) append(one)
  const msPerStep = (performance.now() - started) / steps
  const cpuMsPerStep = (cpuMs() - cpu) / steps
  db.close()
  return {
    msPerStep,
    cpuMsPerStep,
    writtenKbPerStep: (written() - before) / 1024 / steps,
    keptKbPerStep: statSync(file).size / 1024 / steps
  }
}

const jobs: ReadonlyArray<Job> = [1000, 10_000].flatMap((steps) => [
  { name: `memory ${steps}`, subject: "memory", durability: "process", steps } as const,
  ...(["process", "power-loss"] as const).flatMap((durability) =>
    (["run", "raw"] as const).map((subject) => ({
      name: `${subject} ${steps}, ${durability}`,
      subject,
      durability,
      steps
    }))
  )
])

const self = ["--conditions=@waystone/source", "--no-warnings", import.meta.filename]
const run = promisify(execFile)

const child = async (job: Job): Promise<Figures> => {
  const { stdout } = await run(process.execPath, [...self, "--job", JSON.stringify(job)])
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "")
}

/** Fsyncs of a Run of 1,000 steps less those of one of 200, per step: opening and closing cancel out. */
const fsyncs = (durability: Job["durability"]): number => {
  const [few = 0, many = 0] = [200, 1000].map((steps) => {
    const job: Job = { name: "", subject: "run", durability, steps }
    const folder = mkdtempSync(join(os.tmpdir(), "waystone-bench-"))
    const out = join(folder, "strace")
    const traced = ["-f", "-c", "-e", "trace=fsync,fdatasync", "-o", out, process.execPath, ...self]
    execFileSync("strace", [...traced, "--job", JSON.stringify(job)], { stdio: "ignore" })
    const text = readFileSync(out, "utf8")
    rmSync(folder, { recursive: true, force: true })
    const counts = [...text.matchAll(/^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+).*f(?:data)?sync$/gm)]
    return counts.reduce((sum, [, count]) => sum + Number(count), 0)
  })
  return (many - few) / 800
}

const median = (numbers: ReadonlyArray<number>): number => {
  const sorted = numbers.toSorted((a, b) => a - b)
  return Number((sorted[Math.floor(sorted.length / 2)] ?? Number.NaN).toPrecision(4))
}

const medians = (rows: ReadonlyArray<Figures>): Figures =>
  Object.fromEntries(
    Object.keys(rows[0] ?? {}).map((figure) => [figure, median(rows.map((row) => row[figure] ?? Number.NaN))])
  )

/** SPEC 13. */
const bars = (of: (cell: string, figure: string) => number | undefined) => {
  const flat =
    (of("run 10000, process", "msPerStep") ?? Number.NaN) / (of("run 1000, process", "msPerStep") ?? Number.NaN)
  const all: ReadonlyArray<readonly [string, number | undefined, number]> = [
    ["ms per step, NORMAL, 1,000", of("run 1000, process", "msPerStep"), 0.5],
    ["ms per step, NORMAL, 10,000 / 1,000", flat, 1.05],
    ["KB kept per step", of("run 1000, process", "keptKbPerStep"), 0.9],
    ["KB written per step, NORMAL", of("run 1000, process", "writtenKbPerStep"), 18],
    ["KB written per step, FULL", of("run 1000, power-loss", "writtenKbPerStep"), 25]
  ]
  return all.flatMap(([name, value, atMost]) =>
    value === undefined || Number.isNaN(value)
      ? []
      : [{ name, value: Number(value.toPrecision(4)), atMost, met: value <= atMost }]
  )
}

const main = async (): Promise<void> => {
  if (values.help) {
    process.stdout.write(help)
    return
  }
  if (values.job !== "") {
    process.stdout.write(`${JSON.stringify(await measure(JSON.parse(values.job)))}\n`)
    return
  }
  const rounds = Number(values.rounds)
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error(`--rounds ${values.rounds}: a whole number from 1`)
  const load = os.loadavg()[0]
  const chosen = jobs.filter(({ name }) => name.includes(values.only))
  const found = new Map<string, Array<Figures>>(chosen.map(({ name }) => [name, []]))
  for (let round = 1; round <= rounds; round++) {
    for (const job of chosen) {
      const figures = await child(job)
      found.get(job.name)?.push(figures)
      process.stderr.write(`round ${round}/${rounds}  ${job.name}: ${JSON.stringify(figures)}\n`)
    }
  }
  const summary = Object.fromEntries([...found].map(([name, rows]) => [name, medians(rows)]))
  const targets = bars((cell, figure) => summary[cell]?.[figure])
  const synced = values.fsyncs ? { process: fsyncs("process"), "power-loss": fsyncs("power-loss") } : undefined
  const about = { node: process.version, cpus: os.cpus().length, loadBefore: load, rounds }
  if (values.json) {
    process.stdout.write(`${JSON.stringify({ about, targets, fsyncsPerStep: synced, medians: summary })}\n`)
    return
  }
  console.table(summary)
  console.table(targets)
  if (synced !== undefined) console.table({ "fsyncs per step": synced })
}

await main()
