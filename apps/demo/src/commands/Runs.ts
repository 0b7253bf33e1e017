/**
 * `runs` lists the Runs that are kept.
 */
import { Run } from "@waystone/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { spoken } from "../Complaint.ts"
import * as Layers from "../Layers.ts"
import * as Stores from "../Stores.ts"
import * as Status from "../Status.ts"
import { printer, said } from "./Print.ts"
import * as Options from "./Options.ts"
import * as Words from "./Words.ts"

const maxRuns = 1_000

export const runs = Command.make(
  "runs",
  {
    status: Flag.Literals("status", Status.all).pipe(Flag.withDescription("Only Runs of this status"), Flag.optional),
    limit: Flag.Int("limit").pipe(
      Flag.withDescription("At most so many, the latest ones"),
      Flag.filter(
        (n) => n >= 1 && n <= maxRuns,
        (n) => `1 to ${maxRuns} runs can be listed, not ${n}`
      ),
      Flag.withDefault(20)
    )
  },
  ({ limit, status }) =>
    Effect.gen(function* () {
      const { json, store } = yield* Options.kept
      const print = yield* printer(json)
      const { latest, notYet } = yield* Effect.provide(
        Effect.all({
          latest: listed(Option.getOrUndefined(status), limit),
          notYet: Effect.map(Stores.Keeping, ({ notYet }) => notYet)
        }),
        Layers.looking(store)
      )
      const now = yield* Clock.currentTimeMillis
      if (json)
        return yield* Effect.forEach(latest, (one) => print({ json: { _tag: "Run", ...one.info }, lines: () => [] }), {
          discard: true
        })
      if (notYet !== undefined) {
        return yield* print(said(`There are no runs yet: the first one makes ${notYet}.`, undefined))
      }
      if (latest.length === 0) return yield* print(said("There are no runs.", undefined))
      const rows = [Words.heads, ...latest.map((one) => Words.row(one, now))]
      return yield* print({ json: undefined, lines: () => Words.table(rows) })
    }).pipe(spoken)
).pipe(
  Command.withDescription(
    "List the Runs that are kept: id, status and what it waits for, agent, turns, age, folder. Those of workers stand in `show` of their root"
  ),
  Command.withExamples([
    { command: "npm run demo -- runs --status waiting", description: "Which Runs wait for somebody" }
  ])
)

/** The latest ones, latest first; those of workers are told of by `show` of their root. A store lists the oldest first, so all pages are looked at. */
const listed = Effect.fnUntraced(function* (status: Status.Status | undefined, limit: number) {
  const filter = { parent: null, ...(status === undefined ? undefined : { status }) }
  let latest: ReadonlyArray<Run.RunInfo> = []
  let after: Run.ListInput["after"]
  while (true) {
    const page = yield* Run.list({ ...filter, limit: maxRuns, ...(after === undefined ? {} : { after }) })
    latest = [...latest, ...page].slice(-limit)
    const last = page.at(-1)
    if (last === undefined || page.length < maxRuns) break
    after = { runId: last.runId, updatedAt: last.updatedAt }
  }
  return yield* Effect.forEach(latest.toReversed(), (info) =>
    Effect.map(Status.worded(info), (status): Words.Listed => ({ info, status }))
  )
})
