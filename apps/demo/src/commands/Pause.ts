/**
 * `pause` makes a Run rest, whoever drives it.
 */
import { Run } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import { spoken } from "../Complaint.ts"
import * as Layers from "../Layers.ts"
import * as Status from "../Status.ts"
import { Keeping } from "../Stores.ts"
import { printer, said } from "./Print.ts"
import * as Options from "./Options.ts"

export const pause = Command.make("pause", { run: Options.run }, ({ run }) =>
  Effect.gen(function* () {
    const { json, store } = yield* Options.kept
    const print = yield* printer(json)
    const { command, driver } = yield* Effect.gen(function* () {
      yield* Run.pause({ runId: run })
      return { driver: yield* Status.driver(yield* Run.get(run)), command: (yield* Keeping).command }
    }).pipe(Effect.provide(Layers.looking(store)))
    const goOn = command(`resume ${run}`)
    const when = driver === undefined ? "is paused" : "rests as soon as what it does now is done"
    yield* print(said(`Run ${run} ${when}. To go on: ${goOn}`, { _tag: "Paused", runId: run, goOn }))
  }).pipe(spoken)
).pipe(Command.withDescription("Make a Run rest, whoever drives it, until it is resumed"))
