/** One measurement in one process: `node tracing-child.ts '<job>'` prints one line of JSON. tracing.ts starts it. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { Agent, MemoryStore, Run, Window } from "@waystone/core"
import { OtelTrace } from "@waystone/trace-otel"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { cpuMs } from "./rounds.ts"
import { answer, instructions, type Script, task } from "./script.ts"
import { Add, layer } from "./subjects/model.ts"

export interface Job {
  /** `dropped`: on, with a ratio of 0, so that everything is folded and nothing sent. */
  readonly tracing: "off" | "on" | "dropped" | "content"
  readonly runs: number
  readonly steps: number
}

const job: Job = JSON.parse(process.argv[2] ?? "")
const script: Script = { steps: 20, delayMs: 0 }
const agent = Agent.make("bench", {
  instructions,
  tools: [Add],
  limits: { maxTurns: 20_000, activeTime: "1 hour" },
  window: Window.lastMessages(200)
})

/** Takes everything, as a collector does that is there; its work is not ours, so it is a process of its own. */
const source = `require("node:http").createServer((request, response) => {
  request.resume()
  request.on("end", () => response.end())
}).listen(0, "127.0.0.1", function () { console.log(this.address().port) })`
const collector = spawn(process.execPath, ["-e", source], { stdio: ["ignore", "pipe", "inherit"] })
const [port] = await once(collector.stdout, "data")
process.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = `http://127.0.0.1:${String(port).trim()}`

const options = { serviceName: "bench", sampling: { ratio: job.tracing === "dropped" ? 0 : 1 } }
const tracing =
  job.tracing === "off" ? Layer.empty : OtelTrace.layer({ ...options, content: job.tracing === "content" })
const runtime = ManagedRuntime.make(Layer.merge(layer(script), Layer.provideMerge(tracing, MemoryStore.layer)))
const run = async (runId: string) => {
  const outcome = await runtime.runPromise(Run.start(agent, { runId, task }))
  if (outcome._tag !== "Completed" || outcome.output !== answer) throw new Error(JSON.stringify(outcome))
}
await run("warm-up")
script.steps = job.steps
const before = cpuMs()
for (let i = 0; i < job.runs; i++) await run(`run-${i}`)
await runtime.dispose()
const figures = { cpuMsPerStep: (cpuMs() - before) / (job.steps * job.runs) }
collector.kill()
process.stdout.write(`${JSON.stringify(figures)}\n`, () => process.exit(0))
