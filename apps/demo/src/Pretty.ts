/**
 * Words what is shown, for people. Pure: `next` takes what was printed so far and gives what to print now.
 */
import { Usage } from "@waystone/core"
import type { RunEvent, RunUpdate } from "@waystone/core"
import { FileTools } from "@waystone/tools"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { budget, delegate, Job } from "./Agent.ts"
import type * as Calls from "./Calls.ts"
import * as ModelName from "./model/ModelName.ts"
import * as Resting from "./Resting.ts"
import * as RunTests from "./RunTests.ts"
import type { Source } from "./Project.ts"
import type { Began, Crashed, Interrupted, Rests, Shown, Verified } from "./Shown.ts"
import * as Snapshot from "./Snapshot.ts"
import type { Style } from "./Style.ts"
import * as Tap from "./Tap.ts"

const width = 100

export interface Printed {
  /** Where the cursor stands; 0 at the start of a line. */
  readonly column: number
  /** Blanks at the end of what the model has said so far. */
  readonly gap: string
  /** Calls of the last reply, by call id: what they look like and when they started. */
  readonly calls: ReadonlyMap<string, Call>
}

interface Call {
  readonly label: string
  /** What a worker is called whose Run this call began. */
  readonly worker?: string
  readonly startedAt?: number
}

export const nothing: Printed = { column: 0, gap: "", calls: new Map() }

/** The text for what comes next. */
export const next =
  (style: Style) =>
  (printed: Printed, shown: Shown): readonly [Printed, string] => {
    const [now, text] = worded(style, printed, shown)
    return [now, style.safe(text)]
  }

const worded = (style: Style, printed: Printed, shown: Shown): readonly [Printed, string] => {
  switch (shown._tag) {
    case "TextDelta":
      return delta(printed, shown.text, (text) => text)
    case "ReasoningDelta":
      return delta(printed, shown.text, style.dim)
    case "TryStarted":
      return lines(printed, [style.dim(`  try ${shown.try}`)])
    case "TryFailed":
      return lines(printed, [
        style.red(`  ✗ the model call failed: ${shown.failure.message}`),
        style.dim(`  next try in ${(shown.waitMs / 1000).toFixed(1)} s`)
      ])
    case "CallStarted": {
      // Of a readonly call nothing is committed yet: its result says it soon enough.
      const call = printed.calls.get(shown.callId)
      return call === undefined ? [printed, ""] : lines(printed, [style.dim(`  … ${call.label}`)])
    }
    case "ToolProgress":
      return lines(printed, [style.dim(`    ${JSON.stringify(shown.value)}`)])
    case "ChildProgress":
      return below(style, printed, shown)
    case "Committed":
      return committed(style, printed, shown.event)
    case "Began":
      return lines({ ...printed, calls: new Map(shown.resumed?.map(labelled)) }, began(style, shown))
    case "Ended":
      return lines(printed, ["", ...ended(style, shown)])
    case "Failed":
      return lines(printed, [
        "",
        style.red(`${Resting.is(shown) ? "The run rests." : "The run failed."} ${shown.error.message}`)
      ])
    case "StillRunning":
      return lines(printed, [style.dim(`    ${shown.name} runs for ${shown.seconds} s …`)])
    case "Interrupted":
      return lines(printed, ["", ...interrupted(style, shown)])
    case "Rests":
      return lines(printed, [rests(shown)])
    case "Rejected":
      return lines(printed, [
        `${shown.advice}${shown.goOn === undefined ? "" : ` Then the run can go on: ${shown.goOn}`}`
      ])
    case "Crashed":
      return lines(printed, ["", ...crashed(style, shown)])
    case "Verified":
      return lines(printed, verified(style, shown))
    case "Proof":
      return lines(printed, [
        `${shown.proven ? style.green(`Proven (${shown.scenario}):`) : style.red(`Not proven (${shown.scenario}), what does not hold:`)} ${shown.line}.`
      ])
  }
}

