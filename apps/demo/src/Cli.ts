/**
 * The command line of the demo: what it does without a verb, and the verbs.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Stdio from "effect/Stdio"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as TerminalApprover from "./approval/TerminalApprover.ts"
import * as Bugs from "./Bugs.ts"
import { answer, approvals, approve, deny } from "./commands/Approvals.ts"
import { cancel } from "./commands/Cancel.ts"
import { events } from "./commands/Events.ts"
import { fork } from "./commands/Fork.ts"
import * as Options from "./commands/Options.ts"
import { pause } from "./commands/Pause.ts"
import { prune } from "./commands/Prune.ts"
import { resume } from "./commands/Resume.ts"
import { runs } from "./commands/Runs.ts"
import { show } from "./commands/Show.ts"
import { NotRepaired, spoken, Unusable } from "./Complaint.ts"
import * as CrashProcess from "./scenario/CrashProcess.ts"
import * as Choice from "./model/Choice.ts"
import { Project, type Begun } from "./Project.ts"
import { newRunId } from "./RunId.ts"
import * as RunTests from "./RunTests.ts"
import * as Sandbox from "./Sandbox.ts"
import * as Scenario from "./scenario/Scenario.ts"
import * as Layers from "./Layers.ts"
import * as Drive from "./Drive.ts"
import * as Stores from "./Stores.ts"
import { OutputClosed, View } from "./View.ts"

interface Wanted {
  readonly source: Begun
  readonly task?: string
  readonly scenario?: Scenario.Scenario
  readonly model: Choice.Choice
  readonly policy?: string
}

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
  crash: Flag.Boolean("crash").pipe(
    Flag.withDescription(
      "With --scenario team: the process dies (SIGKILL) in the middle of both workers, and another resumes"
    ),
    Flag.withDefault(false)
  ),
  testLimit: Options.testLimit,
  testNetwork: Options.testNetwork,
  policy: Options.policy,
  ...Options.model,
  crashRun: Flag.String("crash-run").pipe(
    Flag.withDescription("The id of the Run in which this process is to die; set by the demo itself"),
    Flag.withHidden,
    Flag.optional
  ),
  task: Argument.String("task").pipe(
    Argument.withDescription("What to do, with --dir. The offline model can only repair what tests say is wrong"),
    Argument.optional
  )
}

interface Flags extends Choice.Flags {
  readonly dir: Option.Option<string>
  readonly copy: boolean
  readonly bug: Option.Option<number>
  readonly crash: boolean
  readonly scenario: Option.Option<Scenario.Scenario["name"]>
  readonly task: Option.Option<string>
  readonly policy: Option.Option<string>
}

/** What the options ask for, or why they do not go together. */
const wanted = Effect.fnUntraced(function* ({ bug, copy, crash, dir, policy, scenario, task, ...flags }: Flags) {
  const paths = yield* Path.Path
  const model = yield* Choice.parse(flags)
  const team = Option.contains(scenario, "team")
  if (Option.isSome(scenario) && !team && model._tag !== "Offline") {
    return yield* new Unusable({ message: "--scenario is done to the offline model: leave out --model." })
  }
  if (crash && !team)
    return yield* new Unusable({ message: "--crash is for --scenario team alone; there is --scenario crash." })
  const about = {
    model,
    ...Option.match(yield* Options.file(policy), { onNone: () => undefined, onSome: (policy) => ({ policy }) }),
    ...Option.match(task, { onNone: () => undefined, onSome: (task) => ({ task }) }),
    ...Option.match(scenario, {
      onNone: () => undefined,
      onSome: (name) => ({ scenario: crash ? Scenario.teamCrash : Scenario.get(name) })
    })
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
    return yield* new Unusable({
      message: `"${task.value}" is no verb (--help lists them); and a task needs --dir, since the bundled project has its own.`
    })
  const planted = Option.flatMap(bug, (n) => Option.fromUndefinedOr(Bugs.planted[n - 1]))
  const found: Wanted = {
    source: {
      _tag: "Bundled",
      ...Option.match(planted, { onNone: () => undefined, onSome: (bug) => ({ bug }) }),
      ...(team ? { team } : undefined)
    },
    ...about
  }
  return found
})

/** Starts the Run in this process. */
const here = (
  { model, policy, scenario, source, task }: Wanted,
  { runId, store }: { readonly runId: string; readonly store: Stores.Store }
) =>
  Effect.provide(
    Drive.start({ runId, task, scenario }),
    Layers.layer({ project: Project.layer(source, runId), store, model, policy, scenario })
  )

type Crashing = Wanted & { readonly scenario: Scenario.Scenario }

const crashes = (what: Wanted): what is Crashing =>
  what.scenario?.name === "crash" || what.scenario === Scenario.teamCrash

/** Lets another process start the Run and die in it, then goes on with it in this one. */
const dying = Effect.fnUntraced(function* ({ model, policy, scenario }: Crashing, store: Stores.Store) {
  if (store._tag === "Memory") {
    return yield* new Unusable({
      message: `--scenario ${scenario.team === true ? "team --crash" : scenario.name} needs a store that survives its process: leave out --store memory.`
    })
  }
  const { args } = yield* Stdio.Stdio
  const runId = yield* newRunId
  const death = yield* CrashProcess.child(["--crash-run", runId, ...(yield* args)])
  if (death.code === OutputClosed.code) return yield* new OutputClosed()
  // It could not begin, or somebody ended it, and it has said so.
  if (death.signal === undefined && death.code !== 0) return yield* new NotRepaired()
  yield* Effect.gen(function* () {
    yield* CrashProcess.free(runId)
    yield* View.use(({ show }) =>
      Effect.flatMap(CrashProcess.during(runId), (during) =>
        show({ _tag: "Crashed", runId, signal: death.signal, during })
      )
    )
  }).pipe(Effect.provide(Layers.looking(store)))
  yield* Drive.resume({ runId, store, model, policy, scenario: Scenario.survivor(scenario, death) })
})

export const demo = Command.make("demo", config).pipe(
  Command.withSharedFlags(Options.flags),
  Command.withHandler(({ crashRun, json, store: asked, testLimit, testNetwork, ...flags }) =>
    Effect.gen(function* () {
      const what = yield* wanted(flags)
      const store = yield* Stores.parse(asked)
      if (Option.isSome(crashRun)) {
        if (!crashes(what)) return yield* new Unusable({ message: "--crash-run is for what dies alone." })
        return yield* here(what, { runId: crashRun.value, store })
      }
      return yield* crashes(what) ? dying(what, store) : here(what, { runId: yield* newRunId, store })
    }).pipe(
      Effect.provide(View.layer({ json })),
      Effect.provideService(TerminalApprover.Asks, !json),
      Effect.provideService(RunTests.Limit, Duration.seconds(testLimit)),
      Effect.provideService(Sandbox.Network, testNetwork),
      spoken
    )
  ),
  Command.withDescription(
    "An agent that lists, reads, searches, edits and tests repairs a small Node project with a bug, or yours. Without --model no key and no " +
      "network are needed: the model's words are scripted, and the script reacts to what the tools return. Files, " +
      "tests, loop and events are real. Exits with 0 only if the project's tests pass afterwards (and the scenario is proven)."
  ),
  Command.withExamples([
    { command: "npm run demo", description: "Watch it" },
    { command: "npm run demo -- --bug 4", description: "See it fail honestly" },
    { command: "npm run demo -- --scenario rate-limit", description: "See it survive a provider that refuses" },
    { command: "npm run demo -- --dir ../my-project", description: "Let it work on your own folder, in place" },
    { command: "npm run demo -- --scenario crash", description: "See its process die, and the run go on" },
    { command: "npm run demo -- --scenario team --crash", description: "See two workers and their planner survive" },
    { command: "npm run demo -- --model openai:gpt-5", description: "Let a real model do it, with your key" },
    { command: "npm run demo -- runs", description: "List the runs that are kept" },
    { command: "npm run --silent demo -- --json", description: "The same, for programs" }
  ]),
  Command.withSubcommands([runs, show, events, resume, approvals, approve, deny, answer, fork, pause, cancel, prune])
)
