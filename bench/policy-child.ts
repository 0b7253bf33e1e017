/** One measurement in one process: `node policy-child.ts '<job>'` prints one line of JSON. policy.ts starts it. */
import { Agent, MemoryStore, Run, Window } from "@waystone/core"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { cpuMs } from "./rounds.ts"
import { answer, instructions, type Script, task } from "./script.ts"
import { Add, layer } from "./subjects/model.ts"
import { layers, type Policy } from "./subjects/policies.ts"

export interface Job {
  readonly policy: Policy
  readonly steps: number
  /** Messages that the model is shown; undefined is the whole history. */
  readonly window?: number
}

const job: Job = JSON.parse(process.argv[2] ?? "")
const script: Script = { steps: 20, delayMs: 0 }
const agent = Agent.make("bench", {
  instructions,
  tools: [Add],
  limits: { maxTurns: 20_000, activeTime: "1 hour" },
  ...(job.window === undefined ? undefined : { window: Window.lastMessages(job.window) })
})
const runtime = ManagedRuntime.make(Layer.mergeAll(layer(script), MemoryStore.layer, layers[job.policy]))
const run = async (runId: string) => {
  const outcome = await runtime.runPromise(Run.start(agent, { runId, task }))
  if (outcome._tag !== "Completed" || outcome.output !== answer) throw new Error(JSON.stringify(outcome))
}
await run("warm-up")
script.steps = job.steps
const before = cpuMs()
await run("run")
const figures = { cpuMsPerStep: (cpuMs() - before) / job.steps }
process.stdout.write(`${JSON.stringify(figures)}\n`, () => process.exit(0))
