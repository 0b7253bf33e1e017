/**
 * What the offline model knows: a fold of the tool calls and results that stand in its prompt, and nothing else.
 *
 * Like any model it believes that its edits did what they said, until it reads the file again.
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Prompt from "effect/ai/Prompt"
import * as Tap from "../Tap.ts"
import { EditFile, ListFiles, ReadFile, RunTests } from "../Tools.ts"

/** A change that was made to a file, as a whole. */
export interface Edit {
  readonly path: string
  readonly before: string
  readonly after: string
  /** The failure that it answers. */
  readonly failure: Tap.Failure | undefined
}

export interface File {
  readonly text: string
  /** Really read since the last edit. */
  readonly seen: boolean
  /** Read, and not what it should be after the edits. */
  readonly surprising: boolean
}

export interface Memory {
  readonly files: ReadonlyArray<string> | undefined
  readonly texts: ReadonlyMap<string, File>
  readonly report: Tap.Report | undefined
  /** Edits that made things better. */
  readonly kept: ReadonlyArray<Edit>
  /** The last edit, while nothing shows that it helped. */
  readonly trial: Edit | undefined
  /** Versions of files that were tested and did not help. */
  readonly failed: ReadonlySet<string>
  /** What a tool refused, in its own words. */
  readonly refused: string | undefined
}

const nothing: Memory = {
  files: undefined,
  texts: new Map(),
  report: undefined,
  kept: [],
  trial: undefined,
  failed: new Set(),
  refused: undefined
}

/** Remembers a whole prompt. */
export const of = (prompt: Prompt.Prompt): Memory => {
  const parameters = new Map<string, unknown>()
  let memory = nothing
  for (const message of prompt.content) {
    if (message.role !== "assistant" && message.role !== "tool") continue
    for (const part of message.content) {
      if (part.type === "tool-call") parameters.set(part.id, part.params)
      if (part.type === "tool-result") memory = remember(memory, part, parameters.get(part.id))
    }
  }
  return memory
}

const decode = {
  list: Schema.decodeUnknownOption(ListFiles.successSchema),
  read: Schema.decodeUnknownOption(ReadFile.successSchema),
  edit: Schema.decodeUnknownOption(EditFile.parametersSchema),
  tests: Schema.decodeUnknownOption(RunTests.successSchema),
  refusal: Schema.decodeUnknownOption(Schema.Struct({ message: Schema.String }))
}

const remember = (memory: Memory, part: Prompt.ToolResultPart, parameters: unknown): Memory => {
  if (part.isFailure) return { ...memory, refused: refusal(part) }
  const known = learn(memory, part, parameters)
  return Option.getOrElse(known, () => ({ ...memory, refused: `${part.name} answered something that I cannot read` }))
}

const learn = (memory: Memory, { name, result }: Prompt.ToolResultPart, parameters: unknown): Option.Option<Memory> => {
  switch (name) {
    case ListFiles.name:
      return Option.map(decode.list(result), ({ files }) => ({ ...memory, files }))
    case ReadFile.name:
      return Option.map(decode.read(result), ({ path, text }) => withText(memory, path, seen(memory, path, text)))
    case EditFile.name:
      return Option.map(decode.edit(parameters), (edit) => edited(memory, edit))
    case RunTests.name:
      return Option.map(decode.tests(result), ({ output }) => tested(memory, Tap.parse(output)))
    default:
      return Option.none()
  }
}

const refusal = ({ name, result }: Prompt.ToolResultPart): string =>
  `${name}: ${Option.match(decode.refusal(result), {
    onNone: () => JSON.stringify(result),
    onSome: ({ message }) => message
  })}`

const withText = (memory: Memory, path: string, file: File): Memory => ({
  ...memory,
  texts: new Map(memory.texts).set(path, file)
})

const seen = ({ texts }: Memory, path: string, text: string): File => {
  const believed = texts.get(path)
  return { text, seen: true, surprising: believed !== undefined && believed.text !== text }
}

const edited = (memory: Memory, { new_text, old_text, path }: typeof EditFile.parametersSchema.Type): Memory => {
  const before = memory.texts.get(path)?.text ?? ""
  const after = before.replace(old_text, () => new_text)
  const undone = memory.trial?.path === path && memory.trial.before === after
  return {
    ...withText(memory, path, { text: after, seen: false, surprising: false }),
    trial: undone ? undefined : { path, before, after, failure: memory.report?.failures[0] }
  }
}

const tested = (memory: Memory, report: Tap.Report): Memory => {
  const { kept, report: last, trial } = memory
  if (trial === undefined || last === undefined) return { ...memory, report }
  const better = report.tests >= last.tests && report.failed < last.failed
  return better
    ? { ...memory, report, kept: [...kept, trial], trial: undefined }
    : { ...memory, failed: new Set(memory.failed).add(trial.after) }
}
