/**
 * The command line of the demo.
 */
import { type Agent, MemoryStore } from "@waystone/core"
import { CommandRunner, type FileError, FileTools, Folder } from "@waystone/tools"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { FileSystem } from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Runtime from "effect/Runtime"
import * as Schema from "effect/Schema"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as WebCrypto from "effect/crypto/WebCrypto"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import { repairer, type Repairer, task as repairTask } from "./Agent.ts"
import * as Bugs from "./Bugs.ts"
import * as Demo from "./Demo.ts"
import * as OfflineModel from "./model/OfflineModel.ts"
import { Project, type ProjectUnusable, type Source } from "./Project.ts"
import * as RunTests from "./RunTests.ts"
import * as Scenario from "./Scenario.ts"
import { View } from "./View.ts"

/** The project is not repaired, or the scenario is not proven. Everything was said, so it is not reported again. */
export class NotRepaired extends Schema.TaggedError<NotRepaired>()("NotRepaired", {}) {
  override readonly [Runtime.errorExitCode] = 1
  override readonly [Runtime.errorReported] = false
}

/** Options that do not go together. */
export class Unusable extends Schema.TaggedError<Unusable>()("Unusable", { message: Schema.String }) {}

type Platform = FileSystem | Path.Path | ChildProcessSpawner
type Services = Agent.Services<Repairer> | CommandRunner.CommandRunner | Folder.Folder | Project

/** Everything that a Run needs, with what the scenario does to it. */
export const services = (
  source: Source,
  scenario?: Scenario.Scenario
): Layer.Layer<
  Services,
  PlatformError | ProjectUnusable | FileError.FolderUnavailable | CommandRunner.CommandOptionsInvalid,
  Platform
> => {
  const folder = Layer.unwrap(Project.use(({ folder }) => Effect.succeed(Folder.layer(folder))))
  const wrapped = Layer.merge(
    changed(Folder.Folder, folder, scenario?.folder),
    changed(CommandRunner.CommandRunner, CommandRunner.CommandRunner.layer(), scenario?.runner)
  )
  return Layer.mergeAll(FileTools.layer, RunTests.layer, OfflineModel.layer(scenario?.disturb), MemoryStore.layer).pipe(
    Layer.provideMerge(wrapped),
    Layer.provideMerge(Project.layer(source))
  )
}

/** The service of a layer, with something done to it. */
const changed = <I, S, E, R>(
  key: Context.Key<I, S>,
  layer: Layer.Layer<I, E, R>,
  change: (service: S) => Effect.Effect<S> = Effect.succeed
): Layer.Layer<I, E, R> =>
  Layer.effect(
    key,
    Effect.flatMap(Layer.build(layer), (context) => change(Context.get(context, key)))
  )

export interface Wanted {
  readonly source: Source
  readonly task?: string
  readonly scenario?: Scenario.Scenario
}

/** Runs the demo on what is provided; fails if the project is not repaired, or the scenario is not proven. */
export const run = Effect.fnUntraced(function* ({
  scenario,
  task = repairTask
}: Omit<Wanted, "source">): Effect.fn.Return<void, Demo.DemoError | NotRepaired, Demo.Services> {
  const crypto = yield* WebCrypto.WebCrypto
  const agent = repairer(scenario?.firstPart)
  const good = yield* Demo.run({ agent, runId: `demo-${crypto.randomUUID()}`, task, scenario })
  if (!good) return yield* new NotRepaired()
})

const config = {
  dir: Flag.String("dir").pipe(
    Flag.withMetavar("folder"),
    Flag.withDescription("Work on this folder instead of the bundled project: in place, unless --copy is given"),
    Flag.optional
  ),
  copy: Flag.Boolean("copy").pipe(
    Flag.withDescription("Work on a copy of --dir, which is kept; installed packages are linked, not copied"),
    Flag.withDefault(false)
  ),
  bug: Flag.Int("bug").pipe(
    Flag.withMetavar("1-4"),
    Flag.withDescription(
      `Plant another bug into the bundled project: ${Bugs.planted.map(({ title }, i) => `${i + 1} ${title}`).join("; ")} (4 is beyond the offline model)`
    ),
    Flag.filter(
      (n) => n >= 1 && n <= Bugs.planted.length,
      (n) => `there are bugs 1 to ${Bugs.planted.length}, not ${n}`
    ),
    Flag.optional
  ),
  scenario: Flag.Literals("scenario", Scenario.names).pipe(
    Flag.withDescription(
      `Put the agent in a situation and prove from its journal what came of it: ${Scenario.names.map((name) => `${name} (${Scenario.get(name).says})`).join("; ")}`
    ),
    Flag.optional
  ),
  testLimit: Flag.Int("test-limit").pipe(
    Flag.withMetavar("seconds"),
    Flag.withDescription("How long a run of the project's tests may take before it is killed"),
    Flag.filter(
      (n) => n >= 1 && n <= Duration.toSeconds(RunTests.maxLimit),
      (n) => `the tests may take 1 to ${Duration.toSeconds(RunTests.maxLimit)} seconds, not ${n}`
    ),
    Flag.withDefault(Duration.toSeconds(RunTests.Limit.defaultValue()))
  ),
  json: Flag.Boolean("json").pipe(
    Flag.withDescription("Print every committed event and every delta as one JSON object a line, as it happens"),
    Flag.withDefault(false)
  ),
  task: Argument.String("task").pipe(
    Argument.withDescription("What to do, with --dir. The offline model can only repair what tests say is wrong"),
    Argument.optional
  )
}

