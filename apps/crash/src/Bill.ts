/**
 * What a team may spend, what a provider charged for, and what the journals of its tree say of both.
 */
import type { RunEvent } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { fold, initial, plus, type Spending, units } from "../../../packages/policy/src/Spending.ts"
import type { Job } from "./Job.ts"
import * as Ledger from "./Ledger.ts"
import * as Subject from "./Subject.ts"

/** Enough for every turn and a few that are lost, and far less than the tree could set aside if nothing held it. */
export const limits = { tokens: 60_000, turns: 40, calls: 40 } as const

/** Loaded where it is needed only: most workers have no budget. */
export const budget = Layer.unwrap(
  Effect.map(
    Effect.promise(() => import("@waystone/policy/Budget")),
    (Budget) => Layer.orDie(Budget.layer({ ...limits, hiddenTokens: 0, paidTries: 1 }))
  )
)

const fileOf = ({ ledger }: Pick<Job, "ledger">) => `${ledger}.bill`

/** Charges for one model call, whoever lives to hear the answer. */
export const charge = (job: Pick<Job, "ledger">): void =>
  Ledger.happen(fileOf(job), { key: String(process.pid), item: String(Subject.tokens) })

/** Tokens that were charged for. */
export const charged = (job: Pick<Job, "ledger">): number =>
  Ledger.read(fileOf(job)).reduce((sum, { item }) => sum + Number(item), 0)

type Events = ReadonlyArray<RunEvent.RunEvent>

/**
 * What is wrong with the sums of a tree. After every event, what the root has spent and set aside is within its budget, and what
 * each below it has is within its share, which the root counts until that call has ended.
 */
export const wrong = (job: Pick<Job, "ledger">, root: Events, below: ReadonlyArray<Events>): ReadonlyArray<string> => {
  const problems: Array<string> = []
  const follow = (who: string, events: Events, within: Partial<Spending["spent"]>) => {
    let spending: Spending = initial
    for (const event of events) {
      spending = fold(spending, event)
      const sum = plus(spending.spent, spending.reserved)
      for (const unit of units)
        if (sum[unit] > (within[unit] ?? Infinity)) problems.push(`${who}: ${sum[unit]} ${unit} at ${event._tag}`)
    }
    const left = units.filter((unit) => spending.reserved[unit] !== 0)
    if (left.length > 0) problems.push(`${who}: ${left.join(", ")} still set aside`)
    return spending
  }
  const { spent } = follow("root", root, limits)
  for (const events of below) {
    const [accepted] = events
    const share = accepted?._tag === "RunAccepted" ? accepted.parent?.share?.["budget"] : undefined
    if (share === undefined) problems.push("a sub-agent without a share")
    follow("below", events, share ?? {})
  }
  if (charged(job) > spent.tokens) problems.push(`${charged(job)} tokens charged, ${spent.tokens} counted`)
  return problems
}
