/**
 * Decides what the offline model says and does next, from what it remembers. Pure: the same prompt, the same reply.
 */
import { FileTools } from "@waystone/tools"
import type * as Schema from "effect/Schema"
import { task as repairTask } from "../Agent.ts"
import * as ProjectPath from "../ProjectPath.ts"
import { RunTests } from "../RunTests.ts"
import type { Failure } from "../Tap.ts"
import * as Tap from "../Tap.ts"
import type { Edit, Memory } from "./Memory.ts"
import * as Repairs from "./Repairs.ts"
import * as Source from "./Source.ts"

export interface Call {
  readonly name: string
  readonly parameters: Schema.Json
}

export interface Reply {
  readonly text: string
  /** None: this is the answer. */
  readonly calls: ReadonlyArray<Call>
}

/** Repairs that are tried before it gives up. */
const patience = 6

/** A tool is asked once more after a refusal, and no more often. */
const maxRefusals = 2

const { EditFile, ListFiles, ReadFiles } = FileTools
const list: Call = { name: ListFiles.name, parameters: {} }
const tests: Call = { name: RunTests.name, parameters: {} }
const read = (paths: ReadonlyArray<string>): Call => ({
  name: ReadFiles.name,
  parameters: { files: paths.map((path) => ({ path })) }
})

export const decide = (memory: Memory): Reply => {
  const { files, foreign, refused, report } = memory
  if (refused !== undefined && refused.times >= maxRefusals) {
    return answer(`I cannot repair it: ${refused.tool} did not do what I asked, twice (${refused.message}).`)
  }
  if (foreign)
    return answer("I cannot repair it: I read what Node's own test runner reports, and another one ran here.")
  const calls = [...(files === undefined ? [list] : []), ...(report === undefined ? [tests] : [])]
  if (calls.length > 0) return { text: `${complaint(refused)}${opening(memory)}`, calls }
  const reply = consider(memory)
  return reply.calls.length === 0 ? reply : { ...reply, text: `${complaint(refused)}${reply.text}` }
}

const complaint = (refused: Memory["refused"]): string =>
  refused === undefined ? "" : `${refused.tool} failed (${refused.message}); I ask once more. `

const opening = ({ files, task }: Memory): string => {
  if (files !== undefined) return ""
  const known = task === undefined || task === repairTask
  const limits = known
    ? ""
    : "I follow a script and can only repair what tests say is wrong, so that is what I will try. "
  return `${limits}I will look at what is there and run the tests.`
}

const consider = (memory: Memory): Reply => {
  const { files, report } = memory
  if (files === undefined || report === undefined) return answer("I cannot repair it: I know nothing about it.")
  if (report.tests === 0) return answer("I cannot repair it: there are no tests that say what is wrong.")
  if (report.failed === 0) return answer(done(memory, report))
  const failure = report.failures[0]
  if (failure?.file === undefined || failure.line === undefined) {
    return answer("I cannot repair it: tests fail, but their output does not say where.")
  }
  if (failure.expected === undefined || failure.actual === undefined) {
    return answer(`I cannot repair it. ${said(failure)} That compares no two values, and I know no other mistakes.`)
  }
  return explore(memory, files, { ...failure, file: failure.file })
}

interface Located extends Failure {
  readonly file: string
}

/** Reads the test that failed and what it tests. */
const explore = (memory: Memory, files: ReadonlyArray<string>, failure: Located): Reply => {
  const test = memory.texts.get(failure.file)
  if (test === undefined) return { text: `${said(failure)} I will read that test.`, calls: [read([failure.file])] }
  const sources = Source.imports(test.text)
    .map((specifier) => ProjectPath.imported(failure.file, specifier))
    .filter((path) => path !== undefined)
    .filter((path) => files.includes(path))
  const unread = sources.filter((path) => !memory.texts.has(path))
  return unread.length > 0
    ? { text: `The test is about ${unread.join(" and ")}. I will read it.`, calls: [read(unread)] }
    : repair(memory, sources, { failure, test: test.text })
}

