/**
 * The options that every verb has, and what they mean.
 */
import * as Effect from "effect/Effect"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { Unusable } from "../Complaint.ts"
import * as Stores from "../Stores.ts"

export const flags = {
  store: Flag.Redacted("store").pipe(
    Flag.withMetavar("memory | file | redis://…"),
    Flag.withDescription(
      "Where Runs are kept: a SQLite file (by default one in your data folder), Redis (rediss:// for TLS), or memory"
    ),
    Flag.optional
  ),
  json: Flag.Boolean("json").pipe(
    Flag.withDescription("Print one JSON object a line; of a Run every committed event and every delta, as it happens"),
    Flag.withDefault(false)
  )
}

/** The demo without its verbs, by which they read the options before or after their name. */
const demo = Command.make("demo").pipe(Command.withSharedFlags(flags))

/** The options of a verb about Runs that other processes have made. */
export const kept = Effect.gen(function* () {
  const { json, store: asked } = yield* demo
  const store = yield* Stores.parse(asked)
  if (store._tag === "Memory") {
    return yield* new Unusable({
      message: "--store memory holds no run of another process: there is nothing to look for."
    })
  }
  return { json, store }
})

export const run = Argument.String("run").pipe(Argument.withDescription("The id of a Run, as `runs` lists it"))
