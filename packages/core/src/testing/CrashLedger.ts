/**
 * Remembers what the tools of one Run did in the world outside, over all of its lives, and where it may die.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { EffectClass } from "../RunEvent.ts"

/** One execution of a handler. */
export interface Execution {
  readonly key: string
  readonly callId: string
  readonly tool: string
  readonly effect: EffectClass
  /** Canonical. */
  readonly arguments: string
  /** How often its effect took place. */
  happened: number
  /** The canonical text of what the handler returned, encoded. */
  returned?: string
}

/** What goes wrong with one Run, and when. Points and appends are counted over all lives. */
export interface Plan {
  readonly name: string
  /** Points at which the process that lives then dies. */
  readonly kills?: ReadonlySet<number>
  /** The append whose answer is lost. */
  readonly loses?: number
  /** The append before which the user sends a message. */
  readonly message?: number
  /** The append before which the user cancels. */
  readonly cancel?: number
}

/** The effects and the points of one Run. */
export class Ledger {
  readonly executions: Array<Execution> = []
  readonly points: Array<string> = []
  readonly problems: Array<string> = []
  appends = 0
  doubts = 0
  lives = 0
  private readonly plan: Plan

  constructor(plan: Plan) {
    this.plan = plan
  }

  /** Passes a point; true if the process dies there. */
  reach(label: string): boolean {
    const number = this.points.push(label) - 1
    return this.plan.kills?.has(number) === true
  }

  /** True if the effect under that key took place. */
  happened(key: string): boolean {
    return this.executions.some((one) => one.key === key && one.happened > 0)
  }

  /** What the last execution under that key returned. */
  returned(key: string): string | undefined {
    return this.executions.findLast((one) => one.key === key && one.returned !== undefined)?.returned
  }
}

/** How a handler's effect takes place under the suite. */
export interface Moment {
  readonly happens: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

export const Moment: Context.Reference<Moment> = Context.Reference("@waystone/core/testing/CrashSuite/Moment", {
  defaultValue: (): Moment => ({ happens: (effect) => effect })
})
