/**
 * Puts questions to the person at the terminal: yes, no with a reason, other arguments, always in this Run, or later.
 * Where there is no terminal nobody is asked, and the Run waits.
 */
import { Approver } from "@waystone/policy"
import { Folder, Shell } from "@waystone/tools"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Path from "effect/Path"
import * as Schema from "effect/Schema"
import * as Terminal from "effect/Terminal"
import * as Prompt from "effect/cli/Prompt"
import * as Style from "../Style.ts"
import * as Asked from "./Asked.ts"
import { person } from "./Policy.ts"

type Services = Terminal.Terminal | FileSystem.FileSystem | Path.Path | Folder.Folder

/** Whether this process may ask at its terminal. Default true; with --json nobody reads what is asked. */
export const Asks: Context.Reference<boolean> = Context.Reference("demo/Asks", { defaultValue: () => true })

/** True if there is a person to ask. */
const isThere = (): boolean => process.stdin.isTTY === true && process.stdout.isTTY === true

export const layer: Layer.Layer<Approver.Approver, never, Services> = Layer.effect(
  Approver.Approver,
  Effect.map(Effect.all([Effect.context<Services>(), Asks]), ([context, asks]) => ({
    by: person(),
    decide: (question: Approver.Question) =>
      asks && isThere() ? Effect.provideContext(decide(question), context) : Effect.succeedNone
  }))
)

const choices = [
  { title: "yes", value: "yes" },
  { title: "no, and say why", value: "no" },
  { title: "edit it, then yes", value: "edit" },
  { title: "always in this run: this tool with these arguments", value: "always" },
  { title: "later: the run waits", value: "later" }
] as const

const decide = ({
  problem,
  waiting
}: Approver.Question): Effect.Effect<Option.Option<Approver.Decision>, never, Services> =>
  Effect.gen(function* () {
    const terminal = yield* Terminal.Terminal
    const { read } = yield* Folder.Folder
    const file = Asked.fileOf(waiting)
    const present = file === undefined ? undefined : Option.getOrUndefined(yield* Effect.option(read(file)))
    const style = Style.colours
    const said = problem === undefined ? [] : [style.red(`That does not count: ${problem}`)]
    const text = ["", ...said, ...Asked.lines(waiting, style, present), ""].join("\n")
    yield* terminal.display(style.safe(text))
    // A question about the next turn has no arguments.
    const offered =
      waiting.name === "" ? choices.filter(({ value }) => value !== "edit" && value !== "always") : choices
    const chosen = yield* Prompt.run(Prompt.Select({ message: "Your answer", choices: offered }))
    return yield* decisions[chosen](waiting)
  }).pipe(
    Effect.catchTag("QuitError", () => quit),
    Effect.orElseSucceed(() => Option.none()) // a terminal that is gone: later
  )

/** A prompt takes Ctrl-C for itself; it ends this process as anywhere else: the Run is paused, with its question. */
const quit = Effect.andThen(
  Effect.sync(() => process.kill(process.pid, "SIGINT")),
  Effect.never
)

type Deciding = (
  waiting: Approver.Question["waiting"]
) => Effect.Effect<Option.Option<Approver.Decision>, Terminal.QuitError, Prompt.Environment>

const decisions: { readonly [Choice in (typeof choices)[number]["value"]]: Deciding } = {
  yes: () => Effect.succeedSome<Approver.Decision>({ _tag: "Approve" }),
  always: () => Effect.succeedSome<Approver.Decision>({ _tag: "Approve", scope: "run" }),
  later: () => Effect.succeedNone,
  no: () =>
    Effect.map(Prompt.run(Prompt.String({ message: "Why not? The agent is told" })), (reason) =>
      Option.some<Approver.Decision>({ _tag: "Deny", reason: reason.trim() === "" ? "no" : reason })
    ),
  edit: (waiting) =>
    Effect.map(edited(waiting), (edited) => Option.some<Approver.Decision>({ _tag: "Approve", edited }))
}

const Json = Schema.fromJsonString(Schema.Json)

const edited = ({ arguments: given, name }: Approver.Question["waiting"]) => {
  const isShell = name === Shell.tool.name
  const present = isShell
    ? Option.getOrElse(Asked.commandOf({ id: "", name, arguments: given }), () => "")
    : JSON.stringify(given)
  const validate = (text: string) =>
    isShell
      ? Effect.succeed(text)
      : Effect.as(
          Effect.mapError(Schema.decodeEffect(Json)(text), () => "That is no JSON."),
          text
        )
  const message = isShell ? "The command instead" : "The arguments instead, as JSON"
  return Effect.map(Prompt.run(Prompt.String({ message, default: present, validate })), (text): Schema.Json =>
    isShell ? withCommand(given, text) : Schema.decodeSync(Json)(text)
  )
}

const Fields = Schema.Record(Schema.String, Schema.Json)

const withCommand = (given: unknown, command: string): Schema.Json => ({
  ...Option.getOrElse(Schema.decodeUnknownOption(Fields)(given), () => ({})),
  command
})
