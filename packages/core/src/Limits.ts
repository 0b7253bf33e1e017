/**
 * Names the fuses that end a Run whatever the model does.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import type { LimitChanges } from "./RunEvent.ts"

export interface Limits {
  /** Model calls, lost ones included. Default 25. */
  readonly maxTurns: number
  /** Failed calls in a row. Default 5. */
  readonly maxConsecutiveFailures: number
  /** Calls in one reply; the ones beyond it are answered with an error. Default 16. */
  readonly maxCallsPerReply: number
  /** Time spent driving, waits not counted. Default 15 minutes. */
  readonly activeTime: Duration.Duration
  /** Deaths in one place that are recovered from; one more is Poisoned. Default 3. */
  readonly maxRecoveries: number
  /**
   * How many agents may stand below this one, each the tool of the one above it; a call that would be one more is answered
   * with an error (RI-126). Default 4. In a tree the least of all agents on the way down counts.
   */
  readonly maxDepth: number
  /** Model calls of the Run and of all sub-agents below it together. Default 4 × `maxTurns`. */
  readonly maxTreeTurns: number
  /** When a count limit trips, the model gets one last turn without tools (RI-061). Default false. */
  readonly finalAnswer: boolean
  /**
   * How often a streamed reply may say the same in a row (at least 200 UTF-16 units in all) before it is interrupted and
   * the Run stopped as RepetitiveOutput. What is said again is found up to 1,280 UTF-16 units (some 200 words), and all of
   * it together up to 65,536. Text and reasoning are looked at, arguments of calls are not: a file may well repeat itself.
   * From 2; default: not looked for.
   */
  readonly maxRepeats?: number
}

/** Those that hold at the moment. */
export interface Current extends Limits {
  /** `maxTurns` is what the tree has left. */
  readonly ofTree?: true
}

export interface Options extends Partial<Omit<Limits, "activeTime">> {
  readonly activeTime?: Duration.Input
}

export const defaults: Limits = {
  maxTurns: 25,
  maxConsecutiveFailures: 5,
  maxCallsPerReply: 16,
  activeTime: Duration.minutes(15),
  maxRecoveries: 3,
  maxDepth: 4,
  maxTreeTurns: 4 * 25,
  finalAnswer: false
}

export const make = ({ activeTime, ...counts }: Options = {}): Limits => ({
  ...defaults,
  ...(counts.maxTurns === undefined ? undefined : { maxTreeTurns: ofTree(counts.maxTurns) }),
  ...counts,
  ...(activeTime === undefined ? undefined : { activeTime: duration(activeTime) })
})

/** Four Runs' worth, whatever one may have. */
const ofTree = (maxTurns: number): number => maxTurns * 4

/** A duration; what is none becomes 0, which `invalid` and Agent refuse with the field's name. */
export const duration = (input: Duration.Input): Duration.Duration =>
  Option.getOrElse(Duration.fromInput(input), () => Duration.zero)

/** The first field that is out of range, with what it must be. */
export const invalid = (limits: Limits): string | undefined => {
  for (const [name, least] of counts) {
    const value = limits[name]
    if (value === undefined) continue
    if (!Number.isInteger(value) || value < least)
      return `limits.${name} is ${value}: it must be a whole number from ${least}`
  }
  return Duration.toMillis(limits.activeTime) > 0 ? undefined : "limits.activeTime must be a duration longer than 0"
}

const counts = [
  ["maxTurns", 1],
  ["maxConsecutiveFailures", 1],
  ["maxCallsPerReply", 1],
  ["maxRecoveries", 0],
  ["maxDepth", 0],
  ["maxTreeTurns", 1],
  ["maxRepeats", 2]
] as const

/** The limits of a reopened Run. */
export const override = (limits: Limits, changes: LimitChanges | undefined): Limits => {
  if (changes === undefined) return limits
  const { activeTimeMs, ...counts } = changes
  return {
    ...limits,
    ...(counts.maxTurns === undefined
      ? undefined
      : { maxTreeTurns: Math.max(limits.maxTreeTurns, ofTree(counts.maxTurns)) }),
    ...counts,
    ...(activeTimeMs === undefined ? undefined : { activeTime: Duration.millis(activeTimeMs) })
  }
}
