import { describe, expect, it } from "@effect/vitest"
import { MemoryStore, ModelInfo, Run } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Prompt from "effect/ai/Prompt"
import * as Budget from "../src/Budget.ts"
import * as Prices from "../src/Prices.ts"
import { fold, initial, none } from "../src/Spending.ts"
import {
  agent,
  atOnce,
  calling,
  eventsOf,
  greedy,
  handlers,
  info,
  input,
  ledger,
  only,
  Priced,
  saying,
  spent
} from "./support/budgets.ts"

const stopped = (reason: string) => expect.objectContaining({ _tag: "Stopped", reason: { _tag: reason } })
const exact = { hiddenTokens: 0 }
const forever = calling("pay")

describe("Budget", () => {
  it.effect("B1 stops before the model call that could pass the budget, and says why in the journal", () =>
    Effect.gen(function* () {
      const { events, outcome, paid } = yield* spent(Budget.layer({ ...exact, tokens: 6000 }), forever)
      expect(outcome).toEqual(stopped("Budget"))
      expect(paid.tokens).toBeLessThanOrEqual(6000)
      expect(paid.requests).toBeGreaterThan(2)
      expect(only(events, "VerdictGiven").at(-1)).toMatchObject({
        guard: "budget",
        verdict: "Stop",
        message: expect.stringMatching(/budget of tokens is too small .* of 6000 used/)
      })
    })
  )

  it.effect("sets aside before each turn, in its TurnStarted", () =>
    Effect.gen(function* () {
      const { events } = yield* spent(
        Layer.merge(Priced, Budget.layer({ ...exact, tokens: 10_000, costUsd: 1, turns: 9 })),
        (number) => (number < 2 ? calling("pay")(number, {} as never) : saying("done"))
      )
      for (const { reservations } of only(events, "TurnStarted")) {
        expect(reservations?.["budget"]).toEqual({
          turns: 1,
          tokens: expect.any(Number),
          costNanoUsd: expect.any(Number)
        })
      }
    })
  )

  it.effect("B1 holds costs to the dearest class of tokens", () =>
    Effect.gen(function* () {
      const { outcome, paid } = yield* spent(
        Layer.merge(Priced, Budget.layer({ ...exact, costUsd: 20_000 / 1e9 })),
        forever
      )
      expect(outcome).toEqual(stopped("Budget"))
      expect(paid.costNanoUsd).toBeLessThanOrEqual(20_000)
      expect(paid.requests).toBeGreaterThan(2)
    })
  )

  it.effect("counts turns and calls, those of one reply in call order", () =>
    Effect.gen(function* () {
      const turns = yield* spent(Budget.layer({ turns: 3 }), forever)
      expect(turns.outcome).toEqual(stopped("Budget"))
      expect(turns.paid.requests).toBe(3)
      for (const name of ["pay", "look"] as const) {
        const { events, outcome } = yield* spent(Budget.layer({ calls: 3 }), calling(name, 2))
        expect(outcome).toEqual(stopped("Budget"))
        // The fourth call stops the Run before the third of the same reply begins.
        const endings = only(events, "ToolCallCompleted").map(({ ending }) => ending)
        expect(endings).toEqual(["executed", "executed", "not-executed", "not-executed"])
      }
    })
  )

  it.effect("RI-005 a single call that could use more than the budget is not made at all", () =>
    Effect.gen(function* () {
      const { outcome, paid } = yield* spent(Budget.layer({ tokens: 100 }), forever)
      expect(outcome).toEqual(stopped("Budget"))
      expect(paid.requests).toBe(0)
    })
  )

  it.effect("an answer is cut to what the budget has left, but not below minOutputTokens", () =>
    Effect.gen(function* () {
      const model = { ...info, maxOutput: 3000 }
      const seen: Array<number | undefined> = []
      const { events, paid } = yield* spent(Budget.layer({ ...exact, tokens: 12_000, minOutputTokens: 500 }), forever, {
        model
      })
      for (const { settings } of only(events, "TurnStarted"))
        seen.push(settings?.["maxOutputTokens"] as number | undefined)
      expect(seen[0]).toBeUndefined() // the model's own limit fits
      expect(seen.at(-1)).toBeLessThan(3000)
      expect(seen.at(-1)).toBeGreaterThanOrEqual(500)
      expect(paid.tokens).toBeLessThanOrEqual(12_000)
    })
  )

  it.effect("RI-061 final-answer gives one last request without tools, paid from the share that was kept", () =>
    Effect.gen(function* () {
      const { events, outcome, paid } = yield* spent(
        Budget.layer({ ...exact, tokens: 9000, onExhausted: "final-answer", finalShare: 0.3 }),
        forever
      )
      expect(outcome).toMatchObject({ _tag: "Stopped", reason: { _tag: "Budget" }, answer: "all that I know" })
      expect(paid.toolless).toBe(1)
      expect(paid.tokens).toBeLessThanOrEqual(9000)
      expect(only(events, "TurnStarted").at(-1)?.final).toEqual({ _tag: "Budget" })
    })
  )

  it.effect("finalShare is kept from all turns but the last one", () =>
    Effect.gen(function* () {
      const requests = (finalShare: number) =>
        Effect.map(
          spent(Budget.layer({ ...exact, tokens: 9000, onExhausted: "final-answer", finalShare }), forever),
          ({ paid }) => [paid.requests - paid.toolless, paid.toolless]
        )
      const [[all = 0], [some = 0], none] = yield* Effect.all([requests(0), requests(0.5), requests(1)])
      expect(all).toBeGreaterThan(some)
      expect(some).toBeGreaterThan(0)
      expect(none).toEqual([0, 1])
    })
  )

  it.effect("RI-061 final-answer keeps the last of the turns, and comes when the calls are used up", () =>
    Effect.gen(function* () {
      const turns = yield* spent(Budget.layer({ turns: 3, onExhausted: "final-answer" }), forever)
      expect([turns.paid.requests, turns.paid.toolless]).toEqual([3, 1])
      const calls = yield* spent(Budget.layer({ calls: 3, onExhausted: "final-answer" }), calling("pay", 2))
      expect(calls.outcome).toMatchObject({ reason: { _tag: "Budget" }, answer: "all that I know" })
      const endings = only(calls.events, "ToolCallCompleted").map(({ ending }) => ending)
      expect(endings).toEqual(["executed", "executed", "executed", "refused"])
    })
  )

  it.effect("ask waits for a person; each yes grants the budget once more, a no stops the Run", () =>
    Effect.gen(function* () {
      const paid = ledger()
      const live = Layer.mergeAll(greedy(paid, forever), handlers, Budget.layer({ turns: 2, onExhausted: "ask" }))
      yield* Effect.gen(function* () {
        const first = yield* Run.start(agent, input).pipe(Effect.provide(live))
        expect(first).toMatchObject({ _tag: "Suspended", waiting: [{ id: "s3", guard: "budget", kind: "approval" }] })
        for (const [id, requests] of [
          ["s3", 4],
          ["s5", 6]
        ] as const) {
          const { waiting } = yield* Run.get("r")
          const answer = { _tag: "Approve", digest: waiting[0]?.digest ?? "" } as const
          yield* Run.answer(agent, { runId: "r", callId: id, answer, by: "ann" })
          yield* Run.resume(agent, { runId: "r" }).pipe(Effect.provide(live))
          expect(paid.requests).toBe(requests)
        }
        const { waiting } = yield* Run.get("r")
        const answer = { _tag: "Deny", digest: waiting[0]?.digest ?? "", reason: "enough" } as const
        yield* Run.answer(agent, { runId: "r", callId: "s7", answer, by: "ann" })
        const last = yield* Run.resume(agent, { runId: "r" }).pipe(Effect.provide(live))
        expect(last).toMatchObject({ _tag: "Stopped", reason: { _tag: "Denied", guard: "budget" } })
      }).pipe(Effect.provide(MemoryStore.layer))
    })
  )

  it.effect("ask asks about a call, too, and about nothing that one more budget would not cover", () =>
    Effect.gen(function* () {
      const calls = yield* spent(Budget.layer({ calls: 1, onExhausted: "ask" }), calling("pay", 2))
      expect(calls.outcome).toMatchObject({ _tag: "Suspended", waiting: [{ id: "t1.1", guard: "budget" }] })
      const vain = yield* spent(Budget.layer({ tokens: 100, onExhausted: "ask" }), forever)
      expect(vain.outcome).toEqual(stopped("Budget"))
    })
  )

  it.effect("the calls of one reply that are agreed to share what was granted, as far as it goes", () =>
    Effect.gen(function* () {
      const budget = Budget.layer({ calls: 2, onExhausted: "ask" })
      const live = Layer.mergeAll(greedy(ledger(), calling("pay", 5)), handlers, budget)
      yield* Effect.gen(function* () {
        const first = yield* Run.start(agent, input).pipe(Effect.provide(live))
        expect(first).toMatchObject({
          waiting: [
            { id: "t1.2", reason: expect.stringContaining("0 of 2 used, and 2 more of this reply may run") },
            { id: "t1.3" },
            { id: "t1.4" }
          ]
        })
        for (const { digest = "", id: callId } of (yield* Run.get("r")).waiting)
          yield* Run.answer(agent, { runId: "r", callId, answer: { _tag: "Approve", digest }, by: "ann" })
        // Five of six are used, so one more call may run unasked, and not three.
        const next = yield* Run.resume(agent, { runId: "r" }).pipe(Effect.provide(live))
        expect(next).toMatchObject({ waiting: ["t2.1", "t2.2", "t2.3", "t2.4"].map((id) => ({ id })) })
      }).pipe(Effect.provide(MemoryStore.layer))
    })
  )

  it.effect("warns once, in the journal, from 80 percent on", () =>
    Effect.gen(function* () {
      const { events } = yield* spent(Budget.layer({ turns: 10 }), forever)
      const notes = only(events, "VerdictGiven").filter(({ verdict }) => verdict === "Allow")
      expect(notes).toMatchObject([
        { guard: "budget", on: "s9", note: { warning: { turns: { spent: 8, budget: 10 } } } }
      ])
      const early = yield* spent(Budget.layer({ turns: 10, warnAt: 0.5 }), forever)
      expect(only(early.events, "VerdictGiven")[0]?.on).toBe("s6")
    })
  )
})

