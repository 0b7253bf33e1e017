/**
 * Keeps a Run within what it may spend: tokens, money, turns, tool calls.
 *
 * Before a model call the guard sets aside the most that it can come to, in the same append as its TurnStarted, and what
 * was really spent takes that place when the turn ends. So no call is started that could pass the budget, and a process
 * that dies loses no count: everything is folded from the journal. Provide `Prices.layer` beside it where money counts.
 *
 * Invariants
 *   B1  spent + set aside ≤ budget after every event, and nothing is set aside when the Run has ended.
 *   B2  Lost turns and failed tries count: a lost turn as all that was set aside for it (RI-101).
 *   B3  A model call whose price or size is not known is never taken as free: it is refused, or a person is asked.
 *   B5  A sub-agent spends no more than its caller set aside for it, and that counts as the caller's own (RI-026): the sum of all
 *       of a tree is within the budget of its root.
 *   B4  Every token is counted in one class (RI-166).
 *
 * They hold as far as providers keep to `maxOutputTokens` and do not add more than `hiddenTokens` to a request.
 *
 * @since 0.1.0
 */
import { Guard, type Outcome, Plugin, type RunState } from "@waystone/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as CallBound from "./CallBound.ts"
import * as ChildShare from "./ChildShare.ts"
import { exhausted, granted, kept, left, type UsedUp } from "./Limits.ts"
import { type Amounts, foldFor, guardName, initial, type Spending, type Unit, units } from "./Spending.ts"
import type { OptionsInvalid } from "./OptionsInvalid.ts"
import * as Settings from "./Settings.ts"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))
const Share = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))

/** Limits that are left out do not exist. Fields may come from a file: what is wrong is said with its path. */
export const Options = Schema.Struct({
  /** Tokens of all classes, of all turns. */
  tokens: Schema.optionalKey(Count),
  /** US dollars. Needs prices: see `Prices`. */
  costUsd: Schema.optionalKey(Schema.Finite.check(Schema.isGreaterThan(0))),
  /** Model calls, lost ones included. */
  turns: Schema.optionalKey(Count),
  /** Tool calls that were executed. */
  calls: Schema.optionalKey(Count),
  /**
   * What happens when the next step could pass the budget. `stop` (default: it needs neither a person nor more money) ends
   * the Run as Stopped(Budget). `final-answer` gives the model one last turn without tools first (RI-061). `ask` asks a
   * person; each yes grants the whole budget once more.
   */
  onExhausted: Schema.optionalKey(Schema.Literals(["stop", "final-answer", "ask"])),
  /**
   * What happens before a model call whose price is not known while `costUsd` is set, or whose size is not (a file in it,
   * and a model without a known window). `stop` (default: it must not be free), or `ask`: a yes lets that one turn pass, and
   * what was not known before is counted when it is known after, and else not.
   */
  onUnknown: Schema.optionalKey(Schema.Literals(["stop", "ask"])),
  /** Share of a limit from which one warning stands in the journal. Default 0.8: early enough to act. */
  warnAt: Schema.optionalKey(Share),
  /**
   * Share of tokens and money that `final-answer` keeps for the last turn. Default 0.1: an answer sees the whole history,
   * and that is about a tenth of what a Run of ten turns has read.
   */
  finalShare: Schema.optionalKey(Share),
  /**
   * Tries of one turn that may cost something; all are set aside, so fewer where not all fit. Default 2: one failure in the
   * middle of an answer is common, two in a row mean that the provider is down. Tries that cost nothing do not count.
   */
  paidTries: Schema.optionalKey(Count),
  /** Output tokens of a call where neither settings nor ModelInfo say. Default 4096: the least that models in use allow. */
  maxOutputTokens: Schema.optionalKey(Count),
  /** An answer is cut to what the budget has left, but not below this. Default 256: less is no answer. */
  minOutputTokens: Schema.optionalKey(Count),
  /** Tokens that adapters and providers add unseen: tool preambles, text protocols. Default 1024: twice what is known. */
  hiddenTokens: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)))
})
export type Options = typeof Options.Type

