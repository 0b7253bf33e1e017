/**
 * Keeps the time to answer, who may answer, and what was granted, for the approvals that core and other guards ask for.
 *
 * It asks for nothing itself: `needsApproval`, Destructive tools and guards do. Without it an approval has no end, everybody
 * may answer, and `scope: "run"` is recorded and means nothing.
 *
 * Invariants
 *   V1  A grant lets pass what the guards that the person was asked for ask about the same tool with the same arguments,
 *       nothing else; a Deny or a Stop of any guard counts all the same, and so does an Ask that says `once`.
 *   V2  A yes to a call that did not wait (tell-model) lets one repeated call pass, however often it was said or the process died.
 *   V3  Nobody answers under the agent's own name, or under none; where this plugin is missing, nobody answers at all.
 *   V4  Everything that it knows is folded from the events: another process knows the same.
 *
 * @since 0.1.0
 */
import { Guard, Plugin } from "@waystone/core"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Grants from "./Grants.ts"
import { OptionsInvalid } from "./OptionsInvalid.ts"
import * as Settings from "./Settings.ts"

/** The name of the plugin and of its guard, as the journal has it. */
export const name = "approvals"

/** What a call that is asked about does: it waits, or it gets a result that says so and may be confirmed later. */
export type Mode = "wait" | "tell-model"

export interface Options {
  /**
   * How long a person may take; longer than 0, or "Infinity". Where the asking guard names an earlier time, that counts.
   * Default 7 days: a weekend and somebody's days off fit in, and what was asked before that is about a world that has moved on.
   */
  readonly expiresAfter?: Duration.Input
  /**
   * Default "wait": only so the model is certain to learn what came of its call. With "tell-model" the call gets the result
   * that it waits for confirmation, the Run goes on, and a later yes lets the same call pass once.
   */
  readonly mode?: Mode
  /** The modes of single tools, by name. Default: none. */
  readonly modes?: { readonly [tool: string]: Mode }
  /**
   * Who may answer what: approvals, external results, calls in doubt. It is asked in whatever process answers; one that
   * breaks refuses. `by` is what the caller of `Run.answer` says: it is for the application to know who that is.
   * Default: everybody who is not the agent.
   */
  readonly mayAnswer?: (by: string, request: Plugin.Request) => boolean | Effect.Effect<boolean>
}

/** What a call is told that is to be confirmed. */
export const waiting =
  "Waiting for confirmation by a person; not executed. Go on with what does not need it. You are told when it is " +
  "confirmed or refused; once it is confirmed, the same call with the same arguments is executed."

/** Switches it on. */
export class Approvals extends Context.Service<Approvals, Plugin.Plugin>()("@waystone/policy/Approvals") {
  static readonly layer = (options: Options = {}): Layer.Layer<Approvals, OptionsInvalid> =>
    Layer.effect(
      Approvals,
      Effect.map(check(options), (checked) => ({
        [Plugin.PluginId]: { name, guards: [guard(checked)], mayAnswer: mayAnswer(options.mayAnswer) }
      }))
    )
}

/** Switches it on. */
export const { layer } = Approvals

interface Checked {
  /** Milliseconds. */
  readonly expiresAfter: number
  readonly mode: Mode
  readonly modes: ReadonlyMap<string, Mode>
}

const days = Duration.days(7)
const Modes = Schema.Literals(["wait", "tell-model"]).annotate({ message: 'must be "wait" or "tell-model"' })

/** What callers without types may write. */
const Shape = Schema.Struct({
  expiresAfter: Schema.optional(Schema.Unknown),
  mode: Schema.optional(Modes),
  modes: Schema.optional(Schema.Record(Schema.String, Modes)),
  mayAnswer: Schema.optional(
    Schema.Unknown.check(
      Schema.makeFilter((rule) => rule === undefined || typeof rule === "function" || "must be a function")
    )
  )
})

const check = Effect.fnUntraced(function* (options: Options): Effect.fn.Return<Checked, OptionsInvalid> {
  const { mode = "wait", modes = {} } = yield* Settings.decode("Approvals", Shape, options)
  const duration = Option.getOrUndefined(Duration.fromInput(options.expiresAfter ?? days))
  if (duration === undefined || !(Duration.toMillis(duration) > 0)) {
    const detail = "must be a duration longer than 0"
    return yield* new OptionsInvalid({ policy: "Approvals", field: "expiresAfter", detail })
  }
  return { expiresAfter: Duration.toMillis(duration), mode, modes: new Map(Object.entries(modes)) }
})

/** A name as a person sees it: neither capitals nor what is invisible make another one. */
const seen = (name: string): string =>
  name
    .normalize("NFKC")
    .replaceAll(/[\p{Cf}\p{Cc}\s]/gu, "")
    .toLowerCase()

const mayAnswer =
  (rule: Options["mayAnswer"]) =>
  (by: string, request: Plugin.Request): Effect.Effect<boolean> =>
    Effect.suspend(() => {
      const answers = seen(by)
      if (answers === "" || answers === seen(request.agent)) return Effect.succeed(false)
      const may = rule === undefined ? true : rule(by, request)
      return Effect.isEffect(may) ? may : Effect.succeed(may)
    })

const guard = ({ expiresAfter, mode, modes }: Checked): Guard.Guard =>
  Guard.make({
    name,
    stage: "limits",
    initial: Grants.none,
    fold: Grants.fold(name),
    check: ({ memory, proposal }) =>
      proposal._tag === "Step" && memory.news.length > 0 ? Guard.nudge(memory.news.join("\n")) : Guard.allow,
    rule: ({ memory, proposal }, question) => {
      const call = proposal._tag === "Call" ? proposal.call : undefined
      const note = call === undefined || question.once === true ? undefined : Grants.find(memory, question, call.callId)
      if (note !== undefined) return { _tag: "Granted", note }
      return Effect.map(Clock.currentTimeMillis, (now): Guard.Ruling => {
        const until = Number.isFinite(expiresAfter) ? { expiresAt: now + expiresAfter } : {}
        // No later call could use the answer to a question about one call alone.
        if (call === undefined || question.once === true || (modes.get(call.name) ?? mode) === "wait")
          return { _tag: "Wait", ...until }
        const open = Grants.isOpen(memory, question, now) ? ({ open: true } as const) : {}
        return { _tag: "TellModel", message: waiting, ...until, ...open }
      })
    }
  })
