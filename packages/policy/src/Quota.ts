/**
 * Limits how many model calls a principal makes in a time, over all of its Runs.
 *
 * Counting is effect's RateLimiter's business: its store in memory counts for one process, the one on Redis for all that
 * share it. Runs without a principal share one quota. A model call is counted when it is proposed, also if another guard
 * then refuses it. Nothing of the count is in the journal, since it is not about one Run; what the guard said is.
 *
 * Invariants
 *   QU1  A quota that cannot be looked up refuses.
 *   QU2  A Step that is judged again since it was nudged is counted once.
 *
 * @since 0.1.0
 */
import { Guard, Plugin, type RunEvent, type RunState } from "@waystone/core"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as RateLimiter from "effect/persistence/RateLimiter"
import type { OptionsInvalid } from "./OptionsInvalid.ts"
import * as Settings from "./Settings.ts"

export const Options = Schema.Struct({
  /** Model calls of one principal in one `window`. */
  turns: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
  /** Seconds. Default 60: providers count by the minute. */
  windowSeconds: Schema.optionalKey(Schema.Finite.check(Schema.isGreaterThan(0))),
  /**
   * Seconds that a Run may wait for its turn, at most. Default 30: half a window. A Run that would have to wait longer is
   * Stopped(Denied) and can be reopened. The wait counts as active time.
   */
  maxWaitSeconds: Schema.optionalKey(Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0)))
})
export type Options = typeof Options.Type

/** The options that hold where none are given. */
export const defaults = { windowSeconds: 60, maxWaitSeconds: 30 } as const satisfies Partial<Options>

const name = "quota"

/** A Quota that an agent can require. */
export class Quota extends Context.Service<Quota, Plugin.Plugin>()("@waystone/policy/Quota") {}

/** Switches it on. Fails with an OptionsInvalid that names the field if the options are not what they should be. */
export const layer = (options: Options): Layer.Layer<Quota, OptionsInvalid, RateLimiter.RateLimiter> =>
  Layer.effect(
    Quota,
    Effect.gen(function* () {
      const decoded = yield* Settings.decode("Quota", Options, options)
      const limiter = yield* RateLimiter.RateLimiter
      return { [Plugin.PluginId]: { name, guards: [guard({ ...defaults, ...decoded }, limiter)] } }
    })
  )

/** True if the next model call is counted already: its Step was nudged, and is judged again with what it is told. */
type Counted = boolean

const fold = (counted: Counted, event: RunEvent.RunEvent): Counted => {
  switch (event._tag) {
    case "VerdictGiven":
      return counted || event.verdict === "Nudge"
    case "TurnStarted":
    case "AttemptStarted": // what was counted may be long ago
      return false
    default:
      return counted
  }
}

const guard = (settings: Required<Options>, limiter: RateLimiter.RateLimiter): Guard.Guard =>
  Guard.make<Counted>({
    name,
    stage: "budget",
    initial: false,
    fold,
    check: ({ memory, proposal, state }) =>
      proposal._tag === "Step" && !memory ? checkStep(settings, limiter, state) : Guard.allow
  })

const checkStep = (
  { maxWaitSeconds, turns, windowSeconds }: Required<Options>,
  limiter: RateLimiter.RateLimiter,
  state: RunState.RunState
): Effect.Effect<Guard.Verdict> => {
  const { principal } = state
  const key = `waystone/quota/${principal === undefined ? "nobody" : `principal/${principal.id}`}`
  const refused = (retryAfter: Duration.Duration): Guard.Verdict =>
    Guard.stop(
      `the quota of ${turns} model calls in ${windowSeconds} s is used up; free in ${Duration.format(retryAfter)}`
    )
  const consume = limiter.consume({
    key,
    algorithm: "fixed-window",
    onExceeded: "fail",
    window: Duration.seconds(windowSeconds),
    limit: turns
  })
  const patient = (waited: number): Effect.Effect<Guard.Verdict> =>
    Effect.matchEffect(consume, {
      onSuccess: () => Effect.succeed(Guard.allow),
      onFailure: ({ reason }) => {
        if (reason._tag !== "RateLimitExceeded")
          return Effect.succeed(Guard.stop("the quota cannot be looked up, so nothing is asked of the model"))
        const wait = Duration.max(reason.retryAfter, Duration.millis(1))
        const total = waited + Duration.toSeconds(wait)
        return total > maxWaitSeconds
          ? Effect.succeed(refused(wait))
          : Effect.andThen(Effect.sleep(wait), patient(total))
      }
    })
  return patient(0)
}
