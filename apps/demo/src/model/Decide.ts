/**
 * Decides what the offline model says and does next, from what it remembers. Pure: the same prompt, the same reply.
 */
import { FileTools } from "@waystone/tools"
import type * as Schema from "effect/Schema"
import { delegate, task as repairTask } from "../Agent.ts"
import * as ProjectPath from "../ProjectPath.ts"
import { RunTests } from "../RunTests.ts"
import type { Failure } from "../Tap.ts"
import * as Tap from "../Tap.ts"
import { type Edit, type Memory, surrendering, trialOf } from "./Memory.ts"
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
/** Of a worker: those that it was told of, since others are repairing the rest. */
const tests = ({ task }: Memory): Call => {
  const own = task === undefined ? null : /^Make the tests in (\S+) pass\./.exec(task)
  return { name: RunTests.name, parameters: own?.[1] === undefined ? {} : { files: [own[1]] } }
}
/** One file a call: several would share the room that there is. */
const read = (path: string): Call => ({ name: ReadFiles.name, parameters: { files: [{ path }] } })

export const decide = (memory: Memory): Reply => {
  const { files, foreign, refused, report, surrender } = memory
  if (surrender !== undefined) return answer(surrendered(surrender, memory))
  if (refused !== undefined && refused.times >= maxRefusals) {
    return giveUp(memory, `${refused.tool} did not do what I asked, twice (${refused.message}).`)
  }
  if (foreign)
    return giveUp(memory, "I read what Node's own test runner reports, and these tests report nothing of it.")
  const calls = [...(files === undefined ? [list] : []), ...(report === undefined ? [tests(memory)] : [])]
  if (calls.length > 0) return { text: `${complaint(refused)}${opening(memory)}`, calls }
  const reply = consider(memory)
  return reply.calls.length === 0 ? reply : { ...reply, text: `${complaint(refused)}${reply.text}` }
}

/** As the planner of a team: finds out what is wrong, and lets one worker repair each file of tests that fails. */
export const plan = (memory: Memory): Reply => {
  const { files, foreign, refused, report, told } = memory
  if (refused !== undefined && refused.times >= maxRefusals) {
    return answer(`${surrendering}: ${refused.tool} did not do what I asked, twice (${refused.message}).`)
  }
  if (foreign) return answer(`${surrendering}: these tests report nothing that I can read.`)
  if (files === undefined || (report === undefined && told.size === 0)) {
    return { text: "I will look at what is there and run the tests.", calls: [list, tests(memory)] }
  }
  if (report === undefined) return { text: "Both are done. I run all tests again.", calls: [tests(memory)] }
  const said = [...told].map(([tests, text]) => `${tests}: ${text}`).join(" ")
  if (report.failed === 0)
    return answer(said === "" ? "There is nothing to repair." : `${said} All together: ${Tap.summary(report)}.`)
  const jobs = report.failures.flatMap((failure, at) => {
    const { file } = failure
    const isFirst = report.failures.findIndex((one) => one.file === file) === at
    return file === undefined || !isFirst || told.has(file) ? [] : [jobOf(file, failure)]
  })
  if (jobs.length === 0) return answer(`${surrendering}: ${Tap.summary(report)}. ${said}`)
  const text =
    jobs.length === 1
      ? "The tests of one file fail. I let a worker repair it."
      : `The tests of ${jobs.length} files fail, and have nothing to do with each other. I let a worker repair each, at the same time.`
  return { text, calls: jobs }
}

const jobOf = (file: string, failure: Failure): Call => ({
  name: delegate.name,
  parameters: { tests: file, task: said(failure, { printed: "" }) }
})

/** Takes back everything, what helped included: half a repair is none. The answer follows when that is done. */
const giveUp = ({ edits }: Memory, why: string): Reply => {
  const text = `${surrendering}: ${why}`
  return edits.length === 0
    ? answer(text)
    : { text: `${text} I take back what I changed.`, calls: edits.toReversed().map(undo) }
}

const surrendered = (said: string, { edits }: Memory): string =>
  edits.length === 0
    ? `${said} Every file is as it was.`
    : `${said} I could not: ${edits.map(({ path }) => path).join(", ")} is not as it was.`

const complaint = (refused: Memory["refused"]): string =>
  refused === undefined ? "" : `${refused.tool} failed (${refused.message}); I ask once more. `

const opening = ({ files, task }: Memory): string => {
  if (files !== undefined) return ""
  const known = task === undefined || task === repairTask || task.startsWith("Make the tests in ")
  const limits = known
    ? ""
    : "I follow a script and can only repair what tests say is wrong, so that is what I will try. "
  return `${limits}I will look at what is there and run the tests.`
}

const consider = (memory: Memory): Reply => {
  const { files, report } = memory
  if (files === undefined || report === undefined) return giveUp(memory, "I know nothing about it.")
  if (report.tests === 0) return giveUp(memory, "there are no tests that say what is wrong.")
  if (report.failed === 0) return answer(done(memory, report))
  const failure = report.failures[0]
  if (failure?.file === undefined || failure.line === undefined) {
    return giveUp(memory, "tests fail, but their output does not say where.")
  }
  if (failure.expected === undefined || failure.actual === undefined) {
    return giveUp(memory, `${said(failure, memory)} That compares no two values, and I know no other mistakes.`)
  }
  return explore(memory, files, { ...failure, file: failure.file })
}

