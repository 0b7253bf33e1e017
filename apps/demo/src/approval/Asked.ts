/**
 * Words what is asked about a call: a command as one, a change of a file as a diff, anything else as JSON.
 */
import { FileDiff, FileTools, Shell } from "@waystone/tools"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { Style } from "../Style.ts"

/** A call that waits, or was to be confirmed. */
export interface Asked {
  readonly id: string
  /** The tool's; empty for a question about the next turn. */
  readonly name?: string
  readonly arguments?: unknown
  readonly guard?: string
  readonly reason?: string
}

const command = Schema.decodeUnknownOption(Schema.Struct({ command: Schema.String }))
const edit = Schema.decodeUnknownOption(
  Schema.Struct({ path: Schema.String, old_text: Schema.String, new_text: Schema.String })
)
const write = Schema.decodeUnknownOption(Schema.Struct({ path: Schema.String, text: Schema.String }))

/** The command of a shell call. */
export const commandOf = ({ arguments: given, name }: Asked): Option.Option<string> =>
  name === Shell.tool.name ? Option.map(command(given), ({ command }) => command) : Option.none()

/** The file whose present text makes the diff a readable one. */
export const fileOf = ({ arguments: given, name }: Asked): string | undefined =>
  name === FileTools.WriteFile.name ? Option.getOrUndefined(write(given))?.path : undefined

/** One line a part; `present` is the text of `fileOf` now. */
export const lines = (
  asked: Asked,
  { bold, cyan, dim, green, red }: Style,
  present?: string
): ReadonlyArray<string> => {
  const { guard = "somebody", id, name = "", reason } = asked
  const what = name === "" ? "the next turn" : name
  const mark = (line: string) => (line.startsWith("+") ? green(line) : line.startsWith("-") ? red(line) : line)
  return [
    `${bold(`May it? ${cyan(what)}`)} ${dim(id)}`,
    ...body(asked, present).map((line) => `  ${mark(line)}`),
    dim(`  asked by ${guard}${reason === undefined ? "" : `: ${reason}`}`)
  ]
}

const body = (asked: Asked, present: string | undefined): ReadonlyArray<string> => {
  const { arguments: given, name } = asked
  const run = commandOf(asked)
  if (Option.isSome(run)) return run.value.split("\n").map((line, i) => `${i === 0 ? "$" : ">"} ${line}`)
  const changed = name === FileTools.EditFile.name ? edit(given) : Option.none()
  if (Option.isSome(changed)) {
    const { new_text: after, old_text: before, path } = changed.value
    return FileDiff.unified(path, before, after).trimEnd().split("\n")
  }
  const written = name === FileTools.WriteFile.name ? write(given) : Option.none()
  if (Option.isSome(written)) {
    const { path, text } = written.value
    const diff = FileDiff.unified(path, present, text).trimEnd()
    return diff === "" ? [`${path} stays as it is`] : diff.split("\n")
  }
  return given === undefined ? [] : JSON.stringify(given, undefined, 2).split("\n")
}
