/**
 * Finds rules that can never decide, because an earlier one takes every call that they are about.
 *
 * It is careful: what it reports is shadowed, but it does not see everything, such as a rule that two others cover
 * together or a range of numbers within another.
 *
 * @since 0.1.0
 */
import { equal } from "./PermissionCondition.ts"
import type { Policy, Rule } from "./PermissionPolicy.ts"
import * as Wildcard from "./Wildcard.ts"

export interface Shadowed {
  /** The place of the rule that can never decide, such as `rules[3]`. */
  readonly rule: string
  /** The place of the earlier one. */
  readonly by: string
}

export const find = ({ rules }: Policy): ReadonlyArray<Shadowed> =>
  rules.flatMap((rule, index) => {
    const by = rules.slice(0, index).findIndex((earlier) => covers(earlier, rule))
    return by === -1 ? [] : [{ rule: `rules[${index}]`, by: `rules[${by}]` }]
  })

const covers = (earlier: Rule, later: Rule): boolean =>
  coversList(earlier.roles, later.roles, (a, b) => a === b) &&
  coversList(earlier.effects, later.effects, (a, b) => a === b) &&
  // The later pattern is read as a text: a star in it can only be taken by a star, so the earlier one is as wide.
  coversList(earlier.tools, later.tools, (a, b) => Wildcard.compile(a)(b)) &&
  coversWhen(earlier, later)

const coversList = <A>(
  earlier: ReadonlyArray<A> | undefined,
  later: ReadonlyArray<A> | undefined,
  wider: (a: A, b: A) => boolean
): boolean =>
  earlier === undefined || (later !== undefined && later.every((one) => earlier.some((other) => wider(other, one))))

/** Each condition of the earlier one is among those of the later one. Of several values, allow needs all. */
const coversWhen = (earlier: Rule, later: Rule): boolean => {
  const conditions = Object.entries(earlier.when ?? {})
  if (conditions.length === 0) return true
  if (earlier.action === "allow" && later.action !== "allow") return false
  return conditions.every(
    ([argument, condition]) =>
      condition.totalMax === undefined && condition.totalAbove === undefined && equal(condition, later.when?.[argument])
  )
}
