/**
 * Turns what a model charges for each class of tokens into the price of a usage.
 *
 * Invariants
 *   T1  Every token is paid once, at the rate of its class (RI-166).
 *   T2  A rate that is not known, or usage that is no count, gives no price: never 0.
 *
 * @since 0.1.0
 */
import type { Usage } from "@waystone/core"

/** USD for a million tokens; `tiers` replace it for the whole request from `start` input tokens on. */
export type Rate = number | { readonly base: number; readonly tiers: ReadonlyArray<Tier> }

export interface Tier {
  /** The tier holds for requests with more input tokens than this, of all classes together. */
  readonly start: number
  readonly price: number
}

/** What a model charges. A class without a rate of its own is charged like the whole it is a part of. */
export interface Rates {
  readonly input: Rate | undefined
  /** Default: as `input`. */
  readonly cacheRead?: Rate | undefined
  /** Default: as `input`. */
  readonly cacheWrite?: Rate | undefined
  readonly output: Rate | undefined
  /** Default: as `output`. */
  readonly reasoning?: Rate | undefined
}

/** Whole nano-USD, rounded up; undefined if a class that was used has no rate. */
export const cost = (rates: Rates, usage: Usage.Usage): number | undefined => {
  const { cacheRead, cacheWrite, input, output, reasoning } = usage
  const size = input + cacheRead + cacheWrite
  const paid = (tokens: number, rate: Rate | undefined) => (tokens === 0 ? 0 : tokens * at(rate, size))
  const usd =
    paid(input, rates.input) +
    paid(cacheRead, rates.cacheRead ?? rates.input) +
    paid(cacheWrite, rates.cacheWrite ?? rates.input) +
    paid(output, rates.output) +
    paid(reasoning, rates.reasoning ?? rates.output)
  const counts = [cacheRead, cacheWrite, input, output, reasoning].every((tokens) => tokens >= 0)
  // A USD for a million tokens is 1,000 nano-USD a token; sums of binary fractions may be a hair above a whole number.
  return counts && Number.isFinite(usd) ? Math.max(0, Math.ceil(usd * 1000 - 1e-6)) : undefined
}

const at = (rate: Rate | undefined, size: number): number => {
  if (rate === undefined || typeof rate === "number") return rate ?? Number.NaN
  return rate.tiers.reduce((price, tier) => (size > tier.start ? tier.price : price), rate.base)
}