/** The options that hold where none are given. */
export const defaults = {
  onExhausted: "stop",
  onUnknown: "stop",
  warnAt: 0.8,
  finalShare: 0.1,
  paidTries: 2,
  maxOutputTokens: 4096,
  minOutputTokens: 256,
  hiddenTokens: 1024
} as const satisfies Options

/** A Budget that an agent can require. */
export class Budget extends Context.Service<Budget, Plugin.Plugin>()("@waystone/policy/Budget") {}

/** Switches it on. Fails with an OptionsInvalid that names the field if the options are not what they should be. */
export const layer = (options: Options): Layer.Layer<Budget, OptionsInvalid> =>
  Layer.effect(
    Budget,
    Effect.map(Settings.decode("Budget", Options, options), (decoded) => ({
      [Plugin.PluginId]: { name: guardName, guards: guardsOf(decoded) }
    }))
  )

/** The guard that asks about what is not known; each has its own yes. */
const unknownName = "budget-unknown"

type Settings = Required<Pick<Options, keyof typeof defaults>> & { readonly limits: Amounts }

const guardsOf = ({ calls, costUsd, tokens, turns, ...options }: Options): ReadonlyArray<Guard.Guard> => {
  const limits: Amounts = {
    tokens: tokens ?? Infinity,
    costNanoUsd: costUsd === undefined ? Infinity : Math.floor(costUsd * 1e9),
    turns: turns ?? Infinity,
    calls: calls ?? Infinity
  }
  const settings: Settings = { ...defaults, ...options, limits }
  const budget = Guard.make<Spending>({
    name: guardName,
    stage: "budget",
    initial,
    fold: foldFor(limits.calls),
    used: ({ spent }) => spent,
    check: ({ memory, proposal, state }) => {
      const own = ChildShare.within(settings, memory.share)
      if (proposal._tag === "Step") return checkStep(own, memory, proposal)
      const { ahead, call, tool } = proposal
      const verdict = checkCall(own, memory, { call, ahead, calls: state.calls })
      if (tool.agent === undefined || verdict._tag !== "Allow") return verdict
      return ChildShare.check({ call, ahead, state, left: left(granted(own, memory.grants), memory) })
    }
  })
  return settings.onUnknown === "ask" ? [budget, asking(settings)] : [budget]
}

const asking = (settings: Settings): Guard.Guard =>
  Guard.make({
    name: unknownName,
    stage: "budget",
    initial: undefined,
    fold: (memory) => memory,
    check: ({ proposal }) => {
      if (proposal._tag !== "Step") return Guard.allow
      const found = measured(settings, proposal, { room: settings.limits, tools: true })
      return found._tag === "NoPrice" || found._tag === "NoBound" ? Guard.ask(unknown(found)) : Guard.allow
    }
  })

type Proposed = Extract<Guard.Proposal, { readonly _tag: "Step" }>
type Found = CallBound.Bound | UsedUp

const checkStep = (settings: Settings, memory: Spending, proposal: Proposed): Guard.Verdict => {
  const { finalShare, onExhausted } = settings
  const limits = granted(settings, memory.grants)
  const tools = proposal.step.final === undefined
  const keeps = onExhausted === "final-answer" && tools
  const within = (some: Amounts, shown: boolean) =>
    bounded(settings, proposal, { left: left(some, memory), tools: shown })
  const found: Found =
    keeps && memory.spent.calls >= limits.calls
      ? { _tag: "UsedUp", unit: "calls" }
      : within(keeps ? kept(limits, finalShare) : limits, tools)
  if (found._tag === "Fits") return allowed(settings, memory, found)
  if (found._tag === "NoPrice" || found._tag === "NoBound") return Guard.stop(unknown(found), { _tag: "Budget" })
  const message = exhausted(found, limits, memory)
  if (keeps) {
    const last = within(limits, false)
    if (last._tag === "Fits") return allowed(settings, memory, { ...last, final: { _tag: "Budget" } })
  }
  // A person is asked only for what one more budget would be enough for.
  return onExhausted === "ask" && within(granted(settings, memory.grants + 1), tools)._tag === "Fits"
    ? Guard.ask(message)
    : Guard.stop(message, { _tag: "Budget" })
}

