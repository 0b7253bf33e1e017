/**
 * Compiles the conditions of a rule into tests of a call's arguments.
 *
 * @since 0.1.0
 */
import type { Path } from "effect/Path"
import type { Action, Condition } from "./PermissionPolicy.ts"
import * as Glob from "./Glob.ts"
import { isInside, type Places } from "./RealPaths.ts"
import * as ShellCommand from "./ShellCommand.ts"
import * as Wildcard from "./Wildcard.ts"

/** `unclear`: what a shell command runs, or a sum, cannot be said. `failed`: the test makes no sense for this value. */
export type Answer = boolean | { readonly unclear: string } | { readonly failed: string }

/** What a test may look at besides the value. */
export interface Facts {
  /** Where a path leads; undefined if that could not be found out. */
  readonly placesOf: (path: string) => Places | undefined
  /** The sum of the argument over the calls before; NaN if it is not known. */
  readonly spent: () => number
  /** The same values as the model wrote them: sums are folded from those. */
  readonly encoded: ReadonlyArray<unknown>
}

export interface Test {
  /** About one value, or, for totals, about all values of the argument at once. */
  readonly all: (values: ReadonlyArray<unknown>, facts: Facts) => Answer
  /** The paths whose places it needs. */
  readonly paths: (values: ReadonlyArray<unknown>) => ReadonlyArray<string>
  readonly totals: boolean
}

type One = (value: unknown, facts: Facts) => Answer

/** Where the policy's relative paths and globs begin: a real path. */
export interface Base {
  readonly path: Path
  readonly root: string
}

export const compile = (condition: Condition, action: Action, base: Base): Test => {
  const strict = action === "allow"
  const { inside, outside } = condition
  const one = [valueTests(condition), numberTest(condition), placeTests(condition, strict, base)].flat()
  if (condition.command !== undefined) one.push(commandTest(condition.command, strict))
  const folders = [...(inside ?? []), ...(outside ?? [])]
  const places = folders.length > 0 || condition.path !== undefined
  const totals = condition.totalMax !== undefined || condition.totalAbove !== undefined
  return {
    totals,
    paths: (values) => (places ? [...folders, ...values.filter((value) => typeof value === "string")] : []),
    all: (values, facts) => {
      const answers = values.map((value) =>
        value === undefined ? false : every(one.map((test) => () => test(value, facts)))
      )
      const each = strict ? every(answers.map((answer) => () => answer)) : some(answers)
      return totals && each === true ? total(condition, values, facts) : each
    }
  }
}

/** The first that is no plain yes; yes if all are. A no counts more than something unclear. */
export const every = (tests: ReadonlyArray<() => Answer>): Answer => {
  let unclear: Answer = true
  for (const test of tests) {
    const answer = test()
    if (answer === false || (typeof answer === "object" && "failed" in answer)) return answer
    if (answer !== true) unclear = answer
  }
  return unclear
}

/** A failure counts most, then a yes, then something unclear. */
const some = (answers: ReadonlyArray<Answer>): Answer =>
  answers.find((answer) => typeof answer === "object" && "failed" in answer) ??
  answers.find((answer) => answer === true) ??
  answers.find((answer) => typeof answer === "object") ??
  false

/** Equal as JSON, whatever the order of keys. */
export const equal = (a: unknown, b: unknown): boolean => {
  if (a === b) return true
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const left = Object.entries(a)
  const right = new Map(Object.entries(b))
  return left.length === right.size && left.every(([key, value]) => right.has(key) && equal(value, right.get(key)))
}

const needsText = { failed: "the argument is not a text" }
const needsNumber = { failed: "the argument is not a number" }

const valueTests = ({ equals, matches, oneOf }: Condition): Array<One> => {
  const tests: Array<One> = []
  if (equals !== undefined) tests.push((value) => equal(value, equals))
  if (oneOf !== undefined) tests.push((value) => oneOf.some((other) => equal(value, other)))
  if (matches !== undefined) {
    const compiled = matches.map(Wildcard.compile)
    tests.push((value) => (typeof value === "string" ? compiled.some((matches) => matches(value)) : needsText))
  }
  return tests
}

