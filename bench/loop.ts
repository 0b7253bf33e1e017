/**
 * Measures Waystone's loop beside the AI SDK and the bare loop on effect/ai, in memory, with an instant scripted model.
 * Rounds are interleaved and every measurement has its own process, so a noisy minute hits all alike; ratios of medians
 * count, absolute times drift. See README.md.
 */
import { parseArgs } from "node:util"
import type { Job } from "./child.ts"
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

const usage = `node --conditions=@waystone/source bench/loop.ts [options]

${help}  --long         also the peers over 10,000 steps, once: some minutes more
`

const { values } = parseArgs({ options: { ...options, long: { type: "boolean", default: false } } })

const child = (job: Job): Promise<Figures> =>
  node("--expose-gc", "--conditions=@waystone/source", "child.ts", JSON.stringify(job))

const mode = (stream: boolean): string => (stream ? "streaming" : "whole replies")

const shown = (window: number | undefined): string => (window === undefined ? "" : `, window ${window}`)

const cpu = (job: Omit<Extract<Job, { readonly measure: "cpu" }>, "measure">): Cell => ({
  name: `cpu ${job.steps}: ${job.subject}, ${mode(job.stream)}${shown(job.window)}`,
  measure: () => child({ measure: "cpu", ...job })
})

const concurrent = (subject: "waystone" | "aisdk", stream: boolean): Cell => ({
  name: `concurrent: ${subject}, ${mode(stream)}`,
  measure: () => child({ measure: "concurrent", subject, stream, steps: 10, runs: 1000, delayMs: 50 })
})

const long = (cell: Cell): Cell => ({ ...cell, rounds: 1 })

const window = 200
const modes = [true, false]
const cells: ReadonlyArray<Cell> = [
  ...modes.flatMap((stream) => [
    cpu({ subject: "waystone", stream, steps: 1000 }),
    cpu({ subject: "waystone", stream, steps: 1000, window }),
    cpu({ subject: "aisdk", stream, steps: 1000 }),
    cpu({ subject: "effect", stream, steps: 1000 }),
    cpu({ subject: "waystone", stream, steps: 10_000, window }),
    concurrent("waystone", stream),
    concurrent("aisdk", stream)
  ]),
  ...(values.long
    ? modes.flatMap((stream) => [
        long(cpu({ subject: "aisdk", stream, steps: 10_000 })),
        long(cpu({ subject: "aisdk", stream, steps: 10_000, window })),
        long(cpu({ subject: "effect", stream, steps: 10_000, window }))
      ])
    : []),
  importing("@waystone/core", "@waystone/core"),
  importing("ai", "ai")
]

/** SPEC 13. */
const goals: ReadonlyArray<Goal> = [
  ...modes.flatMap((stream): ReadonlyArray<Goal> => {
    const how = mode(stream)
    const windowed = `waystone, ${how}${shown(window)}`
    const [ours, theirs] = [`concurrent: waystone, ${how}`, `concurrent: aisdk, ${how}`]
    return [
      {
        name: `CPU per step at 1,000, ${how}: waystone / AI SDK`,
        value: ratio("cpuMsPerStep", `cpu 1000: waystone, ${how}`, `cpu 1000: aisdk, ${how}`),
        atMost: 0.7
      },
      {
        name: `CPU per step with a window, ${how}: 10,000 / 1,000`,
        value: ratio("cpuMsPerStep", `cpu 10000: ${windowed}`, `cpu 1000: ${windowed}`),
        atMost: flat
      },
      {
        name: `1,000 Runs, ${how}, wall: waystone / AI SDK`,
        value: ratio("wallMs", ours, theirs),
        atMost: 1,
        below: true
      },
      {
        name: `1,000 Runs, ${how}, memory: waystone / AI SDK`,
        value: ratio("rssKbPerRun", ours, theirs),
        atMost: 1,
        below: true
      }
    ]
  }),
  { name: "import of @waystone/core, ms", value: (median) => median("import: @waystone/core", "importMs"), atMost: 180 }
]

/** Beside the goals: where the time goes, and what the peers do over long runs. */
const ratios: ReadonlyArray<Ratio> = [
  ...modes.flatMap((stream) => {
    const how = mode(stream)
    const windowed = `cpu 10000: waystone, ${how}${shown(window)}`
    const over = (name: string, cell: string, other: string) => ({ name, value: ratio("cpuMsPerStep", cell, other) })
    return [
      over(
        `CPU per step at 1,000, ${how}: waystone / bare effect/ai loop`,
        `cpu 1000: waystone, ${how}`,
        `cpu 1000: effect, ${how}`
      ),
      over(
        `CPU per step at 1,000, ${how}: waystone with a window / AI SDK`,
        `cpu 1000: waystone, ${how}${shown(window)}`,
        `cpu 1000: aisdk, ${how}`
      ),
      over(`CPU per step at 10,000, ${how}: waystone with a window / AI SDK`, windowed, `cpu 10000: aisdk, ${how}`),
      over(
        `CPU per step at 10,000, ${how}: both with a window, waystone / AI SDK`,
        windowed,
        `cpu 10000: aisdk, ${how}${shown(window)}`
      )
    ]
  }),
  { name: "import: @waystone/core / ai", value: ratio("importMs", "import: @waystone/core", "import: ai") }
]

if (values.help) process.stdout.write(usage)
else await report({ cells, goals, ratios, values })
