/**
 * Says what of a budget a sub-agent may use.
 *
 * What its tool says (`share`) counts; for the rest, what is left is split evenly among the sub-agents that a reply calls and
 * their caller, who needs something for what comes after. It is set aside in the call's ToolCallStarted, is all that the Run
 * of the sub-agent can spend, and what that spent takes its place when the call ends.
 *
 * Invariants
 *   CS1  What is set aside for all sub-agents of a reply together is never more than what is left.
 *
 * @since 0.1.0
 */
import { Guard, type RunState } from "@waystone/core"
import { type Amounts, guardName, type Unit, units } from "./Spending.ts"

type State = RunState.RunState
type Call = State["calls"][number]

interface Limited {
  readonly limits: Amounts
  readonly onExhausted: "stop" | "final-answer" | "ask"
}

/** The settings of a Run that may use no more than a share: a yes to one more budget would be more than its caller has. */
export const within = <Settings extends Limited>(settings: Settings, share: Partial<Amounts> | undefined): Settings => {
  if (share === undefined) return settings
  const least = (unit: Unit) => Math.min(settings.limits[unit], share[unit] ?? Infinity)
  const limits: Amounts = {
    tokens: least("tokens"),
    costNanoUsd: least("costNanoUsd"),
    turns: least("turns"),
    calls: least("calls")
  }
  return { ...settings, limits, onExhausted: settings.onExhausted === "ask" ? "stop" : settings.onExhausted }
}

interface Proposed {
  readonly call: Call
  /** Calls before it that may run, and for which nothing is set aside yet. */
  readonly ahead: ReadonlyArray<Call>
  readonly state: State
  readonly left: Amounts
}

/** Allows the call of a sub-agent with its share, or denies it where there is not so much. */
export const check = ({ ahead, call, left, state }: Proposed): Guard.Verdict => {
  const isBelow = ({ name }: Call) => state.tools[name]?.agent !== undefined
  // Not started, so nothing is set aside for them yet.
  const open = state.calls.filter(
    (one) => isBelow(one) && (one.status === "requested" || one.status === "asked" || one.status === "approved")
  )
  const before = new Set([...ahead, ...open.filter(({ status }) => status !== "requested")].filter(isBelow))
  before.delete(call)
  const share: { [unit: string]: number } = {}
  for (const unit of units) {
    if (left[unit] === Infinity) continue
    // Each of these calls is a tool call itself.
    const all = unit === "calls" ? left.calls - open.length : left[unit]
    const even = Math.max(0, Math.floor(all / (open.length + 1)))
    const of = (one: Call) => one.reservations?.[guardName]?.[unit] ?? state.tools[one.name]?.share?.[unit] ?? even
    let rest = all
    for (const one of before) rest -= of(one)
    const wanted = of(call)
    if (wanted > rest || (wanted < 1 && unit !== "calls"))
      return Guard.deny(
        `the budget has ${Math.max(0, rest)} ${unit} left for this sub-agent, and it may need ${Math.max(1, wanted)}`
      )
    share[unit] = wanted
  }
  return { _tag: "Allow", reservation: share }
}