describe("what is not known", () => {
  it("SP3 a turn whose cost turns out to be unknown has spent what was set aside for its cost", () => {
    const reservations = { budget: { costNanoUsd: 700 } }
    const usage = { input: 1, cacheRead: 0, cacheWrite: 0, output: 2, reasoning: 0 }
    const begun = fold(initial, { _tag: "TurnStarted", at: 0, turn: 1, stream: true, reservations })
    const ended = fold(begun, { _tag: "TurnCompleted", at: 1, turn: 1, reply: [], finish: "stop", usage })
    expect(ended.spent).toEqual({ tokens: 3, costNanoUsd: 700, turns: 1, calls: 0 })
    expect(ended.reserved).toEqual(none)
  })

  it.effect("B3 an unknown price is refused, named, and never free", () =>
    Effect.gen(function* () {
      const { events, outcome, paid } = yield* spent(Budget.layer({ costUsd: 5 }), forever)
      expect(outcome).toEqual(stopped("Budget"))
      expect(paid.requests).toBe(0)
      expect(only(events, "VerdictGiven")[0]?.message).toMatch(/price of p\/m is not known/)
    })
  )

  it.effect("B3 a price of 0 is known, and a Run without a cost budget needs none", () =>
    Effect.gen(function* () {
      const free = Layer.succeed(ModelInfo.Prices, { cost: () => 0 })
      for (const budget of [Layer.merge(free, Budget.layer({ costUsd: 5 })), Budget.layer({ tokens: 100_000 })]) {
        const { outcome } = yield* spent(budget, () => saying("done"))
        expect(outcome._tag).toBe("Completed")
      }
    })
  )

  it.effect("B3 with ask a person lets one turn pass; tokens stay within the budget", () =>
    Effect.gen(function* () {
      const paid = ledger()
      const budget = Budget.layer({ costUsd: 5, tokens: 50_000, onUnknown: "ask" })
      const live = Layer.mergeAll(greedy(paid, forever), handlers, budget)
      yield* Effect.gen(function* () {
        for (const turn of [1, 2]) {
          const outcome = yield* Run.start(agent, input).pipe(Effect.provide(live))
          expect(outcome).toMatchObject({ _tag: "Suspended", waiting: [{ id: `s${turn}`, guard: "budget-unknown" }] })
          expect(paid.requests).toBe(turn - 1)
          const { waiting } = yield* Run.get("r")
          const answer = { _tag: "Approve", digest: waiting[0]?.digest ?? "" } as const
          yield* Run.answer(agent, { runId: "r", callId: `s${turn}`, answer, by: "ann" })
        }
        const [first] = only(yield* eventsOf(), "TurnStarted")
        expect(first?.reservations?.["budget"]?.["tokens"]).toBeGreaterThan(100)
      }).pipe(Effect.provide(MemoryStore.layer))
    })
  )

  it.effect("B3 a file has no size by its bytes: the model's window stands for it, and without one it is refused", () =>
    Effect.gen(function* () {
      const task = [
        Prompt.makePart("text", { text: "Look." }),
        Prompt.makePart("file", { mediaType: "image/png", data: new URL("https://example.com/a.png") })
      ]
      for (const [window, outcome] of [
        [5000, "Completed"],
        [undefined, "Stopped"]
      ] as const) {
        const { maxOutput, model, provider } = info
        const known = { model, provider, maxOutput, ...(window === undefined ? undefined : { window }) }
        const live = Layer.mergeAll(
          greedy(ledger(), () => saying("done"), known),
          handlers,
          Budget.layer({ tokens: 20_000 }),
          MemoryStore.layer
        )
        const { _tag } = yield* Run.start(agent, { runId: "r", task }).pipe(Effect.provide(live))
        expect(_tag).toBe(outcome)
      }
    })
  )
})

