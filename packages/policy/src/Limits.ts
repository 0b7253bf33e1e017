/**
 * Says what a Budget's limits come to after yeses, without what a last turn needs, and without what is gone, and how that is said.
 *
 * @since 0.1.0
 */
import type * as CallBound from "./CallBound.ts"
import { type Amounts, plus, type Spending, type Unit } from "./Spending.ts"

/** Each yes grants the whole budget once more. */
export const granted = ({ limits }: { readonly limits: Amounts }, grants: number): Amounts => ({
  tokens: limits.tokens * (1 + grants),
  costNanoUsd: limits.costNanoUsd * (1 + grants),
  turns: limits.turns * (1 + grants),
  calls: limits.calls * (1 + grants)
})

/** Without what the last turn needs. */
export const kept = (limits: Amounts, share: number): Amounts => ({
  ...limits,
  tokens: less(limits.tokens, share),
  costNanoUsd: less(limits.costNanoUsd, share),
  turns: limits.turns - 1
})

/** No limit stays none: a share of 1 of it is no number. */
const less = (limit: number, share: number): number => (limit === Infinity ? limit : Math.floor(limit * (1 - share)))

export const left = (limits: Amounts, { reserved, spent }: Spending): Amounts => {
  const gone = plus(spent, reserved)
  return {
    tokens: limits.tokens - gone.tokens,
    costNanoUsd: limits.costNanoUsd - gone.costNanoUsd,
    turns: limits.turns - gone.turns,
    calls: limits.calls - gone.calls
  }
}

/** What a step needs more of than there is. */
export type Over = Extract<CallBound.Bound, { readonly _tag: "TooMuch" }> | UsedUp
export interface UsedUp {
  readonly _tag: "UsedUp"
  readonly unit: Unit
}

export const exhausted = (found: Over, limits: Amounts, { reserved, spent }: Spending): string => {
  const { unit } = found
  const used = `${shown(unit, spent[unit] + reserved[unit])} of ${shown(unit, limits[unit])} used`
  return found._tag === "UsedUp"
    ? `the budget of ${names[unit]} is used up: ${used}`
    : `the budget of ${names[unit]} is too small for the next model call: ${used}, it may need ${shown(unit, found.needed)}`
}

const names: { readonly [U in Unit]: string } = {
  tokens: "tokens",
  costNanoUsd: "money",
  turns: "turns",
  calls: "tool calls"
}

const shown = (unit: Unit, amount: number): string =>
  unit === "costNanoUsd" ? `$${(amount / 1e9).toFixed(6)}` : String(amount)
