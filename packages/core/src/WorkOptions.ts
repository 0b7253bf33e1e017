/**
 * Checks the numbers that a worker or a sweep is given, neither of which can fail, so that a wrong one is a defect that names
 * its option; and an age, which is refused with a typed error.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Input from "./Input.ts"
import type { InputInvalid } from "./RunError.ts"

/** How many Runs are driven at once. */
export const concurrency = (verb: string, value: number): Effect.Effect<void> =>
  Number.isInteger(value) && value >= 1
    ? Effect.void
    : refused(`${verb}: concurrency is ${String(value)}`, "a whole number from 1")

/** A time that begins anew again and again: it must pass. */
export const every = (verb: string, value: Duration.Input): Effect.Effect<void> =>
  millis(value).some((ms) => ms > 0 && ms < Infinity)
    ? Effect.void
    : refused(`${verb}: every is ${String(value)}`, 'a duration longer than 0, like "1 second"')

export const drain = (verb: string, value: Duration.Input): Effect.Effect<void> =>
  millis(value).some((ms) => ms >= 0)
    ? Effect.void
    : refused(`${verb}: drain is ${String(value)}`, 'a duration from 0, like "25 seconds"')

/** An age, in ms. */
export const age = (field: string, value: Duration.Input): Effect.Effect<number, InputInvalid> => {
  const [ms] = millis(value).filter((ms) => ms >= 0 && ms < Infinity)
  return ms === undefined ? Input.invalid(field, value, 'a duration from 0, like "30 days"') : Effect.succeed(ms)
}

/** None for what is no duration; `Duration` takes NaN for 0. */
const millis = (value: Duration.Input): ReadonlyArray<number> =>
  Number.isNaN(value) ? [] : Option.toArray(Option.map(Duration.fromInput(value), Duration.toMillis))

const refused = (found: string, wanted: string): Effect.Effect<never> =>
  Effect.die(new RangeError(`${found}: it must be ${wanted}`))
