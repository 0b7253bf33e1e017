/**
 * Looks from time to time at the Runs that wait, and says how many there are of each kind and how old the oldest is.
 *
 * @since 0.1.0
 */
import type { Meter } from "@opentelemetry/api"
import { type CheckpointStore, type Outcome, Run } from "@waystone/core"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"

/** Waiting Runs that are looked at each time: more are not told apart from this many. */
const most = 10_000
const page = 500

const kinds: ReadonlyArray<Outcome.Waiting["kind"]> = ["approval", "external", "in-doubt", "paused", "retry"]

const waiting = Effect.gen(function* () {
  const found: Array<Run.RunInfo> = []
  while (found.length < most) {
    const last = found.at(-1)
    const next = yield* Run.list({
      status: "waiting",
      limit: page,
      ...(last === undefined ? undefined : { after: { runId: last.runId, updatedAt: last.updatedAt } })
    })
    for (const one of next) found.push(one)
    if (next.length < page) break
  }
  return found
})

/** Goes on until it is interrupted; a store that is away is asked again next time. */
export const watch = (
  meter: Meter,
  every: Duration.Input
): Effect.Effect<void, never, CheckpointStore.CheckpointStore> => {
  const count = meter.createGauge("waystone.runs.waiting", { unit: "{run}", description: "Runs that wait, by kind." })
  const age = meter.createGauge("waystone.runs.waiting.age", {
    unit: "s",
    description: "Age of the oldest wait of a kind."
  })
  const look = Effect.gen(function* () {
    const runs = yield* waiting
    const now = yield* Clock.currentTimeMillis
    for (const kind of kinds) {
      const since = runs.flatMap((run) => run.waiting.filter((wait) => wait.kind === kind).map((wait) => wait.since))
      const about = { "waystone.wait.kind": kind }
      count.record(runs.filter((run) => run.waiting.some((wait) => wait.kind === kind)).length, about)
      age.record(since.length === 0 ? 0 : Math.max(0, now - since.reduce((a, b) => Math.min(a, b))) / 1000, about)
    }
  })
  const looked = Effect.catch(look, (error) => Effect.logDebug("Waiting Runs could not be listed.", error))
  return Effect.asVoid(Effect.repeat(looked, Schedule.spaced(every)))
}
