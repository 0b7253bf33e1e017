/**
 * The verbs that go on with a Run: `resume` with the same one, `fork` with a new one that begins like it.
 */
import { Run } from "@waystone/core"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as WebCrypto from "effect/crypto/WebCrypto"
import { spoken, Unusable } from "../Complaint.ts"
import * as RunTests from "../RunTests.ts"
import * as Services from "../Services.ts"
import * as Start from "../Start.ts"
import * as Stores from "../Stores.ts"
import { View } from "../View.ts"
import { printer } from "./Print.ts"
import * as Shared from "./Shared.ts"

const dir = Flag.String("dir").pipe(
  Flag.withMetavar("folder"),
  Flag.withDescription("Work on this folder instead of the one that the Run began on"),
  Flag.optional
)

export const testLimit = Flag.Int("test-limit").pipe(
  Flag.withMetavar("seconds"),
  Flag.withDescription("How long a run of the project's tests may take before it is killed"),
  Flag.filter(
    (n) => n >= 1 && n <= Duration.toSeconds(RunTests.maxLimit),
    (n) => `the tests may take 1 to ${Duration.toSeconds(RunTests.maxLimit)} seconds, not ${n}`
  ),
  Flag.withDefault(120)
)

export const resume = Command.make("resume", { run: Shared.run, dir, testLimit }, ({ dir, run, testLimit }) =>
  Effect.gen(function* () {
    const { json, store } = yield* Shared.kept
    const folder = Option.getOrUndefined(yield* located(dir))
    yield* Effect.provide(Start.resume({ runId: run, store, folder }), View.layer({ json }))
  }).pipe(Effect.provideService(RunTests.Limit, Duration.seconds(testLimit)), spoken)
).pipe(
  Command.withDescription(
    "Go on with a Run that was interrupted, is paused, or whose process died: nothing that was done is done again. Exits as the demo does"
  )
)

/** The real path of a folder; npm runs scripts in the package's folder and says where the user was. */
const located = Effect.fnUntraced(function* (dir: Option.Option<string>) {
  if (Option.isNone(dir)) return Option.none<string>()
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const folder = paths.resolve(process.env["INIT_CWD"] ?? ".", dir.value)
  const missing = new Unusable({ message: `There is no folder ${dir.value}.` })
  const info = yield* Effect.mapError(fs.stat(folder), () => missing)
  if (info.type !== "Directory") return yield* new Unusable({ message: `${dir.value} is not a folder.` })
  return Option.some(yield* Effect.mapError(fs.realPath(folder), () => missing))
})

export const fork = Command.make(
  "fork",
  {
    run: Shared.run,
    at: Flag.Int("at").pipe(
      Flag.withMetavar("seq"),
      Flag.withDescription("The checkpoint to begin after: the end of an append (default: the last one)"),
      Flag.optional
    ),
    dir
  },
  ({ at, dir, run }) =>
    Effect.gen(function* () {
      const { json, store } = yield* Shared.kept
      const print = yield* printer(json)
      const folder = Option.getOrUndefined(yield* located(dir))
      if (folder !== undefined) yield* Stores.outside(store, folder)
      const made = yield* Effect.provide(forked(run, Option.getOrUndefined(at)), Services.looking(store))
      const { command, id, session } = made
      const goOn = command(`resume ${id}${folder === undefined ? "" : ` --dir ${Stores.quoted(folder)}`}`)
      yield* print({
        json: { _tag: "Forked", runId: id, from: { runId: run, seq: made.at }, folder: folder ?? session, goOn },
        lines: ({ bold }) => [
          `New run: ${bold(id)}, which begins like ${run} up to event ${made.at}.`,
          `It works on ${folder ?? session ?? "an unknown folder"}, whose files are as they are now, not as they were then.`,
          `To drive it: ${goOn}`
        ]
      })
    }).pipe(spoken)
).pipe(
  Command.withDescription(
    "Make a new Run from the first events of another. It must be driven by resume; give a fork of the bundled project a folder of its own, whose copy is removed when the first Run ends"
  )
)

/** So many checkpoints near the one that was asked for are offered. */
const offered = 12

const forked = Effect.fnUntraced(function* (runId: string, at: number | undefined) {
  const { seq, session } = yield* Run.get(runId)
  const id = `demo-${yield* WebCrypto.WebCrypto.use((crypto) => Effect.sync(() => crypto.randomUUID()))}`
  const made = yield* Effect.result(Run.fork({ runId, id, at: at ?? seq }))
  if (made._tag === "Success") return { id, at: at ?? seq, session, command: (yield* Stores.Keeping).command }
  if (made.failure.reason._tag !== "CheckpointNotFound") return yield* made.failure
  const wanted = at ?? seq
  const ends = yield* Run.checkpoints(runId)
  const near = ends
    .toSorted((a, b) => Math.abs(a - wanted) - Math.abs(b - wanted))
    .slice(0, offered)
    .toSorted((a, b) => a - b)
  return yield* new Unusable({
    message: `run ${runId} has no checkpoint at ${wanted}: a fork begins at the end of an append${near.length < ends.length ? ", of which the nearest are" : ":"} ${near.join(", ")}.`
  })
})
