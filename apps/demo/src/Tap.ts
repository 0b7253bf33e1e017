/**
 * Reads what `node --test --test-reporter=tap` prints: how many tests there are, and which of them failed and why.
 */
import { BoundedText } from "@waystone/tools"
import * as Schema from "effect/Schema"

/** One failed test. */
export const Failure = Schema.Struct({
  name: Schema.String,
  /** Where the assertion stands, or the test if the trace does not say; relative to the project. */
  file: Schema.optionalKey(Schema.String),
  line: Schema.optionalKey(Schema.Int),
  /** The values of the assertion as printed. */
  expected: Schema.optionalKey(Schema.String),
  actual: Schema.optionalKey(Schema.String),
  /** The first lines of the error. */
  error: Schema.String
})
export type Failure = typeof Failure.Type

export const Report = Schema.Struct({
  tests: Schema.Int,
  passed: Schema.Int,
  failed: Schema.Int,
  /** Neither: skipped, or still to do. */
  left_out: Schema.Int,
  /** The first ones. */
  failures: Schema.Array(Failure)
})
export type Report = typeof Report.Type

/** So many failures say enough, and a model reads them all. */
const maxFailures = 20
const maxError = 500

/** Reads the whole output; whatever else stands in it is skipped. Undefined if no run was reported to its end. */
export const parse = (output: string): Report | undefined => {
  const lines = output.split(/\r?\n/)
  if (!lines.some((line) => /^# tests \d+$/.test(line))) return undefined
  return {
    tests: count(lines, "tests"),
    passed: count(lines, "pass"),
    failed: count(lines, "fail") + count(lines, "cancelled"),
    left_out: count(lines, "skipped") + count(lines, "todo"),
    failures: lines
      .flatMap((line, index) => {
        const found = /^(\s*)not ok \d+ - (.*)$/.exec(line)
        return found === null ? [] : failure(found[2] ?? "", details(lines.slice(index + 1), found[1] ?? ""))
      })
      .slice(0, maxFailures)
  }
}

/** What the tests themselves printed: TAP has it as comments. */
export const printed = (output: string): string =>
  output
    .split(/\r?\n/)
    .flatMap(
      (line) =>
        /^\s*# (?!Subtest: |(?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$)(.*)/.exec(
          line
        )?.[1] ?? []
    )
    .join("\n")

/** At most `max` UTF-16 units, head and tail. */
export const bounded = (text: string, max: number): string =>
  BoundedText.toText(BoundedText.add(max)(BoundedText.empty, text))

/** In one sentence. */
export const summary = ({ failures, left_out: leftOut, passed, tests }: Report): string => {
  const all = `${passed} of ${tests} tests pass${leftOut === 0 ? "" : ` (${leftOut} skipped or to do)`}`
  return failures.length === 0 ? all : `${all}; failing: ${failures.map(({ name }) => `"${name}"`).join(", ")}`
}

/** The counts come last, so the last line of a kind is the one. */
const count = (lines: ReadonlyArray<string>, name: string): number =>
  Number(lines.findLast((line) => line.startsWith(`# ${name} `))?.slice(name.length + 3) ?? 0)

/** The YAML block below a result, without its indentation. */
const details = (following: ReadonlyArray<string>, indent: string): ReadonlyArray<string> => {
  if (following[0]?.trim() !== "---") return []
  const end = following.findIndex((line) => line === `${indent}  ...`)
  return following.slice(1, end === -1 ? undefined : end).map((line) => line.slice(indent.length + 2))
}

const failure = (name: string, block: ReadonlyArray<string>): ReadonlyArray<Failure> => {
  // A suite only repeats what its tests say.
  if (scalar(block, "failureType") === "subtestsFailed") return []
  const expected = scalar(block, "expected")
  const actual = scalar(block, "actual")
  return [
    {
      name: name.replace(/\\([#\\])/g, "$1"),
      ...located(block),
      ...(expected === undefined ? undefined : { expected }),
      ...(actual === undefined ? undefined : { actual }),
      error: errorOf(block)
    }
  ]
}

const errorOf = (block: ReadonlyArray<string>): string => {
  const lines = [scalar(block, "error") ?? "", ...text(block, "error")].filter((line) => line.trim() !== "")
  return lines.length === 0 ? "unknown" : bounded(lines.join("\n"), maxError)
}

/** A value that stands on the line of its key. */
const scalar = (block: ReadonlyArray<string>, key: string): string | undefined => {
  const value = block.find((line) => line.startsWith(`${key}: `))?.slice(key.length + 2)
  return value === undefined || value.startsWith("|") ? undefined : value.replace(/^(['"])(.*)\1$/, "$2")
}

/** A value that stands on the lines below its key. */
const text = (block: ReadonlyArray<string>, key: string): ReadonlyArray<string> => {
  const start = block.findIndex((line) => line.startsWith(`${key}: |`)) + 1
  const rest = start === 0 ? [] : block.slice(start)
  const end = rest.findIndex((line) => line !== "" && !line.startsWith("  "))
  return rest.slice(0, end === -1 ? undefined : end).map((line) => line.trim())
}

/** The first frame of the trace that is not Node's own, else the place of the test. */
const located = (block: ReadonlyArray<string>): { readonly file: string; readonly line: number } | undefined => {
  for (const place of [...text(block, "stack"), scalar(block, "location") ?? ""]) {
    const found = /(?:^|\()(?!node:)([^():]+):(\d+):\d+\)?$/.exec(place)
    if (found !== null) return { file: found[1] ?? "", line: Number(found[2]) }
  }
  return undefined
}
