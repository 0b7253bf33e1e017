import { expect, it } from "@effect/vitest"
import { Agent, MemoryStore, Run, type RunEvent, ToolOptions } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import { LoopGuard } from "@waystone/policy"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Repeats from "../src/Repeats.ts"
import { journal, lived } from "./Lives.ts"

const parameters = Schema.Struct({ q: Schema.Number, why: Schema.optionalKey(Schema.String) })
const Search = Tool.make("search", { parameters, success: Schema.String }).annotate(Tool.Readonly, true)
const Look = Tool.make("look", { parameters, success: Schema.String }).annotate(Tool.Readonly, true)
const Wait = Tool.make("wait", { parameters, success: Schema.String })
  .annotate(Tool.Readonly, true)
  .annotate(ToolOptions.Polling, true)
const Tools = Toolkit.make(Search, Look, Wait)

const { call, calls, reply, text } = ScriptedModel
const limits = { maxTurns: 40, maxConsecutiveFailures: 30 }
const agent = Agent.make("searcher", {
  instructions: "Search.",
  tools: [Tools],
  limits,
  requires: [LoopGuard.LoopGuard]
})

/** Handlers whose results differ each time. */
const handlers = () => {
  let n = 0
  const answer = () => Effect.sync(() => `result ${++n}`)
  return Tools.toLayer({ search: answer, look: answer, wait: answer })
}

interface Ran {
  readonly outcome: unknown
  readonly verdicts: ReadonlyArray<{ readonly verdict: string; readonly calls: number; readonly message?: string }>
}

let runs = 0
/** What came of it, and after how many finished calls each verdict was given. */
const run = (script: ScriptedModel.Script, options?: LoopGuard.Options, used: typeof agent = agent) =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel.make(script)
    const runId = `loop-${++runs}`
    const outcome = yield* Run.start(used, { runId, task: "Search." }).pipe(
      Effect.provide(Layer.mergeAll(model.layer, handlers(), LoopGuard.layer(options)))
    )
    const ran: Ran = { outcome, verdicts: verdictsOf(yield* journal(runId)) }
    return { ...ran, requests: yield* model.requests, left: yield* model.remaining }
  })

const verdictsOf = (events: ReadonlyArray<RunEvent.RunEvent>): Ran["verdicts"] => {
  let finished = 0
  return events.flatMap((event) => {
    if (event._tag === "ToolCallCompleted") finished++
    return event._tag === "VerdictGiven" && event.guard === "loop-guard"
      ? [
          {
            verdict: event.verdict,
            calls: finished,
            ...(event.message === undefined ? {} : { message: event.message })
          }
        ]
      : []
  })
}

const many = <A>(times: number, make: (i: number) => A): Array<A> => Array.from({ length: times }, (_, i) => make(i))
const search = (q: number) => call("search", { q })
const stoppedAt = { _tag: "Stopped", reason: { _tag: "Loop" } }

