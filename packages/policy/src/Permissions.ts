/**
 * Decides by rules which calls of an agent may happen: allow, ask a person, or deny.
 *
 * A policy is data: ordered rules on the principal's roles × tool names × effect classes × conditions on the arguments.
 * The first rule that matches decides. Without one a readonly call is allowed, an explicitly Destructive one asks, and
 * any other effect is denied with a reason that the model sees. What it asks or denies stands in the journal with the
 * rule's name and reason. Roles are those of the Run's `principal`, which the journal keeps: a Run without one has none,
 * and a resume cannot change them.
 *
 * Invariants
 *   P1  A call is judged once per call id, and what was decided stands (RI-108). Edited arguments are judged once more:
 *       a rule that denies them denies them.
 *   P2  A rule that cannot be evaluated denies; so does a path that cannot be looked up.
 *   P3  Sums over the Run, and over those below it, come from its events: they are the same after a crash and in another
 *       process.
 *
 * @since 0.1.0
 */
import { Guard, Plugin, type RunEvent } from "@waystone/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import * as Memory from "./PermissionMemory.ts"
import * as Totals from "./PermissionTotals.ts"
import type { OptionsInvalid } from "./OptionsInvalid.ts"
import * as Policies from "./PermissionPolicy.ts"
import * as Rules from "./PermissionRules.ts"
import * as RealPaths from "./RealPaths.ts"
import * as ShadowedRules from "./ShadowedRules.ts"

export { type Action, type Condition, type Effects, type Rule, Policy } from "./PermissionPolicy.ts"
export type { Decision } from "./PermissionRules.ts"
export type { Shadowed } from "./ShadowedRules.ts"

/** The name of the plugin and of its guard in the journal. */
export const name = "permissions"

export interface Options {
  /**
   * The folder that relative paths, folders and globs are relative to; it must exist. Default `.`, where the process
   * runs: it is where tools without a folder of their own look too.
   */
  readonly root?: string
}

/** A call to explain. */
export interface Explained {
  readonly tool: string
  readonly effect: RunEvent.EffectClass
  /** Explicitly Destructive. Default false. */
  readonly destructive?: boolean
  /** Default none. */
  readonly roles?: ReadonlyArray<string>
  readonly arguments: unknown
  /** What has happened in the Run before. Default nothing. */
  readonly after?: ReadonlyArray<RunEvent.RunEvent>
}

export interface Service extends Plugin.Plugin {
  readonly policy: Policies.Policy
  /** Rules that can never decide. */
  readonly shadowed: ReadonlyArray<ShadowedRules.Shadowed>
  /** What would be decided about a call, by which rule and why. Changes nothing, and looks at paths only. */
  readonly explain: (call: Explained) => Effect.Effect<Rules.Decision>
}

export class Permissions extends Context.Service<Permissions, Service>()("@waystone/policy/Permissions") {}

/** Permissions by a policy: checked data, or JSON that was read elsewhere. Warns of each rule that is shadowed. */
export const layer = (
  policy: Policies.Policy,
  options: Options = {}
): Layer.Layer<Permissions, OptionsInvalid, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    Permissions,
    Effect.flatMap(Policies.decode(policy), (decoded) => make(decoded, options))
  )

/** Permissions by a JSON file. */
export const layerFile = (
  file: string,
  options: Options = {}
): Layer.Layer<Permissions, OptionsInvalid, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    Permissions,
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const text = yield* Effect.mapError(fs.readFileString(file), ({ reason }) =>
        Policies.invalid("$", `cannot read ${file}: ${reason._tag}`)
      )
      return yield* make(yield* Policies.decodeJson(text), options)
    })
  )

