/**
 * Measures what the policies cost: CPU per step with all of them on, with each of them alone, and with none, in memory
 * with an instant scripted model. Ratios of one run count; see README.md.
 */
import { parseArgs } from "node:util"
import type { Job } from "./policy-child.ts"
import { type Cell, flat, type Goal, help, node, options, type Ratio, ratio, report } from "./rounds.ts"

const usage = `node --conditions=@waystone/source bench/policy.ts [options]

${help}`

const { values } = parseArgs({ options })

const nameOf = ({ policy, steps, window }: Job): string =>
  `cpu ${steps}: ${policy}${window === undefined ? "" : `, window ${window}`}`

const cell = (job: Job): Cell => ({
  name: nameOf(job),
  measure: () => node("--conditions=@waystone/source", "policy-child.ts", JSON.stringify(job))
})

const lengths = [{ steps: 1000 }, { steps: 1000, window: 200 }, { steps: 10_000, window: 200 }] as const
const alone = ["approvals", "breaker", "budget", "loopGuard", "permissions", "quota", "sanitizer"] as const

const cells: ReadonlyArray<Cell> = [
  ...lengths.flatMap((length) => [cell({ policy: "none", ...length }), cell({ policy: "all", ...length })]),
  ...alone.map((policy) => cell({ policy, steps: 1000, window: 200 }))
]

const over = (policy: Job["policy"], length: (typeof lengths)[number]): Ratio => {
  const cell = nameOf({ policy, ...length })
  return { name: `${cell} / none`, value: ratio("cpuMsPerStep", cell, nameOf({ policy: "none", ...length })) }
}

const goals: ReadonlyArray<Goal> = [
  ...lengths.map((length) => ({ ...over("all", length), atMost: 1.4 })),
  {
    name: "all, window 200: 10,000 / 1,000",
    value: ratio("cpuMsPerStep", nameOf({ policy: "all", ...lengths[2] }), nameOf({ policy: "all", ...lengths[1] })),
    atMost: flat
  }
]
const ratios = alone.map((policy) => over(policy, lengths[1]))

if (values.help) process.stdout.write(usage)
else await report({ cells, goals, ratios, values })
