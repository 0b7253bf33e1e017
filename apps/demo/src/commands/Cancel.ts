/**
 * `cancel` ends a Run for good, whoever drives it.
 */
import { Run } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { spoken, Unusable } from "../Complaint.ts"
import * as Project from "../Project.ts"
import * as Layers from "../Layers.ts"
import * as Drive from "../Drive.ts"
import * as Status from "../Status.ts"
import { Keeping } from "../Stores.ts"
import { printer, said } from "./Print.ts"
import * as Options from "./Options.ts"

export const cancel = Command.make(
  "cancel",
  { run: Options.run, reason: Flag.String("reason").pipe(Flag.withDescription("Why; it is recorded"), Flag.optional) },
  ({ reason, run }) =>
    Effect.gen(function* () {
      const { json, store } = yield* Options.kept
      const print = yield* printer(json)
      const before = yield* Effect.provide(cancelled(run, Option.getOrUndefined(reason)), Layers.watched(store))
      if (before.leftover) {
        // Nobody drives it, so this process does, for the last time.
        yield* Drive.finish({ runId: run, store })
      }
      const { command, driver, info } = yield* Effect.provide(after(run), Layers.looking(store))
      const ended = Status.hasEnded(info.status)
      const line = ended
        ? `Run ${run} is ${info.status}.`
        : driver === undefined
          ? `Run ${run} is to be cancelled; nobody drives it, and it ends when somebody resumes it: ${command(`resume ${run}`)}`
          : `Run ${run} is being cancelled: whoever drives it ends it within a second.`
      yield* print(said(line, { _tag: "Cancelled", runId: run, status: info.status }))
    }).pipe(spoken)
).pipe(
  Command.withDescription("End a Run for good, whoever drives it: what runs is interrupted, nothing more is started")
)

const cancelled = Effect.fnUntraced(function* (runId: string, reason: string | undefined) {
  const before = yield* Drive.rootOf(runId)
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
  const { command } = yield* Keeping
  return { info, driver, command }
})
