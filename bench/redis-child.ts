/** One measurement in one process: `node redis-child.ts <subject> <url> <steps>` prints one line of JSON. */
import { Agent, Run, Window } from "@waystone/core"
import { RedisStore } from "@waystone/checkpoint-redis"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { createClient } from "redis"
import { answer, instructions, type Script, task } from "./script.ts"
import { Add, layer } from "./subjects/model.ts"

const [, , subject = "", url = "", stepsText = ""] = process.argv
const steps = Number(stepsText)
const appendsPerStep = 2

const timed = async (what: () => Promise<unknown>) => {
  const before = process.cpuUsage()
  const start = performance.now()
  await what()
  const { system, user } = process.cpuUsage(before)
  return { msPerStep: (performance.now() - start) / steps, cpuMsPerStep: (system + user) / 1000 / steps }
}

const waystone = async (window: number | undefined) => {
  const script: Script = { steps: 20, delayMs: 0 }
  const agent = Agent.make("bench", {
    instructions,
    tools: [Add],
    stream: false,
    limits: { maxTurns: 20_000, activeTime: "1 hour" },
    ...(window === undefined ? undefined : { window: Window.lastMessages(window) })
  })
  const store = RedisStore.layerUrl({ url, prefix: `bench-${process.pid}`, onWeakServer: "ignore" })
  const runtime = ManagedRuntime.make(Layer.merge(layer(script), store))
  const run = (runId: string) =>
    runtime.runPromise(
      Effect.map(Run.start(agent, { runId, task }), (outcome) => {
        if (outcome._tag !== "Completed" || outcome.output !== answer) throw new Error(outcome._tag)
      })
    )
  await run("warm-up")
  script.steps = steps
  const figures = await timed(() => run("run"))
  await runtime.dispose()
  return figures
}

/** What an append cannot do without: compare, add, set. */
const lua = `
local known = redis.call('HMGET', KEYS[1], 'seq', 'epoch')
if (known[1] or '0') ~= ARGV[1] then return known[1] end
redis.call('XADD', KEYS[2], ARGV[2] .. '-0', 'e', '1', 'b', ARGV[3])
redis.call('HSET', KEYS[1], 'seq', ARGV[2], 'epoch', '1', 'body', ARGV[3])
return 'ok'`

/** Events and a head of the size that a step writes, and nothing else. */
const rawClient = async () => {
  const client = createClient({ url, RESP: 2 })
  await client.connect()
  const sha = String(await client.sendCommand(["SCRIPT", "LOAD", lua]))
  const body = "x".repeat(450)
  const many = async (runId: string, count: number) => {
    const keys = [`raw:{${runId}}:head`, `raw:{${runId}}:events`]
    for (let i = 0; i < count; i++) {
      const reply = await client.sendCommand(["EVALSHA", sha, "2", ...keys, `${i}`, `${i + 1}`, body])
      if (String(reply) !== "ok") throw new Error(String(reply))
    }
  }
  await many(`warm-up-${process.pid}`, 40)
  const figures = await timed(() => many(`run-${process.pid}`, steps * appendsPerStep))
  await client.close()
  return figures
}

const figures = subject === "raw" ? await rawClient() : await waystone(subject === "window" ? 200 : undefined)
process.stdout.write(`${JSON.stringify(figures)}\n`, () => process.exit(0))