/** What one more turn may come to, if there may be one more. */
const bounded = (
  settings: Settings,
  proposal: Proposed,
  { left, tools }: { readonly left: Amounts; readonly tools: boolean }
): Found => {
  if (left.turns < 1) return { _tag: "UsedUp", unit: "turns" }
  const found = measured(settings, proposal, { room: left, tools })
  if (settings.onUnknown === "stop" || found._tag === "Fits" || found._tag === "TooMuch") return found
  // The other guard asks about what is not known; what is known is set aside all the same.
  const room = found._tag === "NoBound" ? unlimited : { ...left, costNanoUsd: Infinity }
  return measured(settings, proposal, { room, tools })
}

const unlimited: CallBound.Room = { tokens: Infinity, costNanoUsd: Infinity }

const measured = (
  { hiddenTokens, maxOutputTokens, minOutputTokens, paidTries: tries }: Settings,
  { request }: Proposed,
  { room, tools }: Pick<CallBound.Wanted, "room" | "tools">
): CallBound.Bound =>
  room.tokens === Infinity && room.costNanoUsd === Infinity
    ? { _tag: "Fits", tokens: 0, costNanoUsd: 0, tries: Infinity }
    : CallBound.of(request, { room, tools, tries, hiddenTokens, maxOutputTokens, minOutputTokens })

/** Sets it aside, and warns once. */
const allowed = (
  settings: Settings,
  memory: Spending,
  fits: CallBound.Fits & { readonly final?: Outcome.StopReason }
): Guard.Verdict => {
  const { costNanoUsd, final, maxOutputTokens, tokens, tries } = fits
  const { limits } = settings
  const near = memory.warned ? [] : units.filter((unit) => isNear(settings, memory, unit))
  const note = Object.fromEntries(
    near.map((unit) => [unit, { spent: memory.spent[unit], budget: granted(settings, memory.grants)[unit] }])
  )
  return {
    _tag: "Allow",
    reservation: {
      turns: 1,
      ...(limits.tokens === Infinity ? undefined : { tokens }),
      ...(limits.costNanoUsd === Infinity ? undefined : { costNanoUsd })
    },
    ...(tries === Infinity ? undefined : { maxPaidTries: tries }),
    ...(maxOutputTokens === undefined ? undefined : { maxOutputTokens }),
    ...(final === undefined ? undefined : { final }),
    ...(near.length === 0 ? undefined : { note: { warning: note } })
  }
}

const isNear = (settings: Settings, { grants, spent }: Spending, unit: Unit): boolean =>
  settings.limits[unit] !== Infinity && spent[unit] >= granted(settings, grants)[unit] * settings.warnAt

interface Called {
  readonly call: RunState.RunState["calls"][number]
  readonly ahead: ReadonlyArray<Called["call"]>
  readonly calls: ReadonlyArray<Called["call"]>
}

/** All calls of a reply are judged before the first one starts: those that may run, or will once a person agrees, count. */
const checkCall = (settings: Settings, memory: Spending, { ahead, call, calls }: Called): Guard.Verdict => {
  if (settings.limits.calls === Infinity) return Guard.allow
  const before = new Set(ahead.map(({ callId }) => callId))
  const later = calls.filter(
    ({ callId, status }) =>
      callId !== call.callId && !before.has(callId) && (status === "asked" || status === "approved")
  )
  const limits = granted(settings, memory.grants)
  if (left(limits, memory).calls >= before.size + later.length + 1) {
    return { _tag: "Allow", reservation: { calls: 1 } }
  }
  const open = before.size + later.length
  const also = open === 0 ? "" : `, and ${open} more of this reply may run`
  const message = exhausted({ _tag: "UsedUp", unit: "calls" }, limits, memory) + also
  switch (settings.onExhausted) {
    case "stop":
      return Guard.stop(message, { _tag: "Budget" })
    case "final-answer":
      return Guard.deny(message)
    case "ask":
      // A yes grants one more budget, not this call for ever.
      return { _tag: "Ask", reason: message, once: true }
  }
}

const unknown = ({ _tag, model }: Extract<CallBound.Bound, { readonly _tag: "NoPrice" | "NoBound" }>): string =>
  _tag === "NoPrice"
    ? `the price of ${model} is not known, so its cost cannot be held to the budget: give it in Prices.layer`
    : `the request holds a file and the window of ${model} is not known, so its size has no bound`
