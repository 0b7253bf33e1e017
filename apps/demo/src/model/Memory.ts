/**
 * What the offline model knows: a fold of the tool calls and results that stand in its prompt, and nothing else.
 *
 * Like any model it believes that its edits did what they said, until it reads the file again.
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Prompt from "effect/ai/Prompt"
import { FileTools } from "@waystone/tools"
import { delegate, Job } from "../Agent.ts"
import { RunTests, TestRun } from "../RunTests.ts"
import type * as Tap from "../Tap.ts"

/** A change that was made to a file, as a whole. */
export interface Edit {
  /** It was tested, and fewer tests failed. */
  readonly helped: boolean
  readonly path: string
  readonly before: string
  readonly after: string
  /** The failure that it answers. */
  readonly failure: Tap.Failure | undefined
}

export interface File {
  readonly text: string
  /** No part of it is missing. */
  readonly whole: boolean
  /** Really read since the last edit. */
  readonly seen: boolean
  /** Read, and not what it should be after the edits. */
  readonly surprising: boolean
}

export interface Memory {
  /** What the user asked for. */
  readonly task: string | undefined
  readonly files: ReadonlyArray<string> | undefined
  readonly texts: ReadonlyMap<string, File>
  /** What the tests said last, when they said something. */
  readonly report: Tap.Report | undefined
  /** What the tests printed last. */
  readonly printed: string
  /** The edits that stand in the files, in order; only the last one may not have helped. */
  readonly edits: ReadonlyArray<Edit>
  /** Versions of files that were tested and did not help. */
  readonly failed: ReadonlySet<string>
  /** The last thing that a tool refused, and how often it did in a row. */
  readonly refused: Refusal | undefined
  /** The tests ran to their end, but reported nothing that it can read. */
  readonly foreign: boolean
  /** Its own words when it gave up. */
  readonly surrender: string | undefined
  /** What those said that it let work, by the tests that they were to repair. */
  readonly told: ReadonlyMap<string, string>
}

/** What a surrender begins with, so that it knows it again. */
export const surrendering = "I cannot repair it"

/** The last edit, while nothing shows that it helped. */
export const trialOf = ({ edits }: Memory): Edit | undefined => {
  const last = edits.at(-1)
  return last?.helped === false ? last : undefined
}

export interface Refusal {
  readonly tool: string
  readonly message: string
  readonly times: number
}

const nothing: Memory = {
  task: undefined,
  files: undefined,
  texts: new Map(),
  report: undefined,
  printed: "",
  edits: [],
  failed: new Set(),
  refused: undefined,
  foreign: false,
  surrender: undefined,
  told: new Map()
}

/** Remembers a whole prompt. */
export const of = (prompt: Prompt.Prompt): Memory => {
  const parameters = new Map<string, unknown>()
  let memory = nothing
  for (const message of prompt.content) {
    if (message.role === "user") memory = { ...memory, task: memory.task ?? textOf(message) }
    if (message.role !== "assistant" && message.role !== "tool") continue
    for (const part of message.content) {
      if (part.type === "text" && part.text.startsWith(surrendering)) memory = { ...memory, surrender: part.text }
      if (part.type === "tool-call") parameters.set(part.id, part.params)
      if (part.type === "tool-result") memory = remember(memory, part, parameters.get(part.id))
    }
  }
  return memory
}

const textOf = ({ content }: Prompt.UserMessage): string =>
  content.map((part) => (part.type === "text" ? part.text : "")).join("")

const { EditFile, ListFiles, ReadFiles } = FileTools

const decode = {
  list: Schema.decodeUnknownOption(ListFiles.successSchema),
  read: Schema.decodeUnknownOption(ReadFiles.successSchema),
  edit: Schema.decodeUnknownOption(EditFile.parametersSchema),
  tests: Schema.decodeUnknownOption(TestRun),
  job: Schema.decodeUnknownOption(Job),
  refusal: Schema.decodeUnknownOption(Schema.Struct({ message: Schema.String }))
}