const numberTest = ({ max, min }: Condition): Array<One> =>
  min === undefined && max === undefined
    ? []
    : [
        (value) =>
          typeof value === "number" && Number.isFinite(value)
            ? value >= (min ?? value) && value <= (max ?? value)
            : needsNumber
      ]

/** Negative amounts would make room for others, and what the handler gets must be what was counted. */
const total = ({ totalAbove, totalMax }: Condition, values: ReadonlyArray<unknown>, facts: Facts): Answer => {
  if (!equal(values, facts.encoded)) return { failed: "the argument is not what the model wrote" }
  let sum = facts.spent()
  if (Number.isNaN(sum)) return { unclear: "what the Runs above have used of it is not known here" }
  for (const value of values) {
    if (typeof value !== "number" || !Number.isFinite(value)) return needsNumber
    if (value < 0) return { failed: "a negative amount cannot be added up" }
    sum += value
  }
  return sum <= (totalMax ?? sum) && sum > (totalAbove ?? Number.NEGATIVE_INFINITY)
}

const placeTests = (condition: Condition, strict: boolean, base: Base): Array<One> => {
  const tests: Array<(place: string, facts: Facts) => Answer> = []
  const lies = (folders: ReadonlyArray<string>, place: string, facts: Facts): Answer => {
    const known = folders.map(facts.placesOf)
    if (known.some((places) => places === undefined)) return { failed: "a folder of the rule cannot be looked up" }
    return known.some((places) => places?.some((folder) => isInside(base.path, folder, place)))
  }
  const { inside, outside, path: globs } = condition
  if (inside !== undefined) tests.push((place, facts) => lies(inside, place, facts))
  if (outside !== undefined)
    tests.push((place, facts) => {
      const answer = lies(outside, place, facts)
      return typeof answer === "boolean" ? !answer : answer
    })
  if (globs !== undefined) tests.push(globTest(globs, strict, base))
  if (tests.length === 0) return []
  return [
    (value, facts) => {
      if (typeof value !== "string") return needsText
      const places = facts.placesOf(value)
      if (places === undefined) return { failed: "the path cannot be looked up" }
      const answers = places.map((place) => every(tests.map((test) => () => test(place, facts))))
      return strict ? every(answers.map((answer) => () => answer)) : some(answers)
    }
  ]
}

/** What a rule forbids it forbids in capitals, and with accents composed or not, too: some file systems know no difference. */
const globTest = (globs: ReadonlyArray<string>, strict: boolean, { path, root }: Base) => {
  const written = (text: string) => (strict ? text : text.normalize("NFC"))
  const compiled = globs.map((glob) => ({
    absolute: path.isAbsolute(glob),
    glob: Glob.compile(written(glob), !strict)
  }))
  const slashed = (text: string) => written(path.sep === "/" ? text : text.replaceAll(path.sep, "/"))
  return (place: string): boolean => {
    const relative = isInside(path, root, place) ? slashed(path.relative(root, place)) : undefined
    const whole = slashed(place)
    return compiled.some(({ absolute, glob }) =>
      absolute ? glob.match(whole) : relative !== undefined && glob.match(relative)
    )
  }
}

const commandTest = (patterns: ReadonlyArray<string>, strict: boolean): One => {
  const compiled = patterns.map(ShellCommand.pattern)
  return (value) => {
    if (typeof value !== "string") return needsText
    const { beyond, commands } = ShellCommand.read(value)
    if (!strict && touched(compiled, commands)) return true
    if (beyond !== undefined) return { unclear: `the command is more than simple commands: ${beyond}` }
    return strict && commands.every((words) => compiled.some(({ covers }) => covers(words)))
  }
}

/** Deeper than anybody writes a command into a command into a command. */
const deepest = 4

/** True if one of the commands, or of those that stand in their words as text, may be one of the patterns. */
const touched = (
  patterns: ReadonlyArray<ShellCommand.Pattern>,
  commands: ReadonlyArray<ReadonlyArray<string | undefined>>,
  depth = 0
): boolean =>
  commands.some(
    (words) =>
      patterns.some(({ touches }) => touches(words)) ||
      (depth < deepest &&
        ShellCommand.texts(words).some((text) => touched(patterns, ShellCommand.read(text).commands, depth + 1)))
  )
