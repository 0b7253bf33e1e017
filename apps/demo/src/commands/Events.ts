/**
 * `events` prints the journal of a Run, and follows it where somebody drives it.
 */
import { Run } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { spoken } from "../Complaint.ts"
import * as Layers from "../Layers.ts"
import * as Status from "../Status.ts"
import { printer } from "./Print.ts"
import * as Options from "./Options.ts"
import * as Words from "./Words.ts"

export const events = Command.make(
  "events",
  {
    run: Options.run,
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
      const { json, store } = yield* Options.kept
      const print = yield* printer(json)
      const entries = follow ? followed(run, after) : Run.events(run, { after, follow: false })
      yield* Stream.runForEach(entries, ({ event, seq }) =>
        print({ json: { _tag: "Committed", seq, event }, lines: Words.event(seq, event) })
      ).pipe(Effect.provide(Layers.looking(store)))
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
