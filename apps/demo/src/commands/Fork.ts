/**
 * `fork` makes a new Run that begins like another one, on a folder of its own.
 */
import { Run } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { spoken, Unusable } from "../Complaint.ts"
import * as Drive from "../Drive.ts"
import * as Layers from "../Layers.ts"
import * as Project from "../Project.ts"
import { newRunId } from "../RunId.ts"
import { completed } from "../scenario/Claims.ts"
import * as Stores from "../Stores.ts"
import * as Options from "./Options.ts"
import { printer } from "./Print.ts"

export const fork = Command.make(
  "fork",
  {
    run: Options.run,
    at: Flag.Int("at").pipe(
      Flag.withMetavar("seq"),
      Flag.withDescription(
        "The checkpoint to begin after: the end of an append (default: the last one at which no call was running)"
      ),
      Flag.optional
    ),
    dir: Options.dir
  },
  ({ at, dir, run }) =>
    Effect.gen(function* () {
      const { json, store } = yield* Options.kept
      const print = yield* printer(json)
      const named = Option.getOrUndefined(yield* Options.located(dir))
      if (named !== undefined) yield* Stores.outside(store, named)
      const made = yield* Effect.provide(
        forked({ runId: run, at: Option.getOrUndefined(at), named }),
        Layers.looking(store)
      )
      const { folder, id } = made
      const goOn = made.command(`resume ${id}`)
      yield* print({
        json: { _tag: "Forked", runId: id, from: { runId: run, seq: made.at }, folder, goOn },
        lines: ({ bold }) => [
          `New run: ${bold(id)}, which begins like ${run} up to event ${made.at}.`,
          `It works on ${folder}${named === undefined ? ", a copy" : ""}; its files are as they are now, not as they were then.`,
          `To drive it: ${goOn}`
        ]
      })
    }).pipe(spoken)
).pipe(
  Command.withDescription(
    "Make a new Run from the first events of another. It works on a copy of the folder as it is now, or on --dir; resume drives it"
  ),
  Command.withExamples([
    { command: "npm run demo -- fork <run>", description: "Try again, beside a Run that was interrupted" },
    {
      command: "npm run demo -- fork <run> --at 4 --dir ../my-project",
      description: "Let it begin after event 4 of any Run, in place on that folder"
    }
  ])
)

interface Wanted {
  readonly runId: string
  readonly at: number | undefined
  /** The folder that the user named. */
  readonly named: string | undefined
}

const forked = Effect.fnUntraced(function* ({ at: asked, named, runId }: Wanted) {
  const { session } = (yield* Drive.agentOf(runId)).info
  const at = yield* asked === undefined ? settled(runId) : checkpoint(runId, asked)
  const id = yield* newRunId
  const { folder, remove } = yield* named === undefined
    ? copied(id, runId, session)
    : Effect.succeed({ folder: named, remove: Effect.void })
  yield* Effect.onError(Run.fork({ runId, id, at, session: folder }), () => remove)
  const { command } = yield* Stores.Keeping
  return { id, at, folder, command }
})

const copied = Effect.fnUntraced(function* (id: string, runId: string, folder: string | undefined) {
  if (folder === undefined || !(yield* Project.isThere(folder))) {
    const what = folder === undefined ? "it does not say on which folder it works" : `its folder ${folder} is gone`
    return yield* new Unusable({
      message: `run ${runId} cannot be forked on a copy: ${what}. The copy of the bundled project goes when its run has ended; name a folder by --dir.`
    })
  }
  return yield* Project.copyFor(id, { runId, folder })
})

/** So many checkpoints near the one that was asked for are offered. */
const offered = 12

/** The last checkpoint before any call that has started and has no result: in a fork such a call would be in doubt. */
const settled = Effect.fnUntraced(function* (runId: string) {
  const entries = yield* Stream.runCollect(Run.events(runId, { follow: false }))
  const done = new Set(completed(entries.map(({ event }) => event)).map(({ callId }) => callId))
  const open = entries.find(({ event }) => event._tag === "ToolCallStarted" && !done.has(event.callId))
  const end = open?.seq ?? Number.POSITIVE_INFINITY
  const ends = yield* Run.checkpoints(runId)
  return ends.findLast((seq) => seq < end) ?? 1
})

const checkpoint = Effect.fnUntraced(function* (runId: string, at: number) {
  const ends = yield* Run.checkpoints(runId)
  if (ends.includes(at)) return at
  const near = ends
    .toSorted((a, b) => Math.abs(a - at) - Math.abs(b - at))
    .slice(0, offered)
    .toSorted((a, b) => a - b)
  return yield* new Unusable({
    message: `run ${runId} has no checkpoint at ${at}: a fork begins at the end of an append${near.length < ends.length ? ", of which the nearest are" : ":"} ${near.join(", ")}.`
  })
})