it.layer(MemoryStore.layer)((it) => {
  it.effect("RI-157 the same call nudges at 3 and stops at 5, whatever the order of its keys", () =>
    Effect.gen(function* () {
      const ran = yield* run(many(9, (i) => call("search", i % 2 === 0 ? { q: 1, why: "x" } : { why: "x", q: 1 })))
      expect(ran.outcome).toMatchObject(stoppedAt)
      expect(ran.verdicts).toMatchObject([
        { verdict: "Nudge", calls: 3 },
        { verdict: "Stop", calls: 5 }
      ])
      expect(ran.verdicts[0]?.message).toContain('3 times in a row: the same call, search({"q":1,"why":"x"})')
      expect(ran.verdicts[0]?.message).toContain("Change the approach")
      expect(JSON.stringify(ran.requests[3])).toContain("You repeat yourself")
      expect(JSON.stringify(ran.requests[2])).not.toContain("You repeat yourself")
      expect(ran.left).toBe(4)
    })
  )

  it.effect("RI-157 a cosmetic argument does not defeat it", () =>
    Effect.gen(function* () {
      const script = [...many(6, (i) => call("search", { q: 1, why: `reason ${i}` })), text("done")]
      expect((yield* run(script)).verdicts).toEqual([])
      const told = yield* run(script, { cosmetic: { search: ["why"] } })
      expect(told.outcome).toMatchObject(stoppedAt)
      expect(told.verdicts.map(({ calls }) => calls)).toEqual([3, 5])
    })
  )

  it.effect("RI-157 A-B-A-B counts by its rounds", () =>
    Effect.gen(function* () {
      const ran = yield* run(many(20, (i) => call(i % 2 === 0 ? "search" : "look", { q: 1 })))
      expect(ran.outcome).toMatchObject(stoppedAt)
      expect(ran.verdicts).toMatchObject([
        { verdict: "Nudge", calls: 6 },
        { verdict: "Stop", calls: 10 }
      ])
      expect(ran.verdicts[0]?.message).toContain('search({"q":1}) then look({"q":1})')
    })
  )

  it.effect("RI-157 a tool that is annotated as polling, or named in the options, may be called ten times", () =>
    Effect.gen(function* () {
      const annotated = yield* run([...many(10, () => call("wait", { q: 1 })), text("done")])
      expect(annotated).toMatchObject({ outcome: { _tag: "Completed" }, verdicts: [] })
      const named = yield* run([...many(10, () => search(1)), text("done")], { polling: ["search"] })
      expect(named).toMatchObject({ outcome: { _tag: "Completed" }, verdicts: [] })
    })
  )

  it.effect("looking again after each wait is no loop", () =>
    Effect.gen(function* () {
      const ran = yield* run([...many(12, (i) => call(i % 2 === 0 ? "search" : "wait", { q: 1 })), text("done")])
      expect(ran).toMatchObject({ outcome: { _tag: "Completed" }, verdicts: [] })
    })
  )

  it.effect("RI-157 invalid calls of one tool count, whatever is wrong with them", () =>
    Effect.gen(function* () {
      const ran = yield* run(many(8, (i) => call("search", { q: `not a number ${i}` })))
      expect(ran.outcome).toMatchObject(stoppedAt)
      expect(ran.verdicts.map(({ calls }) => calls)).toEqual([3, 5])
      expect(ran.verdicts[0]?.message).toContain("calls of search that are not valid")
    })
  )

  it.effect("the same long words beside different calls count; a phrase before different calls does not", () =>
    Effect.gen(function* () {
      const says = (words: string) => many(7, (i) => reply([text(words), search(i)]))
      const long = "I will now look for the reason why this does not work and then repair it. ".repeat(4)
      const ran = yield* run(says(long))
      expect(ran.outcome).toMatchObject(stoppedAt)
      expect(ran.verdicts.map(({ calls }) => calls)).toEqual([3, 5])
      const phrase = yield* run([...says("Let me look."), text("done")])
      expect(phrase).toMatchObject({ outcome: { _tag: "Completed" }, verdicts: [] })
    })
  )

  it.effect("who changes the approach after the nudge goes on, and is told again of the next loop", () =>
    Effect.gen(function* () {
      const ran = yield* run([
        ...many(4, () => search(1)),
        search(2),
        ...many(3, () => search(3)),
        search(4),
        ...many(4, () => search(5)),
        text("done")
      ])
      expect(ran.outcome).toMatchObject({ _tag: "Completed" })
      expect(ran.verdicts.map(({ calls, verdict }) => [verdict, calls])).toEqual([
        ["Nudge", 3],
        ["Nudge", 8],
        ["Nudge", 12]
      ])
    })
  )

  it.effect("LG1 many same calls in one reply are told of before the Run is stopped", () =>
    Effect.gen(function* () {
      const ran = yield* run([calls(many(7, () => search(1))), search(1), text("never asked for")])
      expect(ran.outcome).toMatchObject(stoppedAt)
      expect(ran.verdicts.map(({ calls, verdict }) => [verdict, calls])).toEqual([
        ["Nudge", 7],
        ["Stop", 8]
      ])
    })
  )

  it.effect("with `results` the same call whose result changes is no loop", () =>
    Effect.gen(function* () {
      const ran = yield* run([...many(8, () => search(1)), text("done")], { results: true })
      expect(ran).toMatchObject({ outcome: { _tag: "Completed" }, verdicts: [] })
    })
  )

  it.effect("R2 a reopening ends the repetition", () =>
    Effect.gen(function* () {
      const model = yield* ScriptedModel.make([...many(7, () => search(1)), text("done")])
      const live = Layer.mergeAll(model.layer, handlers(), LoopGuard.layer())
      const stopped = yield* Run.start(agent, { runId: "again", task: "Search." }).pipe(Effect.provide(live))
      expect(stopped).toMatchObject(stoppedAt)
      const outcome = yield* Run.resume(agent, { runId: "again", reopen: true }).pipe(Effect.provide(live))
      expect(outcome).toMatchObject({ _tag: "Completed" })
      expect(verdictsOf(yield* journal("again"))).toHaveLength(2)
    })
  )

  it.effect("RI-061 LG3 the final turn of a limit is not held up, and its answer is kept", () =>
    Effect.gen(function* () {
      const final = Agent.make("searcher", {
        instructions: "Search.",
        tools: [Tools],
        limits: { maxTurns: 5, finalAnswer: true },
        requires: [LoopGuard.LoopGuard]
      })
      const ran = yield* run([...many(5, () => search(1)), text("what I know so far")], undefined, final)
      expect(ran.outcome).toMatchObject({ _tag: "Stopped", reason: { _tag: "MaxTurns" }, answer: "what I know so far" })
      expect(ran.requests.at(-1)?.tools).toEqual([])
    })
  )

  it.effect("RI-035 words without end in one streamed reply stop the Run, beside the guard", () =>
    Effect.gen(function* () {
      const strict = Agent.make("searcher", {
        instructions: "Search.",
        tools: [Tools],
        limits: { maxRepeats: 8 },
        requires: [LoopGuard.LoopGuard]
      })
      const ran = yield* run([text("I will do it.\n".repeat(5000))], undefined, strict)
      expect(ran.outcome).toMatchObject({ _tag: "Stopped", reason: { _tag: "RepetitiveOutput" } })
    })
  )

  it.effect.each([
    { options: { nudgeAt: 1 }, field: "nudgeAt" },
    { options: { nudgeAt: 2.5 }, field: "nudgeAt" },
    { options: { stopAt: 3 }, field: "stopAt" },
    { options: { longestCycle: 0 }, field: "longestCycle" },
    { options: { cosmetic: { search: "why" } }, field: "cosmetic.search" },
    { options: { stopsAt: 4 }, field: "stopsAt" }
  ])("$options is refused by the name of its field", ({ field, options }) =>
    Effect.gen(function* () {
      const error = yield* Layer.build(LoopGuard.layer(options as LoopGuard.Options)).pipe(Effect.flip)
      expect(error).toMatchObject({ _tag: "OptionsInvalid", policy: "LoopGuard", field })
      expect(error.message).toContain(field)
    }).pipe(Effect.scoped)
  )

  it.effect("the defaults are 3, 5, patterns of 2, arguments alone, no polling, nothing cosmetic", () =>
    Effect.gen(function* () {
      expect(yield* Schema.decodeUnknownEffect(LoopGuard.Options)({})).toEqual({
        nudgeAt: 3,
        stopAt: 5,
        longestCycle: 2,
        results: false,
        polling: [],
        cosmetic: {}
      })
    })
  )
})

