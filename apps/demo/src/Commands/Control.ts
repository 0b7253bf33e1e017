/**
 * The verbs that speak to Runs from outside: `pause`, `cancel`, `prune`.
 */
import { Run } from "@waystone/core"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { spoken, Unusable } from "../Complaint.ts"
import * as Project from "../Project.ts"
import * as Services from "../Services.ts"
import * as Start from "../Start.ts"
import * as Status from "../Status.ts"
import { Keeping } from "../Stores.ts"
import { printer, said } from "./Print.ts"
import * as Shared from "./Shared.ts"

export const pause = Command.make("pause", { run: Shared.run }, ({ run }) =>
  Effect.gen(function* () {
    const { json, store } = yield* Shared.kept
    const print = yield* printer(json)
    const { command, driver } = yield* Effect.gen(function* () {
      yield* Run.pause({ runId: run })
      return { driver: yield* Status.driver(yield* Run.get(run)), command: (yield* Keeping).command }
    }).pipe(Effect.provide(Services.looking(store)))
    const goOn = command(`resume ${run}`)
    const when = driver === undefined ? "is paused" : "rests as soon as what it does now is done"
    yield* print(said(`Run ${run} ${when}. To go on: ${goOn}`, { _tag: "Paused", runId: run, goOn }))
  }).pipe(spoken)
).pipe(Command.withDescription("Make a Run rest, whoever drives it, until it is resumed"))

export const cancel = Command.make(
  "cancel",
  { run: Shared.run, reason: Flag.String("reason").pipe(Flag.withDescription("Why; it is recorded"), Flag.optional) },
  ({ reason, run }) =>
    Effect.gen(function* () {
      const { json, store } = yield* Shared.kept
      const print = yield* printer(json)
      const before = yield* Effect.provide(cancelled(run, Option.getOrUndefined(reason)), Services.looking(store))
      if (before.leftover) {
        // Nobody drives it, so this process does, for the last time.
        yield* Effect.ignore(Start.finish({ runId: run, store }))
      }
      const { driver, info } = yield* Effect.provide(after(run), Services.looking(store))
      const ended = Status.hasEnded(info.status)
      const line = ended
        ? `Run ${run} is ${info.status}.`
        : driver === undefined
          ? `Run ${run} is to be cancelled; nobody drives it, and it ends when somebody resumes it.`
          : `Run ${run} is being cancelled: whoever drives it ends it within a second.`
      yield* print(said(line, { _tag: "Cancelled", runId: run, status: info.status }))
    }).pipe(spoken)
).pipe(
  Command.withDescription("End a Run for good, whoever drives it: what runs is interrupted, nothing more is started")
)

const cancelled = Effect.fnUntraced(function* (runId: string, reason: string | undefined) {
  const before = yield* Run.get(runId)
  if (before.status === "completed" || before.status === "cancelled") {
    return yield* new Unusable({ message: `run ${runId} is ${before.status}: there is nothing to cancel.` })
  }
  yield* Run.cancel({ runId, ...(reason === undefined ? {} : { reason }) })
  const { driver, info } = yield* after(runId)
  return { leftover: driver === undefined && !Status.hasEnded(info.status) }
})

/** How it stands now; the temporary copy of a Run that has ended goes. */
const after = Effect.fnUntraced(function* (runId: string) {
  const info = yield* Run.get(runId)
  const driver = yield* Status.driver(info)
  if (Status.hasEnded(info.status) && info.session !== undefined) yield* Project.discard(info.session, runId)
  return { info, driver }
})

export const prune = Command.make(
  "prune",
  {
    olderThan: Flag.String("older-than").pipe(
      Flag.withMetavar("duration"),
      Flag.withDescription('Only Runs that nothing happened to for so long, such as "12 hours" or "30 days"'),
      Flag.withDefault("30 days")
    )
  },
  ({ olderThan }) =>
    Effect.gen(function* () {
      const { json, store } = yield* Shared.kept
      const duration = yield* parsed(olderThan)
      const print = yield* printer(json)
      const removed = yield* Effect.provide(Run.prune({ olderThan: duration }), Services.looking(store))
      yield* print(
        said(`${removed} ${removed === 1 ? "run that has ended was" : "runs that have ended were"} removed.`, {
          _tag: "Pruned",
          removed
        })
      )
    }).pipe(spoken)
).pipe(
  Command.withDescription("Remove Runs that have ended; others stay, however old they are"),
  Command.withExamples([
    { command: 'npm run demo -- prune --older-than "1 hour"', description: "Keep only the latest" }
  ])
)

const shape = /^(\d+(?:\.\d+)?) ?(millis|seconds?|minutes?|hours?|days?|weeks?)$/

const parsed = (text: string): Effect.Effect<Duration.Duration, Unusable> => {
  const [, amount, unit] = shape.exec(text.trim()) ?? []
  const millis = Number(amount) * (sizes.get(unit?.replace(/s$/, "") ?? "") ?? Number.NaN)
  return Number.isFinite(millis)
    ? Effect.succeed(Duration.millis(millis))
    : Effect.fail(
        new Unusable({ message: `--older-than is a duration such as "30 days" or "12 hours", not "${text}".` })
      )
}

const sizes: ReadonlyMap<string, number> = new Map([
  ["milli", 1],
  ["second", 1_000],
  ["minute", 60_000],
  ["hour", 3_600_000],
  ["day", 86_400_000],
  ["week", 604_800_000]
])