describe("what was paid", () => {
  const { delta, stream, text } = ScriptedModel
  const streaming = { ...exact, tokens: 100_000 }

  it.effect("RI-101 failed and aborted tries count: as reported, else as an estimate that says so", () =>
    Effect.gen(function* () {
      const cut = stream([delta("half an answer")], { cut: true })
      for (const [script, tokens, estimated] of [
        [[cut, text("done", { usage: { input: 100, output: 20 } })], 120, true],
        [[text("done", { usage: { input: 100, output: 20 } })], 120, undefined]
      ] as const) {
        const model = yield* ScriptedModel.make(script)
        const live = Layer.mergeAll(model.layer, handlers, Budget.layer(streaming), MemoryStore.layer, atOnce)
        const { usage } = yield* Run.start({ ...agent, stream: true }, input).pipe(Effect.provide(live))
        const total = usage.input + usage.output
        expect(estimated === true ? total > tokens : total === tokens).toBe(true)
        expect(usage.estimated).toBe(estimated)
      }
    })
  )

  it.effect("RI-101 every failed try that the provider charged for is within the budget", () =>
    Effect.gen(function* () {
      const { events, paid } = yield* spent(
        Layer.merge(atOnce, Budget.layer({ ...exact, tokens: 9000 })),
        (number, options) => (number % 2 === 1 ? "fail" : calling("pay")(number, options))
      )
      expect(paid.tokens).toBeLessThanOrEqual(9000)
      const used = only(events, "TurnCompleted").reduce((sum, { usage }) => sum + usage.cacheWrite + usage.reasoning, 0)
      const failed = only(events, "TurnFailed").reduce((sum, { usage }) => sum + usage.cacheWrite + usage.reasoning, 0)
      expect(used + failed).toBe(paid.tokens)
    })
  )

  it.effect("RI-166 cached tokens are paid once, whether the provider's total includes them or not", () =>
    Effect.gen(function* () {
      const table = { "p/m": { input: 1_000_000, cacheRead: 100_000, output: 1_000_000 } }
      const layer = Layer.merge(Prices.layer({ table, maintained: false }), Layer.succeed(ModelInfo.ModelInfo, info))
      for (const [usage, usd] of [
        [{ input: 86, cacheRead: 1920 }, 278],
        [{ input: 9, cacheRead: 17_102 }, 1719.2]
      ] as const) {
        const model = yield* ScriptedModel.make([text("done", { usage: { ...usage, output: 0 } })])
        const live = Layer.mergeAll(
          model.layer,
          handlers,
          layer,
          Budget.layer({ costUsd: 10_000_000 }),
          MemoryStore.layer
        )
        const events = yield* Effect.andThen(Run.start(agent, input), eventsOf()).pipe(Effect.provide(live))
        expect(only(events, "TurnCompleted")[0]?.costNanoUsd).toBe(usd * 1e9)
      }
    })
  )
})