it("R2 a message of the user ends the repetition, and what is remembered stays bounded", () => {
  const settings = { nudgeAt: 3, stopAt: 5, longestCycle: 2, results: false, polling: [], cosmetic: {} }
  const fold = Repeats.fold("loop-guard", settings)
  const called = (memory: Repeats.Memory, turn: number) =>
    [
      {
        _tag: "TurnCompleted",
        at: 0,
        turn,
        reply: [{ type: "tool-call", id: "a", name: "search", params: { q: 1 }, providerExecuted: false }],
        finish: "tool-calls",
        usage: { input: 0, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 }
      } as const,
      {
        _tag: "ToolCallCompleted",
        at: 0,
        callId: `t${turn}.0`,
        name: "search",
        isFailure: false,
        result: "x",
        ending: "executed"
      } as const
    ].reduce<Repeats.Memory>(fold, memory)
  const many = Array.from({ length: 50 }, (_, i) => i + 1).reduce(called, Repeats.initial)
  expect(many.calls).toHaveLength(10)
  expect(Repeats.worst(settings, many).count).toBe(10)
  const spoken = fold(many, { _tag: "MessageReceived", at: 0, id: "m", content: "again, please" })
  expect(Repeats.worst(settings, called(spoken, 51)).count).toBe(1)
})

it.live("LG2 it trips after the same calls when the process dies before any append", () =>
  Effect.gen(function* () {
    // Answers by what stands in the request, so crashes do not derail it.
    const services = Layer.mergeAll(
      ScriptedModel.layer(() => search(1)),
      handlers(),
      LoopGuard.layer()
    )
    const whole = yield* lived(agent, services, 0)
    const expected = verdictsOf(whole.events)
    expect(expected.map(({ calls, verdict }) => [verdict, calls])).toEqual([
      ["Nudge", 3],
      ["Stop", 5]
    ])
    for (let at = 2; at <= whole.appends; at++) {
      const { events } = yield* lived(agent, services, at)
      expect([at, verdictsOf(events)]).toEqual([at, expected])
    }
  })
)
