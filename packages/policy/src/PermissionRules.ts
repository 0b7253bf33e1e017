/**
 * Decides about a call by the ordered rules of a policy.
 *
 * Invariants
 *   R1  The first rule that matches decides; without one: readonly allow, explicitly Destructive ask, others deny.
 *   R2  A rule that cannot be evaluated denies.
 *   R3  A shell command that is more than simple commands is never allowed where any rule looks at commands (RI-020).
 *
 * @since 0.1.0
 */
import type { RunEvent } from "@waystone/core"
import * as Condition from "./PermissionCondition.ts"
import type { Action, Effects, Policy, Rule } from "./PermissionPolicy.ts"
import type { Places } from "./RealPaths.ts"
import * as Wildcard from "./Wildcard.ts"

/** The call that is decided about. */
export interface Subject {
  readonly tool: string
  readonly effect: RunEvent.EffectClass
  readonly destructive: boolean
  readonly roles: ReadonlyArray<string>
  /** Decoded: what the handler gets. */
  readonly arguments: unknown
  /** As the model or a person wrote them. */
  readonly encoded: unknown
  /** A person edited and approved them: then only what denies counts. */
  readonly edited: boolean
}

export interface Facts {
  readonly placesOf: (path: string) => Places | undefined
  /** By `totalKey`. */
  readonly spent: (key: string) => number
  readonly untrusted: boolean
}

/** What was decided, and why. */
export interface Decision {
  readonly action: Action
  /** Name of the rule that decided, or its place, `rules[0]`; undefined if it was none. */
  readonly rule?: string
  readonly reason: string
  /** A sum over the Run had a say, and it goes on growing: a yes is for this call alone. */
  readonly once?: true
}

interface Where {
  readonly key: string
  readonly place: ReadonlyArray<string>
  readonly test: Condition.Test
  /** Where its sum becomes too large. */
  readonly bound: number | undefined
}

export interface CompiledRule {
  readonly rule: Rule
  readonly label: string
  readonly names: (tool: string) => boolean
  readonly applies: (subject: Subject) => boolean
  readonly when: ReadonlyArray<Where>
}

export interface Rules {
  readonly rules: ReadonlyArray<CompiledRule>
  readonly afterUntrusted: boolean
  /** Where a sum becomes too large, by `totalKey`. */
  readonly bounds: ReadonlyMap<string, number>
  /** True if a rule adds up what a tool uses. */
  readonly adds: (tool: string) => boolean
}

/** Under which a sum is remembered. */
const totalKey = (index: number, argument: string): string => `${index} ${argument}`

export const compile = ({ afterUntrusted = "ignore", rules }: Policy, base: Condition.Base): Rules => {
  const compiled = rules.map((rule, index) => compileRule(rule, index, base))
  const sums = compiled.filter(({ when }) => when.some(({ test }) => test.totals))
  return {
    afterUntrusted: afterUntrusted === "ask",
    rules: compiled,
    bounds: new Map(
      sums.flatMap(({ when }) => when.flatMap(({ bound, key }) => (bound === undefined ? [] : [[key, bound] as const])))
    ),
    adds: (tool) => sums.some(({ names }) => names(tool))
  }
}

const compileRule = (rule: Rule, index: number, base: Condition.Base): CompiledRule => {
  const tools = rule.tools?.map(Wildcard.compile)
  const names = (tool: string) => tools === undefined || tools.some((matches) => matches(tool))
  const classes = (subject: Subject): ReadonlyArray<Effects> =>
    subject.destructive ? [subject.effect, "destructive"] : [subject.effect]
  return {
    rule,
    label: rule.name ?? `rules[${index}]`,
    names,
    applies: (subject) =>
      names(subject.tool) &&
      (rule.roles === undefined || rule.roles.some((role) => subject.roles.includes(role))) &&
      (rule.effects === undefined || classes(subject).some((one) => rule.effects?.includes(one))),
    when: Object.entries(rule.when ?? {}).map(([argument, condition]) => ({
      key: totalKey(index, argument),
      place: argument.split("."),
      test: Condition.compile(condition, rule.action, base),
      bound: condition.totalMax ?? condition.totalAbove
    }))
  }
}

