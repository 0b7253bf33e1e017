/**
 * Kills the process of your agent at every point where that could hurt, and says what went wrong.
 *
 * Give it your agent, its services and a store. It runs the agent once undisturbed and then once per point: before and
 * after every append, before, inside and after every handler, with every answer of the store lost, with a message or a
 * cancel before every append. After each death another process goes on, until the Run ends. CrashChecks says what must
 * hold then. A handler that wraps its effect in `CrashSuite.happens` is killed right before and after that moment, too.
 *
 * The model must not be derailed by crashes: it answers by what stands in the request, like a script that is a function.
 * The suite needs real time, since it waits for lost answers to be repeated.
 *
 * @example
 * CrashSuite.register(it.live, { agent, services: Layer.merge(model, handlers), store: MemoryStore.make })
 *
 * @since 0.1.0
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { Agent } from "../Agent.ts"
import * as CrashChecks from "./CrashChecks.ts"
import { Moment, type Plan } from "./CrashLedger.ts"
import * as CrashRun from "./CrashRun.ts"

export type { Known, Subject } from "./CrashRun.ts"

/** What a rule has done. */
export interface Report {
  readonly runs: number
  /** Processes. */
  readonly lives: number
  /** Times that a person was asked what became of a call. */
  readonly doubts: number
  /** Effects of readonly and idempotent tools that took place more than once. */
  readonly repeats: number
}

/** What went wrong, with the plan that shows it. */
export class CrashProblems extends Data.TaggedError("CrashProblems")<{
  readonly problems: ReadonlyArray<string>
  readonly report: Report
}> {
  override get message(): string {
    const [...shown] = this.problems.slice(0, 20)
    return `${this.problems.length} problems in ${this.report.runs} Runs:\n${shown.join("\n")}`
  }
}

/** One kind of misfortune. Its name begins with its number, which never changes. */
export interface Rule {
  readonly name: string
  readonly run: Effect.Effect<Report, unknown>
}

/**
 * Marks the effect of a handler: the suite counts it, and kills right before and right after it. Outside the suite it is
 * just that effect.
 */
export const happens = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Moment, (moment) => moment.happens(effect))

type Plans = (baseline: CrashRun.Life) => ReadonlyArray<Plan>

/** All rules for an agent. */
export const rules = <A extends Agent>(subject: CrashRun.Subject<A>): ReadonlyArray<Rule> => {
  // What the rules need of an agent is the same for all agents.
  const any = subject as CrashRun.Subject as CrashRun.Subject
  const rule = (name: string, plans: Plans): Rule => ({ name, run: tried(any, plans) })
  return [
    rule("CR01 nothing happens to it", () => [{ name: "undisturbed again" }]),
    rule("CR02 it dies before or after any append", kills(/ append /)),
    rule("CR03 it dies before, inside or after any handler", kills(/ handler /)),
    rule("CR04 the answer of any append is lost", (baseline) =>
      each(baseline, (loses) => ({ name: `loses the answer of append ${loses}`, loses }))
    ),
    rule("CR05 the user speaks before any append", (baseline) =>
      each(baseline, (message) => ({ name: `a message before append ${message}`, message }))
    ),
    rule("CR06 the user cancels before any append", (baseline) =>
      each(baseline, (cancel) => ({ name: `a cancel before append ${cancel}`, cancel }))
    ),
    rule("CR07 it dies again and again, while answers are lost and the user speaks", storms)
  ]
}

/** How a test framework registers a test that is an Effect: `it.live` of `@effect/vitest` fits. */
export type It = (name: string, run: () => Effect.Effect<unknown, unknown>) => void

/** Registers one test per rule. `onReport` gets what each has done. */
export const register = <A extends Agent>(
  it: It,
  subject: CrashRun.Subject<A>,
  onReport: (report: Report) => void = () => {}
): void => {
  for (const { name, run } of rules(subject)) it(name, () => Effect.map(run, onReport))
}

const each = ({ ledger }: CrashRun.Life, plan: (append: number) => Plan): ReadonlyArray<Plan> =>
  Array.from({ length: ledger.appends }, (_, append) => plan(append))

const kills =
  (kind: RegExp): Plans =>
  ({ ledger }) =>
    ledger.points.flatMap((label, point) =>
      kind.test(label) ? [{ name: `dies ${label}`, kills: new Set([point]) }] : []
    )

/** Random misfortunes, the same ones every time; no more deaths than a Run may have in one place. */
const storms: Plans = ({ ledger }) =>
  Array.from({ length: 30 }, (_, seed) => {
    const random = randomOf(seed)
    const upTo = (most: number) => Math.floor(random() * most)
    const points = new Set(Array.from({ length: 2 + upTo(2) }, () => upTo(ledger.points.length * 1.5)))
    return {
      name: `storm ${seed}: dies at points ${[...points].join(", ")}`,
      kills: points,
      ...(seed % 2 === 0 ? undefined : { loses: upTo(ledger.appends) }),
      ...(seed % 3 === 0 ? { message: upTo(ledger.appends) } : undefined),
      ...(seed % 8 === 7 ? { cancel: upTo(ledger.appends) } : undefined)
    }
  })

/** Mulberry32. */
const randomOf = (seed: number): (() => number) => {
  let a = seed * 2_654_435_769
  return () => {
    a = (a + 0x6d2b79f5) | 0
    let t = Math.imul(a ^ (a >>> 15), 1 | a)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Runs that wait for lost answers leave the processor to others. */
const concurrency = 16

/** One Run per plan, beside one that nothing happens to. */
const tried = (subject: CrashRun.Subject, plans: Plans): Effect.Effect<Report, unknown> =>
  Effect.scoped(
    Effect.gen(function* () {
      // Another one each time: the world outside remembers keys, and stores may be shared.
      const own = Math.random().toString(36).slice(2, 10)
      const baseline = yield* CrashRun.make(subject, { name: "undisturbed" }, `crash-${own}`)
      const problems: Array<string> = []
      const collect = (life: CrashRun.Life) =>
        Effect.map(CrashChecks.problems(life, baseline), (found) => {
          problems.push(...found.map((problem) => `${life.plan.name}: ${problem}`))
          return life
        })
      yield* collect(baseline)
      const one = (plan: Plan, index: number) =>
        Effect.scoped(Effect.flatMap(CrashRun.make(subject, plan, `crash-${own}-${index}`), collect))
      const lives = problems.length > 0 ? [] : yield* Effect.forEach(plans(baseline), one, { concurrency })
      const report = reportOf([baseline, ...lives])
      return problems.length === 0 ? report : yield* new CrashProblems({ problems, report })
    })
  )

const reportOf = (lives: ReadonlyArray<CrashRun.Life>): Report => {
  const total = (f: (life: CrashRun.Life) => number) => lives.reduce((sum, life) => sum + f(life), 0)
  return {
    runs: lives.length,
    lives: total(({ ledger }) => ledger.lives),
    doubts: total(({ ledger }) => ledger.doubts),
    repeats: total(({ ledger }) => {
      const happened = ledger.executions.filter((one) => one.happened > 0)
      return happened.length - new Set(happened.map(({ key }) => key)).size
    })
  }
}