interface Flags {
  readonly dir: Option.Option<string>
  readonly copy: boolean
  readonly bug: Option.Option<number>
  readonly scenario: Option.Option<Scenario.Scenario["name"]>
  readonly task: Option.Option<string>
}

/** What the options ask for, or why they do not go together. */
const wanted = Effect.fnUntraced(function* ({ bug, copy, dir, scenario, task }: Flags) {
  const paths = yield* Path.Path
  const about = {
    ...Option.match(task, { onNone: () => undefined, onSome: (task) => ({ task }) }),
    ...Option.match(scenario, { onNone: () => undefined, onSome: (name) => ({ scenario: Scenario.get(name) }) })
  }
  const bundledOnly = Option.isSome(bug) ? "--bug" : Option.isSome(scenario) ? "--scenario" : undefined
  if (Option.isSome(dir)) {
    if (dir.value.trim() === "") return yield* new Unusable({ message: "--dir is empty: name a folder." })
    if (bundledOnly !== undefined) {
      return yield* new Unusable({ message: `${bundledOnly} is for the bundled project: leave out --dir.` })
    }
    // npm runs scripts in the package's folder and says where the user was.
    const folder = paths.resolve(process.env["INIT_CWD"] ?? ".", dir.value)
    const found: Wanted = { source: { _tag: copy ? "Copy" : "InPlace", folder }, ...about }
    return found
  }
  if (copy) return yield* new Unusable({ message: "--copy needs --dir: the bundled project is always copied." })
  if (Option.isSome(task))
    return yield* new Unusable({ message: "A task needs --dir: the bundled project has its own." })
  const planted = Option.flatMap(bug, (n) => Option.fromUndefinedOr(Bugs.planted[n - 1]))
  const found: Wanted = {
    source: { _tag: "Bundled", ...Option.match(planted, { onNone: () => undefined, onSome: (bug) => ({ bug }) }) },
    ...about
  }
  return found
})

/** Says on standard error what is wrong, in a line and without a stack. */
const complain = Effect.fnUntraced(function* (message: string) {
  const stdio = yield* Stdio.Stdio
  yield* Effect.ignore(Stream.run(Stream.succeed(`demo: ${message}\n`), stdio.stderr()))
  return yield* new NotRepaired()
})

export const demo = Command.make("demo", config, ({ json, testLimit, ...flags }) =>
  Effect.flatMap(wanted(flags), (wanted) =>
    Effect.provide(run(wanted), [services(wanted.source, wanted.scenario), View.layer({ json })])
  ).pipe(
    Effect.provideService(RunTests.Limit, Duration.seconds(testLimit)),
    Effect.catchIf(
      (error) => error._tag !== "NotRepaired" && error._tag !== "OutputClosed",
      ({ message }) => complain(message)
    )
  )
).pipe(
  Command.withDescription(
    "An agent that lists, reads, searches, edits and tests repairs a small Node project with a bug, or yours. No key and no " +
      "network are needed: the model's words are scripted, and the script reacts to what the tools return. Files, " +
      "tests, loop and events are real. Exits with 0 only if the project's tests pass afterwards (and the scenario is proven)."
  ),
  Command.withExamples([
    { command: "npm run demo", description: "Watch it" },
    { command: "npm run demo -- --bug 4", description: "See it fail honestly" },
    { command: "npm run demo -- --scenario rate-limit", description: "See it survive a provider that refuses" },
    { command: "npm run demo -- --dir ../my-project", description: "Let it work on your own folder, in place" },
    { command: "npm run --silent demo -- --json", description: "The same, for programs" }
  ])
)
