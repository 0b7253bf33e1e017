/**
 * Decides which traces are kept, when a segment of a Run has ended and everything about it is known.
 *
 * Invariants
 *   S1  A faulty Run is kept, whatever the ratio is.
 *   S2  The decision depends on nothing but the journal and the options: whoever reads the journal knows what was kept.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import type { Faults } from "./Faults.ts"
import * as SpanIds from "./SpanIds.ts"

export interface Options {
  /** Share of the Runs without a fault that is kept, 0 to 1. Default 1. */
  readonly ratio?: number
  /** A Run that took longer, its waits included, is kept. Default: none is, for its length. */
  readonly slowerThan?: Duration.Input
  /** A Run that cost more US dollars is kept. Default: none is, for its cost. */
  readonly dearerThanUsd?: number
}

/** Says of a Run so far whether its trace is kept. */
export type Sampler = (traceId: string, faults: Faults) => boolean

export const make = ({ dearerThanUsd = Infinity, ratio = 1, slowerThan = Duration.infinity }: Options): Sampler => {
  const longest = Duration.toMillis(Duration.fromInputUnsafe(slowerThan))
  const dearest = dearerThanUsd * 1e9
  return (traceId, { costNanoUsd, denied, failed, from, inDoubt, resumed, stopped, to, unsampled }) =>
    failed ||
    stopped ||
    denied ||
    inDoubt ||
    resumed ||
    to - from > longest ||
    costNanoUsd > dearest ||
    (!unsampled && SpanIds.share(traceId) < ratio)
}
