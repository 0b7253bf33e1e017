/**
 * Puts together everything that a Run of the demo needs.
 */
import { type Agent, ProcessOwner } from "@waystone/core"
import { type Approver, Budget, LoopGuard, type OptionsInvalid, Prices, Sanitizer } from "@waystone/policy"
import { CommandRunner, FileError, FileTools, Folder, Shell } from "@waystone/tools"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { FileSystem } from "effect/FileSystem"
import * as Layer from "effect/Layer"
import type * as Path from "effect/Path"
import type { Terminal } from "effect/Terminal"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import { mark } from "./approval/Inside.ts"
import { OwnGuard } from "./approval/OwnGuard.ts"
import * as Policy from "./approval/Policy.ts"
import { Rules } from "./approval/Rules.ts"
import * as TerminalApprover from "./approval/TerminalApprover.ts"
import { budget, type DemoAgent } from "./Agent.ts"
import type { Unusable } from "./Complaint.ts"
import * as DefaultPolicy from "./DefaultPolicy.ts"
import type { Choice } from "./model/Choice.ts"
import * as Models from "./model/Models.ts"
import { Project, type ProjectError } from "./Project.ts"
import * as RunTests from "./RunTests.ts"
import * as Sandbox from "./Sandbox.ts"
import type { Scenario } from "./scenario/Scenario.ts"
import * as Stores from "./Stores.ts"
import * as Tracing from "./Tracing.ts"

export type Platform = FileSystem | Path.Path | ChildProcessSpawner | Terminal
export type Provided =
  | Agent.Services<DemoAgent>
  | CommandRunner.CommandRunner
  | Folder.Folder
  | Project
  | Approver.Approver
  | Rules

export type ServicesError =
  | ProjectError
  | Stores.StoreUnusable
  | Unusable
  | Models.ModelUnusable
  | FileError.FolderUnavailable
  | CommandRunner.CommandOptionsInvalid
  | OptionsInvalid.OptionsInvalid

interface Wanted {
  readonly project: Layer.Layer<Project, ProjectError, FileSystem | Path.Path>
  readonly store: Stores.Store
  readonly model: Choice
  /** A JSON file with the rules; default `DefaultPolicy`. */
  readonly policy?: string | undefined
  /** What is done to the services. */
  readonly scenario?: Scenario | undefined
}

/** On in every Run. Their options are ours, so they are right. Where nothing hides our keys, their values are taken out. */
const policies = Layer.unwrap(
  Effect.map(Models.keys, (values) =>
    Layer.orDie(Layer.mergeAll(Budget.layer(budget), LoopGuard.layer(), Sanitizer.layer({ values })))
  )
)

/** The store is opened last, when it is certain that it does not lie in the folder. */
export const layer = ({
  model,
  policy,
  project,
  scenario,
  store
}: Wanted): Layer.Layer<Provided, ServicesError, Platform> => {
  const folder = Layer.unwrap(
    Project.use(({ folder, source }) => Effect.succeed(source._tag === "Gone" ? gone(folder) : Folder.layer(folder)))
  )
  const opened = Layer.unwrap(
    Project.use(({ folder }) => Effect.as(Stores.outside(store, folder), Stores.layer(store)))
  )
  const runner = (kind: Sandbox.Kind) => changed(CommandRunner.CommandRunner, sandboxed(kind, store), scenario?.runner)
  const wrapped = Layer.mergeAll(changed(Folder.Folder, folder, scenario?.folder), runner("confined"), opened)
  return Layer.mergeAll(
    FileTools.layer,
    Layer.provideMerge(Rules.layer(policy), DefaultPolicy.layer(policy)),
    RunTests.layer,
    Layer.provide(
      Layer.unwrap(Project.use(({ folder }) => Effect.succeed(Shell.layer({ cwd: folder })))),
      runner("hidden")
    ),
    Policy.layer,
    OwnGuard.layer(store),
    TerminalApprover.layer,
    Models.layer(model, scenario?.disturb),
    model._tag === "Offline" ? Layer.empty : Layer.orDie(Prices.layer()),
    ProcessOwner.layer,
    Tracing.layer(store),
    policies
  ).pipe(Layer.provideMerge(wrapped), Layer.provideMerge(project))
}

/** Nobody can tell anything about files that are gone: a call that had started has an unknown end. */
const gone = (root: string): Layer.Layer<Folder.Folder> => {
  const fail = (path: string) => Effect.fail(new FileError.FileUnavailable({ path, message: "The folder is gone." }))
  return Layer.succeed(Folder.Folder, {
    root,
    locate: Effect.succeed,
    list: () => fail("."),
    read: fail,
    create: fail,
    update: fail
  })
}

/** What the verbs need that only look at Runs or speak to them. They make no store. */
export const looking = (store: Stores.Store) =>
  Layer.merge(Layer.provideMerge(Policy.layer, Stores.existing(store)), ProcessOwner.layer)

/** The same, for what ends a Run: its trace is sent. */
export const watched = (store: Stores.Store) =>
  Layer.merge(
    Layer.provideMerge(Layer.merge(Policy.layer, Tracing.layer(store)), Stores.existing(store)),
    ProcessOwner.layer
  )

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

/** What runs the project's code, or the agent's commands. */
const sandboxed = (kind: Sandbox.Kind, store: Stores.Store) =>
  Layer.effect(
    CommandRunner.CommandRunner,
    Effect.gen(function* () {
      const { folder } = yield* Project
      const { run } = yield* CommandRunner.CommandRunner
      const wrap = yield* Sandbox.make(kind, store, folder)
      return { run: (command) => run({ ...command, argv: wrap(command.argv) }) }
    })
  ).pipe(Layer.provide(marked))

/** Whatever the agent starts is known by its environment. */
const marked: Layer.Layer<CommandRunner.CommandRunner, CommandRunner.CommandOptionsInvalid, ChildProcessSpawner> =
  changed(CommandRunner.CommandRunner, CommandRunner.CommandRunner.layer(), ({ run }) =>
    Effect.succeed({ run: (command) => run({ ...command, env: { ...command.env, [mark]: "1" } }) })
  )
