/**
 * `resume` goes on with a Run that rests, or whose process died.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Command from "effect/cli/Command"
import { NotRepaired, spoken } from "../Complaint.ts"
import * as Ending from "../Ending.ts"
import * as Layers from "../Layers.ts"
import * as Choice from "../model/Choice.ts"
import * as TerminalApprover from "../approval/TerminalApprover.ts"
import * as RunTests from "../RunTests.ts"
import * as Sandbox from "../Sandbox.ts"
import * as Drive from "../Drive.ts"
import { View } from "../View.ts"
import { printer, said } from "./Print.ts"
import * as Options from "./Options.ts"

export const resume = Command.make(
  "resume",
  {
    run: Options.run,
    dir: Options.dir,
    testLimit: Options.testLimit,
    testNetwork: Options.testNetwork,
    policy: Options.policy,
    newRules: Options.newRules,
    ...Options.model
  },
  ({ dir, newRules, policy: asked, run, testLimit, testNetwork, ...flags }) =>
    Effect.gen(function* () {
      const { json, store } = yield* Options.kept
      const model = yield* Choice.parse(flags)
      const policy = Option.getOrUndefined(yield* Options.file(asked))
      const folder = Option.getOrUndefined(yield* Options.located(dir))
      const ending = folder === undefined ? yield* Effect.provide(over(run), Layers.looking(store)) : undefined
      if (ending !== undefined) {
        const { line, repaired, status } = ending
        const print = yield* printer(json)
        yield* print(said(line, { _tag: "Over", runId: run, status, repaired }))
        return yield* repaired ? Effect.void : new NotRepaired()
      }
      return yield* Effect.provide(
        Drive.resume({ runId: run, store, model, folder, policy, newRules }),
        View.layer({ json })
      ).pipe(Effect.provideService(TerminalApprover.Asks, !json))
    }).pipe(
      Effect.provideService(RunTests.Limit, Duration.seconds(testLimit)),
      Effect.provideService(Sandbox.Network, testNetwork),
      spoken
    )
).pipe(
  Command.withDescription(
    "Go on with a Run that was interrupted, is paused, or whose process died: nothing that was done is done again. The model is the one that is named now. One that rests because no model answered goes on when its time has come; before, it says when that is. Of one that has ended and whose folder is gone it says what came of it. Exits as the demo does"
  )
)

const over = (runId: string) => Effect.andThen(Drive.rootOf(runId), Ending.found(runId))
