/**
 * Notices an agent that repeats itself: it is told so first, and stopped if it goes on.
 *
 * What counts is the same call (canonical arguments), the same few calls one after the other (A-B-A-B), calls of one tool
 * that are not valid, and the same words. Everything is judged before a model call, from folded memory alone. A reply
 * that repeats itself while it streams is the business of `limits.maxRepeats` of the agent (RI-035).
 *
 * Invariants
 *   LG1  A Run is never stopped for a repetition that the model was not told of.
 *   LG2  It trips at the same Step whatever crashes.
 *   LG3  The last turn without tools, which a limit with `finalAnswer` asked for, is never held up (RI-061).
 *
 * @since 0.1.0
 */
import { Guard, Plugin } from "@waystone/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Repeats from "./Repeats.ts"
import type { OptionsInvalid } from "./OptionsInvalid.ts"
import * as Settings from "./Settings.ts"

const name = "loop-guard"

/** All of them may be left out. */
export const Options = Schema.Struct({
  /** Repetitions at which the model is told; 2 to 100. Default 3: twice happens to everybody, a third time is a habit. */
  nudgeAt: Settings.withDefault(Settings.whole(2, 100), 3),
  /**
   * Repetitions at which the Run is stopped as `Loop`; more than `nudgeAt`, up to 1000. Default 5: after the nudge the
   * model has one try that may be in flight already and one to show that it has understood.
   */
  stopAt: Settings.withDefault(Settings.whole(3, 1000), 5),
  /** Calls in the longest pattern that is looked for; 1 to 10. Default 2, A-B-A-B: longer ones are often work. */
  longestCycle: Settings.withDefault(Settings.whole(1, 10), 2),
  /**
   * Calls count as the same only if their results are the same, too. Default false: a time of day in a result would hide
   * every loop. For an agent that often polls without saying so, true.
   */
  results: Settings.withDefault(Schema.Boolean, false),
  /**
   * Tools whose calls never count, beside those annotated with `ToolOptions.Polling`. Default none. A call of one also
   * ends the repetition of others: who waits between two looks is not in a loop.
   */
  polling: Settings.withDefault(Schema.Array(Schema.String), []),
  /** By tool, arguments that do not matter: a reason or a title that the model words anew each time. Default none. */
  cosmetic: Settings.withDefault(Schema.Record(Schema.String, Schema.Array(Schema.String)), {})
}).check(
  Schema.makeFilter(({ nudgeAt, stopAt }) =>
    stopAt > nudgeAt ? undefined : { path: ["stopAt"], issue: `it must be more than nudgeAt, which is ${nudgeAt}` }
  )
)
export type Options = typeof Options.Encoded

const guard = (settings: Repeats.Settings): Guard.Guard =>
  Guard.make({
    name,
    stage: "loop",
    initial: Repeats.initial,
    fold: Repeats.fold(name, settings),
    check: ({ memory, proposal }) => {
      if (proposal._tag !== "Step" || proposal.step.final !== undefined) return Guard.allow
      const { count, what } = Repeats.worst(settings, memory)
      const said = `${count} times in a row: ${what}`
      if (count >= settings.stopAt && memory.nudged === "heard") return Guard.stop(said, { _tag: "Loop" })
      return count >= settings.nudgeAt && memory.nudged === "no" ? Guard.nudge(advice(said)) : Guard.allow
    }
  })

const advice = (said: string): string =>
  `You repeat yourself, ${said}. Once more will bring nothing new, and the run is stopped if it goes on. Change the ` +
  "approach: use what you know already, try another tool or other arguments, or say what is missing."

/** Switches it on; an agent that `requires` it does not run without. */
export class LoopGuard extends Context.Service<LoopGuard, Plugin.Plugin>()("@waystone/policy/LoopGuard") {
  /** Fails where an option is out of range. */
  static readonly layer = (options: Options = {}): Layer.Layer<LoopGuard, OptionsInvalid> =>
    Layer.effect(
      LoopGuard,
      Effect.map(Settings.decode("LoopGuard", Options, options), (settings) => ({
        [Plugin.PluginId]: { name, guards: [guard(settings)] }
      }))
    )
}

/** Switches it on. */
export const { layer } = LoopGuard