interface Located extends Failure {
  readonly file: string
}

/** Reads the test that failed and what it tests. */
const explore = (memory: Memory, files: ReadonlyArray<string>, failure: Located): Reply => {
  const { texts } = memory
  const test = texts.get(failure.file)
  if (test === undefined) {
    return { text: `${said(failure, memory)} I will read that test.`, calls: [read(failure.file)] }
  }
  const sources = sourcesOf(memory, files, failure.file)
  const unread = sources.filter((path) => !texts.has(path))
  if (unread.length > 0) {
    return { text: `The test is about ${unread.join(" and ")}. I will read it.`, calls: unread.map(read) }
  }
  const whole = sources.filter((path) => texts.get(path)?.whole === true)
  if (test.whole && whole.length > 0) return repair(memory, whole, { failure, test: test.text })
  const partly = [failure.file, ...sources].filter((path) => texts.get(path)?.whole === false)
  return giveUp(
    memory,
    partly.length > 0
      ? `${said(failure, memory)} ${partly.join(" and ")}: too long for me to read as a whole.`
      : `${said(failure, memory)} I do not see which file it is about.`
  )
}

/** What a test imports, and what that only hands on; never a test or what lies among the tests. */
const sourcesOf = ({ texts }: Memory, files: ReadonlyArray<string>, test: string): ReadonlyArray<string> => {
  const found = new Set<string>()
  const visit = (from: string): void => {
    for (const specifier of Source.imports(texts.get(from)?.text ?? "")) {
      const path = ProjectPath.imported(from, specifier, files)
      if (path === undefined || found.has(path)) continue
      found.add(path)
      visit(path)
    }
  }
  visit(test)
  return [...found].filter((path) => !ProjectPath.isTest(path))
}

/** Tries the most likely change that was not tried yet. */
const repair = (memory: Memory, sources: ReadonlyArray<string>, evidence: Repairs.Evidence): Reply => {
  const { failed, texts } = memory
  const trial = trialOf(memory)
  if (trial !== undefined && texts.get(trial.path)?.seen === false) {
    return { text: `That did not help. I will see what stands in ${trial.path} now.`, calls: [read(trial.path)] }
  }
  const surprise = sources.find((path) => texts.get(path)?.surprising === true)
  if (surprise !== undefined) {
    return giveUp(
      memory,
      `${EditFile.name} said that it changed ${surprise}, but the file is not what it should be. ` +
        `${said(evidence.failure, memory)} Nothing that I edit arrives.`
    )
  }
  const [best] = sources
    .flatMap((path) => {
      const text = trial?.path === path ? trial.before : texts.get(path)?.text
      return text === undefined ? [] : Repairs.candidates({ path, text }, evidence)
    })
    .filter(({ after }) => !failed.has(after))
    .toSorted((a, b) => b.score - a.score)
  if (best === undefined || failed.size >= patience) {
    return giveUp(memory, `${said(evidence.failure, memory)} I tried ${failed.size} changes, and none was right.`)
  }
  return {
    text: `${trial === undefined ? "" : "That was not it; I take it back. "}${suspicion(best)}`,
    calls: [...(trial === undefined ? [] : [undo(trial)]), replacement(best), tests(memory)]
  }
}

const undo = ({ after, before, path }: Edit): Call => replacement({ path, before: after, after: before })

const answer = (text: string): Reply => ({ text, calls: [] })

const said = (
  { actual, error, expected, file, line, name }: Failure,
  { printed }: Pick<Memory, "printed">,
  tense: "present" | "past" = "present"
): string => {
  const [fails, expects, gets] = tense === "present" ? ["fails", "expects", "gets"] : ["failed", "expected", "got"]
  return expected === undefined || actual === undefined
    ? `The test "${name}" (${file}:${line}) ${fails}: ${thrown(error, printed)}.`
    : `The test "${name}" (${file}:${line}) ${expects} ${expected} and ${gets} ${actual}.`
}

/** Of a file that does not even load the runner only says "test failed"; why is what was printed. */
const thrown = (error: string, printed: string): string => {
  if (error !== "test failed") return error
  const place = /^\s*(\S+:\d+)$/m.exec(printed)?.[1]
  const what = /^\s*(\w*Error\b.*)$/m.exec(printed)?.[1]
  return what === undefined ? error : place === undefined ? what : `${what} (${place})`
}

const suspicion = ({ after, before, path, why }: Repairs.Repair): string => {
  const { line, now, old } = changedLine(before, after)
  return `In ${path}, line ${line}, ${why}: \`${old.trim()}\`. I make it \`${now.trim()}\` and run the tests again.`
}

const done = (memory: Memory, report: Tap.Report): string => {
  if (memory.edits.length === 0) return "There is nothing to repair: no test fails."
  return `${memory.edits.map((edit) => explained(edit, memory)).join(" ")} Now ${Tap.summary(report)}.`
}

const explained = ({ after, before, failure, path }: Edit, { printed, texts }: Memory): string => {
  const { line, old } = changedLine(before, after)
  if (failure === undefined) return `I changed line ${line} of ${path}.`
  const test = texts.get(failure.file ?? "")?.text ?? ""
  const why = Repairs.candidates({ path, text: before }, { failure, test }).find((one) => one.after === after)?.why
  return `The mistake was in ${path}, line ${line}, \`${old.trim()}\`${why === undefined ? "" : `: ${why}`}. ${said(failure, { printed }, "past")}`
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
