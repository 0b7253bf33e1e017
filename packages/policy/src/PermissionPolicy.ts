/**
 * Names what a permissions policy is made of, as data that can live in a JSON file, and reads it strictly.
 *
 * Invariants
 *   D1  What is wrong is said with its place, such as `rules[3].when.amount.max`; an unknown key is wrong, since a
 *       misspelled condition would widen its rule.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Glob from "./Glob.ts"
import { OptionsInvalid } from "./OptionsInvalid.ts"
import * as Settings from "./Settings.ts"

const { Array: List, Finite, Json, Literals, NonEmptyString, Record, String: Str, Struct, optionalKey } = Schema

const Texts = List(NonEmptyString).check(Schema.isMinLength(1))

const Globs = List(NonEmptyString.check(Schema.makeFilter(Glob.objection))).check(Schema.isMinLength(1))
const Folders = List(NonEmptyString.check(Schema.makeFilter(Glob.folderObjection))).check(Schema.isMinLength(1))
/** A sum of amounts, none of which can be negative. */
const Total = Finite.check(Schema.isGreaterThanOrEqualTo(0))

/** One simple command: quotes and operators would never match, because patterns are compared word by word. */
const Commands = List(
  NonEmptyString.check(
    Schema.makeFilter((text) =>
      /["'\\$`|&;<>()\n]/.test(text) || text.trim() === "" || /^\s*[A-Za-z_]\w*=/.test(text)
        ? "is one simple command without quotes, operators or assignments: words, * within a word, ** as the last word"
        : undefined
    )
  )
).check(Schema.isMinLength(1))

/**
 * What an argument must be; all keys that are given must hold. An argument that is absent fulfils no condition.
 * `min`, `max` and the totals need a number, `matches`, the places and `command` a string: anything else makes the rule
 * fail, and a rule that fails denies.
 */
export const Condition = Struct({
  equals: optionalKey(Json),
  oneOf: optionalKey(List(Json).check(Schema.isMinLength(1))),
  /** `*` stands for any characters. */
  matches: optionalKey(Texts),
  min: optionalKey(Finite),
  max: optionalKey(Finite),
  /**
   * The sum of this argument over all calls of the Run and of those below it that the rule's `tools` name, this one included, is at most so much.
   * Those of the same reply count that may run once a person agrees.
   */
  totalMax: optionalKey(Total),
  /** That sum is more than so much. */
  totalAbove: optionalKey(Total),
  /** Globs for the real path, relative to the root (then it lies in it) or absolute. */
  path: optionalKey(Globs),
  /** The real path is one of these folders or lies below one. */
  inside: optionalKey(Folders),
  /** The real path is none of these folders and lies below none. */
  outside: optionalKey(Folders),
  /** What a shell command runs: see `ShellCommand`. */
  command: optionalKey(Commands)
}).check(
  Schema.makeFilter((condition) => (Object.keys(condition).length === 0 ? "says nothing" : undefined)),
  Schema.makeFilter(({ max, min }) =>
    min !== undefined && max !== undefined && min > max ? "has a min above its max" : undefined
  ),
  Schema.makeFilter(({ totalAbove, totalMax }) =>
    totalAbove !== undefined && totalMax !== undefined && totalAbove >= totalMax
      ? "has a totalAbove that leaves nothing below its totalMax"
      : undefined
  )
)
export type Condition = typeof Condition.Type

/** `destructive` is every tool that is explicitly annotated so, whatever its class. */
export const Effects = Literals(["readonly", "idempotent", "unsafe", "destructive"])
export type Effects = typeof Effects.Type

export const Action = Literals(["allow", "ask", "deny"])
export type Action = typeof Action.Type

/** One rule. What it leaves out it does not ask about. */
export const Rule = Struct({
  /** Stands in the journal; default its place, `rules[0]`. */
  name: optionalKey(NonEmptyString),
  action: Action,
  /** What the model (deny) or the person (ask) is told. */
  reason: optionalKey(Str),
  /** The Run's principal has one of these. */
  roles: optionalKey(Texts),
  /** Names as declared; `*` stands for any characters. */
  tools: optionalKey(Texts),
  effects: optionalKey(List(Effects).check(Schema.isMinLength(1))),
  /**
   * By the place of an argument: `amount`, `order.amount`, `files.*.path` (`*`: each element). Where there are several
   * values, a rule that allows needs all of them to fulfil the condition, and one that asks or denies needs one.
   */
  when: optionalKey(
    Record(NonEmptyString, Condition).check(
      Schema.makeFilter((when) =>
        Object.keys(when)
          .filter((place) => place.split(".").includes(""))
          .map((place) => ({ path: [place], issue: "has an empty part between dots" }))
      )
    )
  )
})
export type Rule = typeof Rule.Type

export const Policy = Struct({
  /** The first rule that matches decides. */
  rules: List(Rule),
  /**
   * `ask`: once a result of a tool that is OpenWorld, or of a tool that the provider ran, is in the Run, every effect
   * that would be allowed asks a person. This breaks read-a-secret-then-send-it. Default `ignore`: a Run whose tools are
   * mostly OpenWorld would ask about everything, and people who are asked about everything say yes to everything.
   */
  afterUntrusted: optionalKey(Literals(["ask", "ignore"]))
})
export type Policy = typeof Policy.Type

/** Reads a policy from plain data. */
export const decode = (data: unknown): Effect.Effect<Policy, OptionsInvalid> =>
  Settings.decode("Permissions", Policy, data)

/** Reads a policy from JSON text. */
export const decodeJson = (text: string): Effect.Effect<Policy, OptionsInvalid> =>
  Effect.try({ try: (): unknown => JSON.parse(text), catch: () => invalid("$", "is not valid JSON") }).pipe(
    Effect.tap(() => {
      const twice = saidTwice(text)
      return twice === undefined
        ? Effect.void
        : invalid(twice, "is there twice in one object: only the last would count")
    }),
    Effect.flatMap(decode)
  )

/** A key that one object of a JSON text has twice: the data has only the last. */
const saidTwice = (text: string): string | undefined => {
  const objects: Array<Set<string>> = []
  // A text with a colon behind it is a key.
  for (const [token, quoted, colon] of text.matchAll(/("(?:[^"\\]|\\.)*")(\s*:)?|[{}]/g)) {
    if (token === "{") objects.push(new Set())
    else if (token === "}") objects.pop()
    else if (quoted !== undefined && colon !== undefined) {
      const key = String(JSON.parse(quoted))
      const keys = objects.at(-1)
      if (keys?.has(key) === true) return key
      keys?.add(key)
    }
  }
  return undefined
}

/** What is wrong with a policy, and where. */
export const invalid = (field: string, detail: string): OptionsInvalid =>
  new OptionsInvalid({ policy: "Permissions", field, detail })
