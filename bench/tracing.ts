/**
 * Measures what tracing costs: CPU per step with spans and metrics sent to a collector as protobuf, with everything dropped by
 * the sampler, and with content, against none, in memory with an instant scripted model. Ratios of one run count; see README.md.
 */
import { parseArgs } from "node:util"
import type { Job } from "./tracing-child.ts"
import { type Cell, type Goal, help, node, options, type Ratio, ratio, report } from "./rounds.ts"

const usage = `node --conditions=@waystone/source bench/tracing.ts [options]

${help}`

const { values } = parseArgs({ options })

const nameOf = ({ runs, steps, tracing }: Job): string => `cpu ${runs} x ${steps}: ${tracing}`

const cell = (job: Job): Cell => ({
  name: nameOf(job),
  measure: () => node("--conditions=@waystone/source", "tracing-child.ts", JSON.stringify(job))
})

const sizes = [
  { runs: 1, steps: 1000 },
  { runs: 100, steps: 10 }
] as const
const kinds = ["off", "on", "dropped", "content"] as const

const cells: ReadonlyArray<Cell> = sizes.flatMap((size) => kinds.map((tracing) => cell({ tracing, ...size })))

const over = (tracing: Job["tracing"], size: (typeof sizes)[number]): Ratio => {
  const name = nameOf({ tracing, ...size })
  return { name: `${name} / off`, value: ratio("cpuMsPerStep", name, nameOf({ tracing: "off", ...size })) }
}

const goals: ReadonlyArray<Goal> = sizes.map((size) => ({ ...over("on", size), atMost: 1.3 }))
const ratios = sizes.flatMap((size) => [over("dropped", size), over("content", size)])

if (values.help) process.stdout.write(usage)
else await report({ cells, goals, ratios, values })
