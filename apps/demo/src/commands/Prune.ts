/**
 * `prune` removes Runs that ended long ago.
 */
import { Run } from "@waystone/core"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { spoken, Unusable } from "../Complaint.ts"
import * as Layers from "../Layers.ts"
import { printer, said } from "./Print.ts"
import * as Options from "./Options.ts"

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
      const { json, store } = yield* Options.kept
      const duration = yield* parsed(olderThan)
      const print = yield* printer(json)
      const removed = yield* Effect.provide(Run.prune({ olderThan: duration }), Layers.looking(store))
      yield* print(
        said(`${removed} ${removed === 1 ? "run that has ended was" : "runs that have ended were"} removed.`, {
          _tag: "Pruned",
          removed
        })
      )
    }).pipe(spoken)
).pipe(
  Command.withDescription(
    "Remove Runs that have ended; others stay, however old they are, and damaged ones until Run.remove with force"
  ),
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