const lines = (printed: Printed, more: ReadonlyArray<string>): readonly [Printed, string] => [
  { ...printed, column: 0, gap: "" },
  `${printed.column > 0 ? "\n" : ""}${more.map((line) => `${line}\n`).join("")}`
]

const rests = ({ asks, atOnce, goOn, wakeAt }: Rests): string => {
  if (asks) return `What it waits for, and what can be done: ${goOn}`
  if (wakeAt === undefined) return `It can go on: ${goOn}`
  const now = atOnce === undefined ? "" : ` ; to go on at once, as a new run: ${atOnce}`
  return `The run waits until ${new Date(wakeAt).toISOString()}; then: ${goOn}${now}`
}

/** A piece of text of the model, indented and wrapped at its blanks, which are printed with the word that follows. */
const delta = (printed: Printed, text: string, mark: (text: string) => string): readonly [Printed, string] => {
  const words = text.trimEnd()
  const wraps = printed.column > 0 && printed.column + printed.gap.length + words.length > width
  const lead = printed.column === 0 ? "  " : wraps ? "\n  " : printed.gap
  const column = (printed.column === 0 || wraps ? 2 : printed.column + printed.gap.length) + words.length
  return [{ ...printed, column, gap: text.slice(words.length) }, lead + mark(words)]
}

/** What a worker does: whole lines that begin with its name, since others print beside it. */
const below = (
  style: Style,
  printed: Printed,
  { path, update }: RunUpdate.ChildProgress
): readonly [Printed, string] => {
  const way = `${path.join("/")}/`
  const who = path.map((id, depth) => printed.calls.get([...path.slice(0, depth), id].join("/"))?.worker ?? id)
  const said = (now: Printed, ...texts: ReadonlyArray<string>) =>
    lines(
      now,
      texts.map((text) => `    ${style.cyan(`${who.join(" › ")} │`)} ${text}`)
    )
  if (update._tag === "TryFailed") return said(printed, style.red(`✗ the model call failed: ${update.failure.message}`))
  if (update._tag !== "Committed") return [printed, ""]
  const { event } = update
  switch (event._tag) {
    case "TurnCompleted": {
      const calls = new Map([...printed.calls, ...[...labels(event)].map(([id, call]) => [way + id, call] as const)])
      const text = event.reply.map((part) => (part.type === "text" ? part.text : "")).join("")
      return text === "" ? [{ ...printed, calls }, ""] : said({ ...printed, calls }, ...text.split("\n"))
    }
    case "ToolCallStarted":
      return [started(printed, event, way), ""]
    case "ToolCallCompleted":
      return said(printed, result(style, printed.calls.get(way + event.callId), event))
    default:
      return [printed, ""]
  }
}

const started = (printed: Printed, { at, callId, name }: RunEvent.Of<"ToolCallStarted">, way = ""): Printed => {
  const call = printed.calls.get(way + callId) ?? { label: name }
  return { ...printed, calls: new Map(printed.calls).set(way + callId, { ...call, startedAt: at }) }
}

const result = (style: Style, call: Call | undefined, event: RunEvent.Of<"ToolCallCompleted">): string => {
  const startedAt = event.startedAt ?? call?.startedAt
  const took = startedAt === undefined ? "" : style.dim(` ${event.at - startedAt} ms`)
  const mark = event.isFailure ? style.red("✗") : style.green("✓")
  return `${mark} ${style.cyan(call?.label ?? event.name)}${took}  ${outcome(event)}`
}

