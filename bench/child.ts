/** One measurement in one process: `node child.ts '<job>'` prints one line of JSON. loop.ts starts it. */
import { cpuMs, type Figures } from "./rounds.ts"
import { answer, type Options, type Script, type Subject } from "./script.ts"

export type Job = {
  readonly subject: "waystone" | "effect" | "aisdk"
  readonly stream: boolean
  readonly window?: number
} & (
  | { readonly measure: "cpu"; readonly steps: number }
  | { readonly measure: "concurrent"; readonly steps: number; readonly runs: number; readonly delayMs: number }
)

const subjects: { readonly [Name in Job["subject"]]: () => Promise<{ make: (options: Options) => Subject }> } = {
  waystone: () => import("./subjects/waystone.ts"),
  effect: () => import("./subjects/effect.ts"),
  aisdk: () => import("./subjects/aisdk.ts")
}

const check = (text: string): void => {
  if (text !== answer) throw new Error(`the Run ended with ${text}`)
}

/** CPU of the whole process, garbage collection and compilation included. */
const cpu = async (run: Subject["run"], steps: number): Promise<Figures> => {
  const before = cpuMs()
  const start = performance.now()
  check(await run("run"))
  return { cpuMsPerStep: (cpuMs() - before) / steps, wallMsPerStep: (performance.now() - start) / steps }
}

/** `runs` at once; memory is the highest RSS over the one before, per run. */
const concurrent = async (run: Subject["run"], runs: number): Promise<Figures> => {
  globalThis.gc?.()
  const idle = process.memoryUsage.rss()
  let peak = idle
  const look = () => {
    peak = Math.max(peak, process.memoryUsage.rss())
  }
  const polling = setInterval(look, 20)
  const before = cpuMs()
  const start = performance.now()
  const answers = await Promise.all(Array.from({ length: runs }, (_, i) => run(`run-${i}`)))
  const wallMs = performance.now() - start
  const spent = cpuMs() - before
  look()
  clearInterval(polling)
  answers.forEach(check)
  return { wallMs, cpuMs: spent, rssKbPerRun: (peak - idle) / 1024 / runs }
}

const job: Job = JSON.parse(process.argv[2] ?? "")
const script: Script = { steps: 20, delayMs: 0 }
const { make } = await subjects[job.subject]()
const { stream } = job
const { run } = make({ script, stream, ...(job.window === undefined ? undefined : { window: job.window }) })
check(await run("warm-up"))
script.steps = job.steps
if (job.measure === "concurrent") script.delayMs = job.delayMs
const figures = job.measure === "cpu" ? await cpu(run, job.steps) : await concurrent(run, job.runs)
process.stdout.write(`${JSON.stringify(figures)}\n`, () => process.exit(0))
