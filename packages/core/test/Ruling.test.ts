import { describe, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Guard from "../src/Guard.ts"
import { type Parts, type Plugin, PluginId } from "../src/Plugin.ts"
import * as Run from "../src/Run.ts"
import type { RunEvent } from "../src/RunEvent.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import { answer, approve, clerk, digestOf, eventsOf, expectValid, told, waitOf, world } from "./support/scenario.ts"

const { call, text } = ScriptedModel
const runId = "r"
const start = Run.start(clerk, { runId, task: "go" })
const resume = Run.resume(clerk, { runId })
const script = [call("pay", { amount: 1 }), text("done")]

class Judge extends Context.Service<Judge, Plugin>()("test/Judge") {}
class Ruler extends Context.Service<Ruler, Plugin>()("test/Ruler") {}
const guardOf = (name: string, parts: Partial<Guard.Guard>): Guard.Guard =>
  Guard.make({ name, stage: "limits", initial: 0, fold: (memory) => memory, check: () => Guard.allow, ...parts })
const plugin = (parts: Parts): Layer.Layer<never> => Layer.succeed(Judge, { [PluginId]: parts })
const judging = (check: Guard.Guard["check"]) => plugin({ name: "judge", guards: [guardOf("judge", { check })] })
const ruling = (rule: NonNullable<Guard.Guard["rule"]>): Layer.Layer<never> =>
  Layer.succeed(Ruler, { [PluginId]: { name: "ruler", guards: [guardOf("ruler", { rule })] } })
const granted: Guard.Ruling = { _tag: "Granted", note: { why: "known" } }

const only = <Tag extends RunEvent["_tag"]>(events: ReadonlyArray<RunEvent>, tag: Tag) =>
  events.filter((event): event is Extract<RunEvent, { readonly _tag: Tag }> => event._tag === tag)

const driven = (extra: Layer.Layer<never>) =>
  Effect.gen(function* () {
    const one = yield* world
    const model = yield* ScriptedModel.make(script)
    const drive = one.process({ model, extra })
    return { ...one, drive, outcome: yield* drive(start), events: yield* one.here(eventsOf(runId)) }
  })

describe("rulings on a question", () => {
  it.effect("a grant lets the call pass and stands in the journal before it starts", () =>
    Effect.gen(function* () {
      const { events, outcome, ran } = yield* driven(ruling(() => granted))
      expect(outcome).toMatchObject({ _tag: "Completed" })
      expect(ran).toEqual(["pay 1"])
      const order = events.filter(({ _tag }) => _tag === "VerdictGiven" || _tag === "ToolCallStarted")
      expect(order).toMatchObject([
        { _tag: "VerdictGiven", guard: "ruler", on: "t1.0", verdict: "Allow", note: { why: "known" } },
        { _tag: "ToolCallStarted" }
      ])
    })
  )

  it.effect("G4 a grant lets nothing past a Deny", () =>
    Effect.gen(function* () {
      const denying = judging(({ proposal }) => (proposal._tag === "Call" ? Guard.deny("no") : Guard.allow))
      const { ran } = yield* driven(
        Layer.merge(
          denying,
          ruling(() => granted)
        )
      )
      expect(ran).toEqual([])
    })
  )

  it.effect("a rule that throws, fails or has nothing to say waits for a person", () =>
    Effect.gen(function* () {
      const broken = ruling(() => {
        throw new Error("broken")
      })
      for (const rule of [broken, ruling(() => Effect.die("broken")), ruling(() => ({ _tag: "Wait" }))])
        expect((yield* driven(rule)).outcome).toMatchObject({ _tag: "Suspended", waiting: [{ id: "t1.0" }] })
    })
  )

  it.effect("of a Step a grant is a wait: it is asked", () =>
    Effect.gen(function* () {
      const asking = judging(({ proposal }) => (proposal._tag === "Step" ? Guard.ask("on?") : Guard.allow))
      const { outcome } = yield* driven(
        Layer.merge(
          asking,
          ruling(() => granted)
        )
      )
      expect(outcome).toMatchObject({ _tag: "Suspended", waiting: [{ id: "s1" }] })
    })
  )

  it.effect("the earliest time to answer counts", () =>
    Effect.gen(function* () {
      const asking = judging(({ proposal }) =>
        proposal._tag === "Call" ? { _tag: "Ask", reason: "?", expiresAt: 500 } : Guard.allow
      )
      const until = (expiresAt: number) => ruling(() => ({ _tag: "Wait", expiresAt }))
      const later = yield* driven(until(700))
      expect(yield* later.here(waitOf(runId, "t1.0"))).toMatchObject({ guard: "core", expiresAt: 700 })
      const both = yield* driven(
        Layer.merge(
          asking,
          ruling(({ proposal }) => (proposal._tag === "Call" ? granted : { _tag: "Wait" }))
        )
      )
      expect(both.outcome).toMatchObject({ _tag: "Completed" })
    })
  )

  const asks = (parts: Partial<Extract<Guard.Verdict, { readonly _tag: "Ask" }>>) =>
    judging(({ proposal }) => (proposal._tag === "Call" ? { _tag: "Ask", reason: "why?", ...parts } : Guard.allow))

  it.effect("all who ask about a call are one question with every reason, which ends with the first of them", () =>
    Effect.gen(function* () {
      const { events, here, outcome, ran } = yield* driven(asks({ expiresAt: 500 }))
      expect(outcome).toMatchObject({ _tag: "Suspended", waiting: [{ id: "t1.0", guard: "core", expiresAt: 500 }] })
      expect(only(events, "ApprovalRequested")).toMatchObject([
        { guard: "core", also: ["judge"], reason: "pay needs approval; judge: why?", expiresAt: 500 }
      ])
      const alone = yield* driven(ruling(() => ({ _tag: "Wait" })))
      expect(only(alone.events, "ApprovalRequested")[0]).not.toHaveProperty("also")
      expect(ran).toEqual([])
      yield* here(expectValid(runId))
    })
  )

  it.effect("only what is not granted is asked", () =>
    Effect.gen(function* () {
      const half = (known: string) => ruling((_, { guard }) => (guard === known ? granted : { _tag: "Wait" }))
      const first = yield* driven(Layer.merge(asks({}), half("core")))
      expect(first.outcome).toMatchObject({ waiting: [{ guard: "judge", reason: "why?" }] })
      const second = yield* driven(Layer.merge(asks({}), half("judge")))
      expect(second.outcome).toMatchObject({ waiting: [{ guard: "core", reason: "pay needs approval" }] })
      expect(only(second.events, "VerdictGiven")).toMatchObject([{ guard: "ruler", on: "t1.0", verdict: "Allow" }])
    })
  )

  it.effect("an Ask that is about this call alone is not granted", () =>
    Effect.gen(function* () {
      const { outcome } = yield* driven(
        Layer.merge(
          asks({ once: true }),
          ruling(() => granted)
        )
      )
      expect(outcome).toMatchObject({ _tag: "Suspended", waiting: [{ guard: "judge", reason: "why?" }] })
    })
  )

  it.effect("of several questions about a call one that waits makes it wait, and one that is new is asked", () =>
    Effect.gen(function* () {
      const told = { _tag: "TellModel", message: "later" } as const
      const by = (core: Guard.Ruling, judge: Guard.Ruling) =>
        driven(
          Layer.merge(
            asks({}),
            ruling((_, { guard }) => (guard === "core" ? core : judge))
          )
        )
      expect((yield* by(told, { _tag: "Wait" })).outcome).toMatchObject({ _tag: "Suspended" })
      const fresh = yield* by({ ...told, open: true }, told)
      expect(only(fresh.events, "ApprovalRequested")).toMatchObject([{ guard: "core", also: ["judge"] }])
      const known = yield* by({ ...told, open: true }, { ...told, open: true })
      expect(only(known.events, "ApprovalRequested")).toEqual([])
    })
  )

  it.effect("a call that is told gets its result at once, and its request stays open; asked again, none is added", () =>
    Effect.gen(function* () {
      const { events, here, outcome } = yield* driven(ruling(() => ({ _tag: "TellModel", message: "later" })))
      expect(outcome).toMatchObject({ _tag: "Completed" })
      expect(only(events, "ApprovalRequested")).toMatchObject([{ mode: "tell-model", guard: "core" }])
      expect(only(events, "ToolCallCompleted")).toMatchObject([
        { ending: "deferred", isFailure: true, result: { error: "later" } }
      ])
      expect(yield* here(Run.get(runId))).toMatchObject({ deferred: [{ id: "t1.0", name: "pay" }] })
      yield* here(expectValid(runId))
      const known = yield* driven(ruling(() => ({ _tag: "TellModel", message: "later", open: true })))
      expect(only(known.events, "ApprovalRequested")).toEqual([])
    })
  )
})

describe("an approval with edited arguments", () => {
  it.effect("is judged again: what the guards set aside for the new arguments is what its start says", () =>
    Effect.gen(function* () {
      const reserving = judging(({ proposal }) =>
        proposal._tag === "Call"
          ? { _tag: "Allow", reservation: { units: Number(JSON.stringify(proposal.arguments).length) } }
          : Guard.allow
      )
      const { drive, here } = yield* driven(reserving)
      const digest = yield* here(digestOf(runId, "t1.0"))
      yield* here(answer(runId, "t1.0", { _tag: "Approve", digest, edited: { amount: 1000 } }))
      yield* drive(resume)
      expect(only(yield* here(eventsOf(runId)), "ToolCallStarted")).toMatchObject([
        { reservations: { judge: { units: '{"amount":1000}'.length } } }
      ])
    })
  )
})

describe("who may answer", () => {
  const desk = plugin({ name: "desk", mayAnswer: () => Effect.succeed(true) })

  it.effect("is journaled with the Run's plugins; a Run that goes on without them takes answers again", () =>
    Effect.gen(function* () {
      const { events, here, process } = yield* driven(desk)
      expect(only(events, "RunStarted")).toMatchObject([{ plugins: ["desk"], answering: ["desk"] }])
      expect(yield* here(told(approve(runId, "t1.0")))).toBe("Fatal PluginMissing")
      const model = yield* ScriptedModel.make(script.slice(1))
      yield* here(Run.pause({ runId }))
      yield* process({ model })(Run.resume(clerk, { runId, without: ["desk"] }))
      expect(only(yield* here(eventsOf(runId)), "AttemptStarted").at(-1)).toMatchObject({ answering: [] })
      expect(yield* here(told(approve(runId, "t1.0")))).toBe("void")
    })
  )
})
