/**
 * Words what is shown, for people. Pure: `next` takes what was printed so far and gives what to print now.
 */
import { Usage } from "@waystone/core"
import type { RunEvent } from "@waystone/core"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Diff from "./Diff.ts"
import type { Shown, Verified } from "./Shown.ts"
import type { Style } from "./Style.ts"
import * as Tap from "./Tap.ts"
import { EditFile, ListFiles, ReadFile, RunTests } from "./Tools.ts"

const width = 100

export interface Printed {
  /** Where the cursor stands; 0 at the start of a line. */
  readonly column: number
  /** Calls of the last reply, by call id: what they look like and when they started. */
  readonly calls: ReadonlyMap<string, { readonly label: string; readonly startedAt?: number }>
}

export const nothing: Printed = { column: 0, calls: new Map() }

/** The text for what comes next. */
export const next =
  (style: Style) =>
  (printed: Printed, shown: Shown): readonly [Printed, string] => {
    switch (shown._tag) {
      case "TextDelta":
        return delta(printed, shown.text, (text) => text)
      case "ReasoningDelta":
        return delta(printed, shown.text, style.dim)
      case "TryStarted":
        return lines(printed, [style.dim(`  the model failed; try ${shown.try}`)])
      case "CallStarted":
        return lines(printed, [style.dim(`    … ${shown.name}`)])
      case "ToolProgress":
        return lines(printed, [style.dim(`    ${JSON.stringify(shown.value)}`)])
      case "Committed":
        return committed(style, printed, shown.event)
      case "Began":
        return lines(printed, [
          style.bold("Waystone demo: an agent repairs a small Node project."),
          "No key is needed: the model's words are scripted; files, tests, loop and events are real.",
          style.dim(`run ${shown.runId} in ${shown.folder}`)
        ])
      case "Ended":
        return lines(printed, ["", ended(style, shown.outcome._tag, shown.outcome)])
      case "Failed":
        return lines(printed, ["", style.red(`The run failed. ${shown.error.message}`)])
      case "Verified":
        return lines(printed, verified(style, shown))
    }
  }

const lines = (printed: Printed, more: ReadonlyArray<string>): readonly [Printed, string] => [
  { ...printed, column: 0 },
  `${printed.column > 0 ? "\n" : ""}${more.map((line) => `${line}\n`).join("")}`
]

/** A piece of text of the model, indented and wrapped at its blanks. */
const delta = (printed: Printed, text: string, mark: (text: string) => string): readonly [Printed, string] => {
  const wraps = printed.column > 0 && printed.column + text.trimEnd().length > width
  const lead = printed.column === 0 ? "  " : wraps ? "\n  " : ""
  const column = (lead === "" ? printed.column : 2) + text.length
  return [{ ...printed, column }, lead + mark(text)]
}

const committed = (style: Style, printed: Printed, event: RunEvent.RunEvent): readonly [Printed, string] => {
  switch (event._tag) {
    case "TurnStarted":
      return lines(printed, ["", style.bold(`Turn ${event.turn}`)])
    case "TurnCompleted":
      return lines({ ...printed, calls: labels(event) }, [style.dim(`  ${tokens(event.usage)}`)])
    case "TurnFailed":
      return lines(printed, [style.red(`  the model call failed: ${event.failure.message}`)])
    case "ToolCallStarted": {
      const label = printed.calls.get(event.callId)?.label ?? event.name
      const calls = new Map(printed.calls).set(event.callId, { label, startedAt: event.at })
      return lines({ ...printed, calls }, [style.dim(`  … ${label}`)])
    }
    case "ToolCallCompleted": {
      const call = printed.calls.get(event.callId)
      const startedAt = event.startedAt ?? call?.startedAt
      const took = startedAt === undefined ? "" : style.dim(` ${event.at - startedAt} ms`)
      const mark = event.isFailure ? style.red("✗") : style.green("✓")
      return lines(printed, [`  ${mark} ${style.cyan(call?.label ?? event.name)}${took}  ${outcome(event)}`])
    }
    default:
      return [printed, ""]
  }
}

/** `callId` is `t<turn>.<index>`, the index counting the calls of the reply. */
const labels = ({ reply, turn }: RunEvent.Of<"TurnCompleted">): Printed["calls"] =>
  new Map(
    reply
      .filter((part) => part.type === "tool-call")
      .filter(({ providerExecuted }) => !providerExecuted)
      .map(({ name, params }, index) => [`t${turn}.${index}`, { label: `${name}${argument(params)}` }])
  )

const Path = Schema.decodeUnknownOption(Schema.Struct({ path: Schema.String }))
const argument = (params: unknown): string =>
  Option.match(Path(params), { onNone: () => "", onSome: ({ path }) => ` ${path}` })

const results = {
  [ListFiles.name]: Schema.decodeUnknownOption(ListFiles.successSchema),
  [ReadFile.name]: Schema.decodeUnknownOption(ReadFile.successSchema),
  [EditFile.name]: Schema.decodeUnknownOption(EditFile.successSchema),
  [RunTests.name]: Schema.decodeUnknownOption(RunTests.successSchema)
}
const Refusal = Schema.decodeUnknownOption(Schema.Struct({ message: Schema.String }))

/** What came of a call, in a few words. */
const outcome = ({ ending, isFailure, name, result }: RunEvent.Of<"ToolCallCompleted">): string => {
  if (isFailure)
    return Option.match(Refusal(result), { onNone: () => JSON.stringify(result), onSome: (r) => r.message })
  const known: Option.Option<string> =
    name === ListFiles.name
      ? Option.map(results.list_files(result), ({ files }) => files.join(", "))
      : name === ReadFile.name
        ? Option.map(results.read_file(result), ({ text }) => `${text.split("\n").length - 1} lines`)
        : name === EditFile.name
          ? Option.map(results.edit_file(result), ({ line }) => `changed at line ${line}`)
          : Option.map(results.run_tests(result), ({ output }) => Tap.summary(Tap.parse(output)))
  return Option.getOrElse(known, () => ending)
}

const tokens = (usage: Usage.Usage): string => `${Usage.total(usage) - usage.output} tokens in, ${usage.output} out`

const ended = (
  style: Style,
  tag: string,
  { turns, usage }: { readonly turns: number; readonly usage: Usage.Usage }
) => {
  const text = `The run is ${tag.toLowerCase()}: ${turns} turns, ${tokens(usage)}.`
  return tag === "Completed" ? style.bold(text) : style.red(text)
}

const verified = (style: Style, { changes, objections, repaired, report, runId }: Verified): ReadonlyArray<string> => [
  "",
  changes.length === 0 ? "No file was changed." : style.bold("What was changed"),
  ...changes.flatMap(Diff.unified).map((line) => coloured(style, line)),
  "",
  style.bold("The tests, run once more by the demo itself"),
  ...(report === undefined ? [] : [`  ${Tap.summary(report)}`]),
  ...objections.map((objection) => style.red(`  ${objection}`)),
  "",
  `${repaired ? style.green("Repaired.") : style.red("Not repaired.")} ${style.dim(`run ${runId}`)}`
]

const coloured = ({ dim, green, red }: Style, line: string): string =>
  /^(?:---|\+\+\+|@@)/.test(line)
    ? dim(line)
    : line.startsWith("+")
      ? green(line)
      : line.startsWith("-")
        ? red(line)
        : line