const remember = (memory: Memory, part: Prompt.ToolResultPart, parameters: unknown): Memory => {
  const job = part.name === delegate.name ? Option.getOrUndefined(decode.job(parameters)) : undefined
  if (part.isFailure && job !== undefined) return told(memory, job, `nothing came of it: ${refusal(part)}`)
  if (part.isFailure) return refused(memory, part.name, refusal(part))
  const known = Option.map(learn(memory, part, parameters), (now) =>
    now.refused?.tool === part.name && now.refused === memory.refused ? { ...now, refused: undefined } : now
  )
  return Option.getOrElse(known, () => refused(memory, part.name, "its answer is nothing that I can read"))
}

const refused = (memory: Memory, tool: string, message: string): Memory => {
  const times = memory.refused?.tool === tool ? memory.refused.times + 1 : 1
  return { ...memory, refused: { tool, message, times } }
}

const learn = (memory: Memory, { name, result }: Prompt.ToolResultPart, parameters: unknown): Option.Option<Memory> => {
  switch (name) {
    case ListFiles.name:
      return Option.map(decode.list(result), ({ files }) => ({ ...memory, files }))
    case ReadFiles.name:
      return Option.map(decode.read(result), ({ files }) => files.reduce(read, memory))
    case EditFile.name:
      return Option.map(decode.edit(parameters), (edit) => edited(memory, edit))
    case RunTests.name:
      return Option.map(decode.tests(result), (run) => tested(memory, run))
    case delegate.name:
      return Option.map(decode.job(parameters), (job) => told(memory, job, result))
    default:
      return Option.none()
  }
}

/** Whatever a worker says, its tests say what came of it. */
const told = (memory: Memory, { tests }: typeof Job.Type, result: unknown): Memory => ({
  ...memory,
  report: undefined,
  told: new Map(memory.told).set(tests, typeof result === "string" ? result : JSON.stringify(result))
})

/** A file that could not be read, or only in part, is not asked for again. */
const read = (memory: Memory, file: Text): Memory =>
  "text" in file && file.truncated === undefined
    ? withText(memory, file.path, seen(memory, file.path, file.text))
    : withText(memory, file.path, { text: "", whole: false, seen: true, surprising: false })

type Text = (typeof ReadFiles.successSchema.Type)["files"][number]

const refusal = ({ result }: Prompt.ToolResultPart): string =>
  Option.match(decode.refusal(result), { onNone: () => JSON.stringify(result), onSome: ({ message }) => message })

const withText = (memory: Memory, path: string, file: File): Memory => ({
  ...memory,
  texts: new Map(memory.texts).set(path, file)
})

const seen = ({ texts }: Memory, path: string, text: string): File => {
  const believed = texts.get(path)
  return { text, whole: true, seen: true, surprising: believed !== undefined && believed.text !== text }
}

const edited = (memory: Memory, { new_text, old_text, path }: typeof EditFile.parametersSchema.Type): Memory => {
  const before = memory.texts.get(path)?.text ?? ""
  const after = before.replace(old_text, () => new_text)
  const last = memory.edits.at(-1)
  const undone = last?.path === path && last.before === after
  const edit: Edit = { helped: false, path, before, after, failure: memory.report?.failures[0] }
  return {
    ...withText(memory, path, { text: after, whole: true, seen: false, surprising: false }),
    edits: undone ? memory.edits.slice(0, -1) : [...memory.edits, edit]
  }
}

const tested = (before: Memory, { output, report, status }: TestRun): Memory => {
  const memory: Memory = { ...before, printed: output }
  const trial = trialOf(memory)
  if (trial !== undefined) {
    const last = memory.report
    const better =
      report !== undefined && last !== undefined && report.tests >= last.tests && report.failed < last.failed
    return better
      ? { ...memory, report, edits: [...memory.edits.slice(0, -1), { ...trial, helped: true }] }
      : { ...memory, failed: new Set(memory.failed).add(trial.after) }
  }
  if (status === "timed-out") return refused(memory, RunTests.name, "the tests did not come to an end")
  if (report !== undefined) return { ...memory, report }
  return memory.report === undefined
    ? { ...memory, foreign: true }
    : refused(memory, RunTests.name, "the tests reported nothing this time")
}