describe("options", () => {
  it("have these defaults", () => {
    expect(Budget.defaults).toEqual({
      onExhausted: "stop",
      onUnknown: "stop",
      warnAt: 0.8,
      finalShare: 0.1,
      paidTries: 2,
      maxOutputTokens: 4096,
      minOutputTokens: 256,
      hiddenTokens: 1024
    })
  })

  it.effect("that are left out limit nothing, so nothing is set aside for them", () =>
    Effect.gen(function* () {
      const { events, outcome, paid } = yield* spent(
        Layer.merge(Priced, Budget.layer({})),
        (number, options) => (number < 38 ? calling("pay", 2)(number, options) : saying("done")),
        { model: { ...info, maxOutput: 1e12 } }
      )
      expect(outcome._tag).toBe("Completed")
      expect(paid.requests).toBe(38)
      expect(paid.tokens).toBeGreaterThan(1e12)
      for (const { reservations, settings } of only(events, "TurnStarted")) {
        expect(reservations?.["budget"]).toEqual({ turns: 1 })
        expect(settings).toBeUndefined()
      }
    })
  )

  it.effect("that are wrong are named", () =>
    Effect.gen(function* () {
      for (const [wrong, field] of [
        [{ tokens: -1 }, "tokens"],
        [{ costUsd: "5" }, "costUsd"],
        [{ warnAt: 80 }, "warnAt"],
        [{ onExhausted: "halt" }, "onExhausted"],
        [{ token: 5 }, "token"]
      ] as const) {
        const error = yield* Effect.flip(Layer.build(Budget.layer(wrong as Budget.Options)))
        expect(error).toMatchObject({ _tag: "OptionsInvalid", policy: "Budget", field })
      }
    }).pipe(Effect.scoped)
  )

  it.effect("the defaults are what holds: hiddenTokens, maxOutputTokens and two tries are set aside", () =>
    Effect.gen(function* () {
      const { maxOutput: _, ...unsaid } = info
      const { events } = yield* spent(Budget.layer({ tokens: 100_000 }), () => saying("done"), { model: unsaid })
      const { events: plain } = yield* spent(
        Budget.layer({ tokens: 100_000, hiddenTokens: 0, paidTries: 1, maxOutputTokens: 1 }),
        () => saying("done"),
        { model: unsaid }
      )
      const tokens = (some: typeof events) => only(some, "TurnStarted")[0]?.reservations?.["budget"]?.["tokens"] ?? 0
      expect(tokens(events)).toBe(2 * (tokens(plain) - 1 + 1024 + 4096))
      expect(only(events, "TurnStarted")[0]?.settings).toEqual({ maxOutputTokens: 4096 })
    })
  )
})