/** Tries the most likely change that was not tried yet. */
const repair = (memory: Memory, sources: ReadonlyArray<string>, evidence: Repairs.Evidence): Reply => {
  const { failed, texts, trial } = memory
  const doubted = trial === undefined ? undefined : texts.get(trial.path)
  if (trial !== undefined && doubted?.seen === false) {
    return { text: `That did not help. I will see what stands in ${trial.path} now.`, calls: [read([trial.path])] }
  }
  const surprise = sources.find((path) => texts.get(path)?.surprising === true)
  if (surprise !== undefined) {
    return answer(
      `I cannot repair it: ${EditFile.name} said that it changed ${surprise}, but the file is not what it should be. ` +
        `${said(evidence.failure)} Nothing that I edit arrives.`
    )
  }
  const undo = trial === undefined ? [] : [replacement({ ...trial, before: trial.after, after: trial.before })]
  const [best] = sources
    .flatMap((path) => {
      const text = trial?.path === path ? trial.before : texts.get(path)?.text
      return text === undefined ? [] : Repairs.candidates({ path, text }, evidence)
    })
    .filter(({ after }) => !failed.has(after))
    .toSorted((a, b) => b.score - a.score)
  if (best === undefined || failed.size >= patience) {
    if (undo.length > 0)
      return { text: "That was not it either, and I have no better idea. I take it back.", calls: undo }
    return answer(
      `I cannot repair it. ${said(evidence.failure)} I tried ${failed.size} changes and took all of them back.`
    )
  }
  return {
    text: `${undo.length > 0 ? "That was not it; I take it back. " : ""}${suspicion(best)}`,
    calls: [...undo, replacement(best), tests]
  }
}

const answer = (text: string): Reply => ({ text, calls: [] })

const said = (
  { actual, error, expected, file, line, name }: Failure,
  tense: "present" | "past" = "present"
): string => {
  const [fails, expects, gets] = tense === "present" ? ["fails", "expects", "gets"] : ["failed", "expected", "got"]
  return expected === undefined || actual === undefined
    ? `The test "${name}" (${file}:${line}) ${fails}: ${error}.`
    : `The test "${name}" (${file}:${line}) ${expects} ${expected} and ${gets} ${actual}.`
}

const suspicion = ({ after, before, path, why }: Repairs.Repair): string => {
  const { line, now, old } = changedLine(before, after)
  return `In ${path}, line ${line}, ${why}: \`${old.trim()}\`. I make it \`${now.trim()}\` and run the tests again.`
}

const done = ({ kept, texts }: Memory, report: Tap.Report): string => {
  if (kept.length === 0) return "There is nothing to repair: all tests pass."
  return `${kept.map((edit) => explained(edit, texts)).join(" ")} Now ${Tap.summary(report)}.`
}

const explained = ({ after, before, failure, path }: Edit, texts: Memory["texts"]): string => {
  const { line, old } = changedLine(before, after)
  if (failure === undefined) return `I changed line ${line} of ${path}.`
  const test = texts.get(failure.file ?? "")?.text ?? ""
  const why = Repairs.candidates({ path, text: before }, { failure, test }).find((one) => one.after === after)?.why
  return `The mistake was in ${path}, line ${line}, \`${old.trim()}\`${why === undefined ? "" : `: ${why}`}. ${said(failure, "past")}`
}

/** The first line that differs, counted from 1. */
const changedLine = (before: string, after: string) => {
  const now = after.split("\n")
  const old = before.split("\n")
  const index = old.findIndex((line, at) => line !== now[at])
  return { line: index + 1, old: old[index] ?? "", now: now[index] ?? "" }
}

/** An exact replacement: the line that differs, and as many around it as make it unique. */
const replacement = ({ after, before, path }: Pick<Edit, "path" | "before" | "after">): Call => {
  const old = before.split("\n")
  const now = after.split("\n")
  const at = changedLine(before, after).line - 1
  for (let around = 0; ; around++) {
    const part = (lines: ReadonlyArray<string>) => lines.slice(Math.max(0, at - around), at + around + 1).join("\n")
    const unique = before.indexOf(part(old)) === before.lastIndexOf(part(old))
    if (unique || around > old.length) {
      return { name: EditFile.name, parameters: { path, old_text: part(old), new_text: part(now) } }
    }
  }
}