const make = Effect.fnUntraced(function* (
  policy: Policies.Policy,
  { root = "." }: Options
): Effect.fn.Return<Service, OptionsInvalid, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const real = yield* Effect.mapError(fs.realPath(root), ({ reason }) =>
    Policies.invalid("root", `cannot look up ${root}: ${reason._tag}`)
  )
  const shadowed = ShadowedRules.find(policy)
  for (const { by, rule } of shadowed) yield* Effect.logWarning(`permissions: ${rule} never decides: ${by} does`)
  const rules = Rules.compile(policy, { path, root: real })
  const paths = RealPaths.make(fs, path, real)
  return {
    [Plugin.PluginId]: { name, guards: [guard(rules, paths)] },
    policy,
    shadowed,
    explain: ({ after = [], arguments: args, destructive = false, effect, roles = [], tool }) => {
      const memory = after.reduce(Memory.fold(rules), Memory.empty)
      const subject = { tool, effect, destructive, roles, arguments: args, encoded: args, edited: false }
      const facts = { spent: Totals.spent(rules, memory, Totals.noReply), untrusted: memory.untrusted }
      return Effect.suspend(() => toEffect(decide(rules, paths, subject, facts)))
    }
  }
})

type Judged = Rules.Decision | Effect.Effect<Rules.Decision>

const toEffect = (judged: Judged): Effect.Effect<Rules.Decision> =>
  Effect.isEffect(judged) ? judged : Effect.succeed(judged)

/** At once where no rule is about a place; else after the places have been looked up. */
const decide = (
  rules: Rules.Rules,
  paths: RealPaths.RealPaths,
  subject: Rules.Subject,
  facts: Omit<Rules.Facts, "placesOf">
): Judged => {
  const wanted = new Set(Rules.pathsOf(rules, subject))
  if (wanted.size === 0) return Rules.decide(rules, subject, { ...facts, placesOf: () => undefined })
  return Effect.map(
    Effect.forEach(wanted, (path) => Effect.map(paths.lookup(path), (places) => [path, places] as const)),
    (found) => {
      const places = new Map(found)
      return Rules.decide(rules, subject, { ...facts, placesOf: (path) => places.get(path) })
    }
  )
}

const guard = (rules: Rules.Rules, paths: RealPaths.RealPaths): Guard.Guard =>
  Guard.make({
    name,
    stage: "permissions",
    initial: Memory.empty,
    fold: Memory.fold(rules),
    used: Memory.used,
    check: ({ memory, proposal, state }) => {
      if (proposal._tag !== "Call") return Guard.allow
      const { ahead, arguments: decoded, call, tool } = proposal
      const subject = {
        tool: call.name,
        effect: tool.effect,
        destructive: tool.destructive === true,
        roles: state.principal?.roles ?? [],
        arguments: decoded,
        encoded: Totals.parsed(call.arguments),
        edited: call.edited === true
      }
      // Whatever may still run of this reply counts, before it and after it: an edit must not make use of its place.
      const open = state.calls.filter(
        ({ callId, status }) =>
          callId !== call.callId &&
          (status === "asked" || status === "approved") &&
          !ahead.some((one) => one.callId === callId)
      )
      const isBelow = (tool: string) => state.tools[tool]?.agent !== undefined
      const reply = { ahead: [...ahead, ...open], calls: state.calls, isBelow }
      const judged = decide(rules, paths, subject, {
        spent: Totals.spent(rules, memory, reply),
        untrusted: memory.untrusted
      })
      const given = (decision: Rules.Decision) =>
        tool.agent === undefined
          ? verdict(decision)
          : inherited(verdict(decision), memory, () => Totals.roomOf(rules, memory, reply, call))
      return Effect.isEffect(judged) ? Effect.map(judged, given) : given(judged)
    }
  })

/** A sub-agent that may be called begins with what its caller has read, and may use a part of what that may. */
const inherited = (given: Guard.Verdict, { untrusted }: Memory.Memory, room: () => Totals.Sums): Guard.Verdict =>
  given._tag === "Allow" ? { ...given, reservation: { ...room(), [Memory.inherits]: untrusted ? 1 : 0 } } : given

const verdict = ({ action, once, reason, rule }: Rules.Decision): Guard.Verdict => {
  if (action === "allow") return Guard.allow
  const said = rule === undefined ? reason : `${reason} (rule ${rule})`
  if (action === "deny") return Guard.deny(said)
  return once === true ? { _tag: "Ask", reason: said, once } : Guard.ask(said)
}
