/**
 * Measures a durable step on Redis beside the raw client that sends one EVALSHA for each append of that step, with a
 * redis-server of its own, and the import of the built packages. Rounds are interleaved and every measurement has its own
 * process; medians count. See README.md.
 */
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { createConnection } from "node:net"
import os from "node:os"
import { join } from "node:path"
import { parseArgs, promisify } from "node:util"

const help = `node --conditions=@waystone/source bench/redis-store.ts [options]

  --json         one JSON document on stdout instead of tables
  --rounds <n>   rounds of all cells; the medians count (default 5)
  --steps <n>    steps of a Run (default 1000)
  --fsync <how>  appendfsync of the server: always, everysec or no (default everysec)
  --help         this text
`

const { values } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    rounds: { type: "string", default: "5" },
    steps: { type: "string", default: "1000" },
    fsync: { type: "string", default: "everysec" },
    help: { type: "boolean", default: false }
  }
})

type Figures = { readonly [figure: string]: number }

const run = promisify(execFile)
const node = async (...args: ReadonlyArray<string>): Promise<Figures> => {
  const { stdout } = await run(process.execPath, args, { cwd: import.meta.dirname })
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "")
}
const child = (subject: string, url: string) =>
  node("--conditions=@waystone/source", "redis-child.ts", subject, url, values.steps)

/** A redis-server of its own from the PATH, in a temporary folder. */
const start = async (appendfsync: string) => {
  const port = 20_000 + (process.pid % 20_000)
  const dir = mkdtempSync(join(os.tmpdir(), "waystone-bench-"))
  const options = ["--port", `${port}`, "--dir", dir, "--save", "", "--appendonly", "yes", "--appendfsync", appendfsync]
  const server = spawn("redis-server", options, { stdio: "ignore" })
  const answers = () =>
    new Promise<boolean>((resolve) => {
      const socket = createConnection(port, "127.0.0.1")
      socket.once("connect", () => resolve(true)).once("error", () => resolve(false))
      socket.once("close", () => socket.destroy()).end()
    })
  while (!(await answers())) await new Promise((resolve) => setTimeout(resolve, 50))
  const stop = async () => {
    server.kill()
    await once(server, "exit")
    rmSync(dir, { recursive: true })
  }
  return { url: `redis://127.0.0.1:${port}`, stop }
}

/** The built packages, as an application loads them; `connect` is what layerUrl loads when it is used. */
const importing = (...specifiers: ReadonlyArray<string>) =>
  node(
    "--input-type=module",
    "--eval",
    `const start = performance.now()
     ${specifiers.map((specifier) => `await import(${JSON.stringify(specifier)})`).join("\n")}
     console.log(JSON.stringify({ importMs: performance.now() - start }))`
  )

const cells: { readonly [name: string]: (url: string) => Promise<Figures> } = {
  "a durable step": (url) => child("waystone", url),
  "a durable step, window 200": (url) => child("window", url),
  "raw client: one EVALSHA per append": (url) => child("raw", url),
  "import: core": () => importing("@waystone/core"),
  "import: core + checkpoint-redis": () => importing("@waystone/core", "@waystone/checkpoint-redis"),
  "import: core + checkpoint-redis + NodeRedis": () =>
    importing("@waystone/core", "@waystone/checkpoint-redis", "@effect/platform-node/NodeRedis")
}

const median = (numbers: ReadonlyArray<number>): number =>
  Number((numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN).toPrecision(4))

const main = async (): Promise<void> => {
  if (values.help) return void process.stdout.write(help)
  const rounds = Number(values.rounds)
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error(`--rounds ${values.rounds}: a whole number from 1`)
  const load = os.loadavg()[0]
  const server = await start(values.fsync)
  const raw: { [name: string]: Array<Figures> } = {}
  try {
    for (let round = 1; round <= rounds; round++) {
      for (const [name, measure] of Object.entries(cells)) {
        const figures = await measure(server.url)
        ;(raw[name] ??= []).push(figures)
        process.stderr.write(`round ${round}/${rounds}  ${name}: ${JSON.stringify(figures)}\n`)
      }
    }
  } finally {
    await server.stop()
  }
  const medians = Object.fromEntries(
    Object.entries(raw).map(([name, rows]) => {
      const figures = Object.keys(rows[0] ?? {})
      return [
        name,
        Object.fromEntries(figures.map((figure) => [figure, median(rows.map((row) => row[figure] ?? Number.NaN))]))
      ]
    })
  )
  const of = (cell: string, figure: string) => medians[cell]?.[figure] ?? Number.NaN
  const step = of("a durable step", "msPerStep")
  const whole = of("import: core + checkpoint-redis + NodeRedis", "importMs")
  const targets = [
    { name: "ms per durable step", value: step, limit: "<= 1.0", met: step <= 1 },
    { name: "import of core + checkpoint-redis + its client, ms", value: whole, limit: "<= 330", met: whole <= 330 }
  ]
  const ratio = Number((step / of("raw client: one EVALSHA per append", "msPerStep")).toPrecision(3))
  const about = { node: process.version, cpus: os.cpus().length, loadBefore: load, rounds, fsync: values.fsync }
  if (values.json) return void process.stdout.write(`${JSON.stringify({ about, targets, ratio, medians, raw })}\n`)
  console.table(medians)
  console.log(`a durable step / the raw client: ${ratio}`)
  console.table(targets)
}

await main()