/** The values at a place of the arguments; undefined for an element that lacks it, none if there is nothing. */
export const valuesAt = (value: unknown, place: ReadonlyArray<string>): ReadonlyArray<unknown> => {
  const [key, ...rest] = place
  if (key === undefined) return [value]
  if (key === "*") {
    if (!Array.isArray(value)) return [undefined]
    return value.flatMap((element: unknown) => valuesAt(element, rest))
  }
  if (typeof value !== "object" || value === null) return [undefined]
  const own = Object.entries(value).find(([name]) => name === key)
  return own === undefined ? [undefined] : valuesAt(own[1], rest)
}

/** The paths that must be looked up before the rules can decide. */
export const pathsOf = ({ rules }: Rules, subject: Subject): ReadonlyArray<string> =>
  rules.flatMap(({ applies, when }) =>
    applies(subject) ? when.flatMap(({ place, test }) => test.paths(valuesAt(subject.arguments, place))) : []
  )

export const decide = (policy: Rules, subject: Subject, facts: Facts): Decision => {
  let summed = false
  const spent = (key: string) => {
    summed = true
    return facts.spent(key)
  }
  const decision = decided(policy, subject, { ...facts, spent })
  return summed && decision.action === "ask" ? { ...decision, once: true } : decision
}

const decided = (policy: Rules, subject: Subject, facts: Facts): Decision => {
  let unclear: { readonly rule: string; readonly why: string } | undefined
  let decision = byDefault(subject)
  for (const compiled of policy.rules) {
    const { label, rule } = compiled
    if (!compiled.applies(subject)) continue
    const answer = matches(compiled, subject, facts)
    if (answer === false) continue
    if (answer === true) {
      decision = { action: rule.action, rule: label, reason: rule.reason ?? said[rule.action](subject.tool) }
      break
    }
    if ("failed" in answer) return { action: "deny", rule: label, reason: `it cannot be evaluated: ${answer.failed}` }
    unclear ??= { rule: label, why: answer.unclear }
  }
  if (unclear === undefined || (decision.rule !== undefined && decision.action !== "allow")) {
    return wary(policy, subject, facts, decision)
  }
  return { action: "ask", rule: unclear.rule, reason: unclear.why }
}

const said: { readonly [A in Action]: (tool: string) => string } = {
  allow: (tool) => `${tool} is allowed`,
  ask: (tool) => `${tool} needs approval`,
  deny: (tool) => `${tool} is not allowed like this`
}

const matches = ({ when }: CompiledRule, subject: Subject, facts: Facts): Condition.Answer =>
  Condition.every(
    when.map(({ key, place, test }) => () => {
      const values = valuesAt(subject.arguments, place)
      if (values.length === 0) return false
      const encoded = test.totals ? valuesAt(subject.encoded, place) : []
      return test.all(values, { placesOf: facts.placesOf, spent: () => facts.spent(key), encoded })
    })
  )

const byDefault = ({ destructive, edited, effect, tool }: Subject): Decision => {
  if (effect === "readonly") return { action: "allow", reason: `no rule is about it, and ${tool} only reads` }
  if (destructive) return { action: "ask", reason: `no rule is about it, and ${tool} is destructive` }
  // Whoever edited the arguments has approved them; only a rule can forbid what a person wants.
  if (edited) return { action: "allow", reason: "no rule is about it, and a person approved it" }
  return { action: "deny", reason: `no rule allows ${tool} with these arguments; do it another way or tell the user` }
}

const wary = (policy: Rules, subject: Subject, facts: Facts, decision: Decision): Decision =>
  policy.afterUntrusted && facts.untrusted && decision.action === "allow" && subject.effect !== "readonly"
    ? { ...decision, action: "ask", reason: "what this Run has read from outside may have led to it" }
    : decision
