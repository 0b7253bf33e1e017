/**
 * The verbs that look at Runs: `runs`, `show`, `events`.
 */
import { Run } from "@waystone/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Calls from "../Calls.ts"
import { spoken } from "../Complaint.ts"
import * as Services from "../Services.ts"
import * as Start from "../Start.ts"
import * as Status from "../Status.ts"
import { printer, said } from "./Print.ts"
import * as Shared from "./Shared.ts"
import * as Tables from "./Tables.ts"

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
      const { json, store } = yield* Shared.kept
      const print = yield* printer(json)
      const latest = yield* Effect.provide(listed(Option.getOrUndefined(status), limit), Services.looking(store))
      const now = yield* Clock.currentTimeMillis
      if (json)
        return yield* Effect.forEach(latest, (one) => print({ json: { _tag: "Run", ...one.info }, lines: () => [] }), {
          discard: true
        })
      if (latest.length === 0) return yield* print(said("There are no runs.", undefined))
      const rows = [Tables.heads, ...latest.map((one) => Tables.row(one, now))]
      return yield* print({ json: undefined, lines: () => Tables.table(rows) })
    }).pipe(spoken)
).pipe(
  Command.withDescription("List the Runs that are kept: id, status and what it waits for, agent, turns, age, folder"),
  Command.withExamples([
    { command: "npm run demo -- runs --status waiting", description: "Which Runs wait for somebody" }
  ])
)

/** The latest ones, latest first. A store lists the oldest first, so all pages are looked at. */
const listed = Effect.fnUntraced(function* (status: Status.Status | undefined, limit: number) {
  const filter = status === undefined ? {} : { status }
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
    Effect.map(Status.worded(info), (status): Tables.Listed => ({ info, status }))
  )
})

export const show = Command.make("show", { run: Shared.run }, ({ run }) =>
  Effect.gen(function* () {
    const { json, store } = yield* Shared.kept
    const print = yield* printer(json)
    const found = yield* Effect.provide(details(run), Services.looking(store))
    const now = yield* Clock.currentTimeMillis
    const { calls, info, task } = found
    yield* print({ json: { _tag: "Run", ...info, task, calls }, lines: Tables.detailed(found, now) })
  }).pipe(spoken)
).pipe(Command.withDescription("Show one Run: its task, what it waits for and since when, and what came of every call"))

const details = Effect.fnUntraced(function* (runId: string) {
  const info = yield* Run.get(runId)
  const entries = yield* Stream.runCollect(Run.events(runId, { follow: false }))
  const task = Status.taskOf((yield* Start.accepted(runId)).task)
  const calls = Calls.asked(entries.map(({ event }) => event))
  const found: Tables.Detailed = { info, status: yield* Status.worded(info), task, calls }
  return found
})

export const events = Command.make(
  "events",
  {
    run: Shared.run,
    follow: Flag.Boolean("follow").pipe(
      Flag.withAlias("f"),
      Flag.withDescription("Go on with what is committed later, by any process, until the Run has ended"),
      Flag.withDefault(false)
    ),
    after: Flag.Int("after").pipe(
      Flag.withMetavar("seq"),
      Flag.withDescription("Only events after this one"),
      Flag.filter(
        (n) => n >= 0,
        (n) => `events count from 1, so --after cannot be ${n}`
      ),
      Flag.withDefault(0)
    )
  },
  ({ after, follow, run }) =>
    Effect.gen(function* () {
      const { json, store } = yield* Shared.kept
      const print = yield* printer(json)
      const entries = follow ? followed(run, after) : Run.events(run, { after, follow: false })
      yield* Stream.runForEach(entries, ({ event, seq }) =>
        print({ json: { _tag: "Committed", seq, event }, lines: Tables.event(seq, event) })
      ).pipe(Effect.provide(Services.looking(store)))
    }).pipe(spoken)
).pipe(
  Command.withDescription("Print the stored events of a Run"),
  Command.withExamples([
    { command: "npm run demo -- events <run> --follow", description: "Watch a Run of another process" }
  ])
)

/** How often a Run that rests is asked whether it goes on. */
const pollEvery = "500 millis"

/** `Run.events` ends when the Run rests; this goes on until it has ended. */
const followed = (runId: string, after: number) => {
  let last = after
  const rest: Stream.Stream<
    Stream.Success<ReturnType<typeof Run.events>>,
    Run.EventsError,
    Effect.Services<ReturnType<typeof Run.get>>
  > = Stream.suspend(() =>
    Run.events(runId, { after: last }).pipe(
      Stream.tap(({ seq }) => Effect.sync(() => void (last = seq))),
      Stream.concat(
        Stream.unwrap(
          Effect.map(Run.get(runId), ({ seq, status }) =>
            Status.hasEnded(status) && seq <= last
              ? Stream.empty
              : Stream.unwrap(Effect.as(Effect.sleep(pollEvery), rest))
          )
        )
      )
    )
  )
  return rest
}