const committed = (style: Style, printed: Printed, event: RunEvent.RunEvent): readonly [Printed, string] => {
  switch (event._tag) {
    case "TurnStarted":
      return lines(printed, ["", style.bold(`Turn ${event.turn}`)])
    case "TurnCompleted":
      return lines({ ...printed, calls: labels(event) }, [style.dim(`  ${tokens(event.usage)}`)])
    case "TurnFailed":
      return lines(printed, [style.red(`  the model call failed: ${event.failure.message}`)])
    case "ToolCallStarted":
      return [started(printed, event), ""]
    case "ToolCallCompleted":
      return lines(printed, [`  ${result(style, printed.calls.get(event.callId), event)}`])
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
      .map(({ name, params }, index) => labelled({ callId: `t${turn}.${index}`, name, arguments: params }))
  )

const labelled = ({ arguments: given, callId, name }: Pick<Calls.Call, "callId" | "name" | "arguments">) =>
  [callId, { label: `${name}${argument(given)}`, ...workerOf(name, given) }] as const

/** A worker has the name of the file whose tests are its own. */
const workerOf = (name: string, params: unknown): Pick<Call, "worker"> | undefined =>
  name === delegate.name
    ? Option.getOrUndefined(
        Option.map(Worker(params), ({ tests }) => ({ worker: /([^/.]+)[^/]*$/.exec(tests)?.[1] ?? tests }))
      )
    : undefined
const Worker = Schema.decodeUnknownOption(Job)

/** What a call is about, if its arguments name it. */
const About = Schema.decodeUnknownOption(
  Schema.Union([
    Schema.Struct({ path: Schema.String }),
    Schema.Struct({ files: Schema.Array(Schema.Struct({ path: Schema.String })) }),
    Schema.Struct({ pattern: Schema.String }),
    Schema.Struct({ command: Schema.String }),
    Schema.Struct({ tests: Schema.String })
  ])
)
const argument = (params: unknown): string =>
  Option.match(About(params), {
    onNone: () => "",
    onSome: (about) =>
      ` ${head("path" in about ? about.path : "files" in about ? about.files.map(({ path }) => path).join(", ") : "pattern" in about ? about.pattern : "tests" in about ? about.tests : about.command)}`
  })

const decoded = <S extends Schema.Top & { readonly DecodingServices: never }>(
  tool: { readonly name: string; readonly successSchema: S },
  say: (success: S["Type"]) => string
) => [tool.name, (result: unknown) => Option.map(Schema.decodeUnknownOption(tool.successSchema)(result), say)] as const

/** What came of a call that succeeded, by the tool's name. */
const said: ReadonlyMap<string, (result: unknown) => Option.Option<string>> = new Map([
  decoded(
    FileTools.ListFiles,
    ({ files, truncated }) => `${files.length} files${truncated ? " and more" : ""}: ${head(files.join(", "))}`
  ),
  decoded(FileTools.ReadFiles, ({ files }) =>
    files.map((file) => ("text" in file ? `${file.total_lines} lines` : file.error)).join(", ")
  ),
  decoded(
    FileTools.SearchFiles,
    ({ matches, truncated }) => `${matches.length} matches${truncated ? " and more" : ""}`
  ),
  decoded(FileTools.WriteFile, ({ created }) => (created ? "created" : "written")),
  decoded(delegate, (text) => head(text.replaceAll("\n", " "))),
  decoded(FileTools.EditFile, ({ line }) => `changed at line ${line}`),
  decoded(RunTests.RunTests, ({ exit_code, report, status }) =>
    status === "timed-out"
      ? "killed: they did not come to an end"
      : report === undefined
        ? `exit code ${exit_code ?? "unknown"}, not Node's test runner`
        : Tap.summary(report)
  )
])
const Refusal = Schema.decodeUnknownOption(Schema.Struct({ message: Schema.String }))

/** What came of a call, in a few words. */
const outcome = ({ ending, isFailure, name, result }: RunEvent.Of<"ToolCallCompleted">): string => {
  if (isFailure)
    return Option.match(Refusal(result), { onNone: () => JSON.stringify(result), onSome: (r) => r.message })
  const words = said.get(name)?.(result) ?? Option.none()
  return Option.match(words, {
    onNone: () => ending,
    onSome: (words) => (ending === "executed" ? words : `${words} (${ending})`)
  })
}

const head = (text: string): string => (text.length <= width ? text : `${text.slice(0, width)} …`)

const tokens = (usage: Usage.Usage): string => `${Usage.total(usage) - usage.output} tokens in, ${usage.output} out`

const began = (
  style: Style,
  { folder, model, resumed, runId, scenario, scripted, source, task }: Began
): ReadonlyArray<string> => [
  style.bold(
    resumed !== undefined
      ? "Waystone demo: a run goes on where it was."
      : "Waystone demo: a coding agent repairs a Node project."
  ),
  scripted
    ? "No key is needed: the model's words are scripted; files, tests, loop and events are real."
    : `The model is ${ModelName.of(model)}.`,
  `Task: ${task}`,
  ...(scenario === undefined ? [] : [`Scenario ${scenario.name}: ${scenario.says}.`]),
  place(source, folder),
  style.dim(`run ${runId}`)
]

const place = (source: Source, folder: string): string => {
  switch (source._tag) {
    case "Bundled":
      return `It works on a temporary copy of the bundled project${source.bug === undefined ? "" : `, in which ${source.bug.title}`}.`
    case "InPlace":
      return `It works in place: files in ${folder} may be changed. (--copy works on a copy.)`
    case "Gone":
      return `The folder ${source.folder} is gone.`
    case "Copy":
      return `It works on a copy of ${source.folder}: ${folder}`
  }
}

const ended = (style: Style, { outcome }: Extract<RunUpdate.RunUpdate<string, never>, { _tag: "Ended" }>) => {
  const text = `The run is ${outcome._tag.toLowerCase()}: ${outcome.turns} turns, ${tokens(outcome.usage)}.`
  const used = style.dim(`Budget: ${Usage.total(outcome.usage)} of ${budget.tokens} tokens.`)
  if (outcome._tag === "Completed") return [style.bold(text), used]
  const why = outcome._tag === "Stopped" ? [`  because of ${outcome.reason._tag}`] : []
  const waiting = outcome._tag === "Suspended" ? outcome.waiting : []
  return [
    style.red(text),
    used,
    ...why,
    ...waiting.map(
      ({ id, kind, name, reason }) => `  ${name ?? id} waits (${kind})${reason === undefined ? "" : `: ${reason}`}`
    )
  ]
}

const crashed = (style: Style, { during, signal }: Crashed): ReadonlyArray<string> => [
  style.red(`The process that drove the run is dead (${signal ?? "it ended by itself"}).`),
  during.length === 0 ? "No call was running." : `Started, and without a result in the journal: ${during.join(", ")}.`,
  "This process takes the run over."
]

const interrupted = (style: Style, { changes, goOn, runId }: Interrupted): ReadonlyArray<string> => [
  style.red("Interrupted: the run did not come to its end."),
  ...(changes.length === 0
    ? ["No file is changed."]
    : ["What is not as it was:", ...changes.flatMap(Snapshot.diff).map((line) => coloured(style, line))]),
  ...(goOn === undefined ? [] : [`It is paused. To go on: ${goOn}`]),
  style.dim(`run ${runId}`)
]

const verified = (style: Style, shown: Verified): ReadonlyArray<string> => [
  "",
  changed(style, shown),
  ...shown.changes.flatMap(Snapshot.diff).map((line) => coloured(style, line)),
  ...(shown.truncated ? ["(The folder has more files than the demo compares.)"] : []),
  "",
  ...(shown.untested ? [] : [style.bold("The tests, run once more by the demo itself")]),
  ...(shown.report === undefined ? [] : [`  ${Tap.summary(shown.report)}`]),
  ...shown.objections.map((objection) => style.red(`  ${objection}`)),
  `Model: ${ModelName.of(shown.model)}`,
  ...(shown.source._tag === "Copy" ? [`The copy is kept in ${shown.folder}`] : []),
  "",
  `${shown.repaired ? style.green("Repaired.") : style.red("Not repaired.")} ${style.dim(`run ${shown.runId}`)}`
]

const changed = (style: Style, { changes, since }: Verified): string => {
  const when = since === undefined ? "" : " since the run was resumed"
  return changes.length === 0 ? `No file was changed${when}.` : style.bold(`What was changed${when}`)
}

const coloured = ({ dim, green, red }: Style, line: string): string =>
  /^(?:---|\+\+\+|@@)/.test(line)
    ? dim(line)
    : line.startsWith("+")
      ? green(line)
      : line.startsWith("-")
        ? red(line)
        : line
