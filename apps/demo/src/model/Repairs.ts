/**
 * The skills of the offline model: which small changes to a source could explain what a failed assertion says.
 *
 * Each skill knows a kind of mistake (a comparison, an operator, a rounding, a constant), not a program. It computes its
 * proposals from the code, the test and the two values of the assertion, and says how well they fit these.
 */
import type { Failure } from "../Tap.ts"
import * as Source from "./Source.ts"

export interface Evidence {
  readonly failure: Failure
  /** The file that the failed test stands in. */
  readonly test: string
}

/** A change that may be right. */
export interface Repair {
  readonly path: string
  /** The whole file before and after. */
  readonly before: string
  readonly after: string
  readonly why: string
  /** How well it fits the evidence; only the order counts. */
  readonly score: number
}

interface Clues {
  readonly code: string
  readonly expected: number | undefined
  readonly actual: number | undefined
  /** Numbers of the failed test, and of all tests of its file. */
  readonly mentioned: ReadonlySet<number>
  readonly known: ReadonlySet<number>
}

interface Proposal {
  readonly token: string
  readonly score: number
  readonly why: string
}

type Skill = (site: Source.Site, clues: Clues) => ReadonlyArray<Proposal>

/** All repairs of one file that the evidence suggests, the most likely first. */
export const candidates = (
  { path, text }: { readonly path: string; readonly text: string },
  { failure, test }: Evidence
): ReadonlyArray<Repair> => {
  const code = Source.code(text)
  const failed = Source.testAt(test, failure.line ?? 1)
  const clues: Clues = {
    code,
    expected: numeric(failure.expected),
    actual: numeric(failure.actual),
    mentioned: Source.numbers(failed),
    known: Source.numbers(test)
  }
  const repairs = [...Source.reached(code, Source.code(failed))].flatMap(([declaration, depth]) =>
    Source.sites(code, declaration).flatMap((site) =>
      skills
        .flatMap((skill) => skill(site, clues))
        .map(({ score, token, why }) => ({
          path,
          before: text,
          after: text.slice(0, site.at) + token + text.slice(site.at + site.token.length),
          why,
          score: score - depth
        }))
    )
  )
  return repairs.toSorted((a, b) => b.score - a.score)
}

const numeric = (printed: string | undefined): number | undefined =>
  printed !== undefined && /^-?\d+(\.\d+)?$/.test(printed) ? Number(printed) : undefined

/** For each comparison: the same with or without the boundary, its opposite, and its mirror image. */
const comparisons: { readonly [token: string]: readonly [string, string, string] } = {
  ">": [">=", "<=", "<"],
  ">=": [">", "<", "<="],
  "<": ["<=", ">=", ">"],
  "<=": ["<", ">", ">="]
}

/** A comparison that is wrong at its boundary, likely where the test asks about that very number, or all the way. */
const comparison: Skill = ({ left, right, token }, { code, mentioned }) => {
  const others = comparisons[token]
  if (others === undefined) return []
  const [near, opposite, mirrored] = others
  const operands = [/([\w$]+)\s*$/.exec(left)?.[1], /^\s*([\w$]+)/.exec(right)?.[1]]
  const limit = operands.map((operand) => Source.valueOf(code, operand)).find((value) => value !== undefined)
  const asked = limit !== undefined && mentioned.has(limit)
  const edge = `\`${token}\` ${token.endsWith("=") ? "takes in" : "leaves out"} the boundary itself`
  const wrongWay = `\`${token}\` compares the wrong way round`
  return [
    { token: near, score: asked ? 4 : 2, why: asked ? `${edge}, ${limit}, which the test asks about` : edge },
    { token: opposite, score: asked ? 1.5 : 2.5, why: wrongWay },
    { token: mirrored, score: asked ? 1.4 : 2.4, why: wrongWay }
  ]
}

/** One operator for another: likely where it moves the value to the right side. */
const operator: Skill = ({ token }, { actual, expected }) => {
  const others = { "+": ["-", "*"], "-": ["+"], "*": ["/", "+"], "/": ["*"], "&&": ["||"], "||": ["&&"] }[token] ?? []
  const wanted = expected === undefined || actual === undefined ? 0 : Math.sign(Math.abs(expected) - Math.abs(actual))
  const moves = (other: string) => strength(other) - strength(token)
  return others.map((other) => ({
    token: other,
    score: wanted !== 0 && Math.sign(moves(other)) === wanted ? 2 : 1,
    why: `\`${token}\` stands where \`${other}\` belongs`
  }))
}

/** How large an operator makes its result. */
const strength = (operator: string): number => ["/", "-", "+", "*"].indexOf(operator)

/** One rounding, or one end of a range, for another. */
const rounding: Skill = ({ token }, { actual, expected }) => {
  const family = [
    ["Math.floor", "Math.ceil", "Math.round"],
    ["Math.min", "Math.max"]
  ].find((names) => names.includes(token))
  if (family === undefined) return []
  const near = expected !== undefined && actual !== undefined && Math.abs(expected - actual) <= 1
  const score = family.length === 2 ? 2 : near ? 3.5 : 0.5
  return family
    .filter((name) => name !== token)
    .map((name) => ({ token: name, score, why: `\`${token}\` stands where \`${name}\` belongs` }))
}

/** A wrong number: computed from the two values of the assertion, or taken from what the test speaks of. */
const constant: Skill = ({ left, right, token }, { actual, expected, known, mentioned }) => {
  if (!/^\d/.test(token)) return []
  const value = Number(token.replaceAll("_", ""))
  const proposals: Array<readonly [number, number]> = []
  if (expected !== undefined && actual !== undefined) {
    if (value === actual && !/[<>]=?\s*$/.test(left)) proposals.push([expected, known.has(value) || value <= 1 ? 1 : 5])
    for (const scaled of scales(value, expected / actual)) proposals.push([scaled, 4.5 - (roundish(value) ? 1 : 0)])
    if (Math.abs(expected - actual) === 1) proposals.push([value + (expected - actual), 1.5])
  }
  const speaksOf = known.has(value) ? [] : [...mentioned].filter((one) => one >= value / 2 && one <= value * 2)
  for (const one of speaksOf) proposals.push([one, 3 - Math.abs(one - value) / value])
  if (/\(\s*$|length - $/.test(left) || /^\s*\)/.test(right)) proposals.push([value - 1, 0.5], [value + 1, 0.5])
  return proposals
    .filter(([other]) => other !== value && Number.isFinite(other) && other >= 0)
    .map(([other, score]) => ({ token: String(other), score, why: `${token} is not the right number` }))
}

/** A factor or a divisor that would explain a ratio, if it is as round a number as the one that stands there. */
const scales = (value: number, ratio: number): ReadonlyArray<number> =>
  Number.isFinite(ratio) && ratio > 0
    ? [value * ratio, value / ratio].filter((scaled) => Math.abs(scaled - Math.round(scaled)) < 1e-9).map(Math.round)
    : []

const roundish = (value: number): boolean => Number.isInteger(Math.log10(value))

const skills: ReadonlyArray<Skill> = [comparison, operator, rounding, constant]
