import { describe, expect, it } from "@effect/vitest"
import { RedisStore } from "@waystone/checkpoint-redis"
import { SqliteStore } from "@waystone/checkpoint-sqlite"
import { Agent, CheckpointStore, MemoryStore, Owner, Run, type RunEvent } from "@waystone/core"
import { DyingStore, Mortal } from "@waystone/core/testing"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as TestServer from "../../checkpoint-redis/test/support/server.ts"
import * as Budget from "../src/Budget.ts"
import { fold, initial, none, type Spending } from "../src/Spending.ts"
import { eventsOf, greedy, handlers, input, Kit, ledger, type Next, only, Priced, saying } from "./support/budgets.ts"

const shape = { parameters: Schema.Struct({ n: Schema.Number }), success: Schema.String }
const limits = { maxTurns: 40, maxConsecutiveFailures: 40 }
const Sign = Tool.make("sign", { ...shape, needsApproval: true })
const signing = Toolkit.make(Sign)
const signed = signing.toLayer({ sign: ({ n }) => Effect.succeed(`signed ${n}`) })
const helping = (tools: ReadonlyArray<typeof Kit | typeof signing>) =>
  Agent.make("helper", { instructions: "Help.", tools, stream: false, limits })
const helper = helping([Kit])
const signer = helping([Kit, signing])
const lead = (share?: { readonly [unit: string]: number }, who = helper) =>
  Agent.make("lead", {
    instructions: "Lead.",
    tools: [Kit, Agent.asTool(who, { name: "help", description: "Helps.", ...(share && { share }) })],
    stream: false,
    concurrency: 5,
    limits
  })

const helps = (count: number) =>
  Array.from({ length: count }, (_, i) => ({
    type: "tool-call" as const,
    id: `h${i}`,
    name: "help",
    params: { task: `part ${i}` }
  }))

/** The lead has so many helpers work; each pays so often, or without end. The one of that part has to sign first. */
const team =
  (helpers: number, pays: number, signs?: number): Next =>
  (number, { prompt }) => {
    const turn = prompt.content.filter(({ role }) => role === "assistant").length
    const leads = JSON.stringify(prompt.content[0]).includes("Lead.")
    if (leads) return turn === 0 ? helps(helpers) : saying("all done")
    if (turn === 0 && signs !== undefined && JSON.stringify(prompt.content).includes(`part ${signs}`))
      return [{ type: "tool-call", id: `s${number}`, name: "sign", params: { n: turn } }]
    return turn < pays ? [{ type: "tool-call", id: `p${number}`, name: "pay", params: { n: turn } }] : saying("helped")
  }

type Open = Effect.Effect<CheckpointStore.CheckpointStore["Service"], unknown, Scope.Scope>

const opened = <E>(layer: Layer.Layer<CheckpointStore.CheckpointStore, E>): Open =>
  Effect.map(Layer.build(layer), (context) => Context.get(context, CheckpointStore.CheckpointStore))

/** An empty store of each kind. */
const stores: ReadonlyArray<{ readonly kind: string; readonly isThere: boolean; readonly open: Open }> = [
  { kind: "memory", isThere: true, open: MemoryStore.make },
  {
    kind: "SQLite",
    isThere: true,
    open: Effect.flatMap(
      Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "waystone-budget-"))),
        (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
      ),
      (folder) => opened(SqliteStore.layer({ file: join(folder, "runs.db") }))
    )
  },
  {
    kind: "Redis",
    isThere: TestServer.canStart,
    open: Effect.flatMap(TestServer.scoped(), ({ url }) => opened(RedisStore.layerUrl({ url, onWeakServer: "ignore" })))
  }
]
if (!TestServer.canStart) console.log(TestServer.skipped("budgets of sub-agents on Redis"))

/** One Run with what was spent; it can die at an append. */
const one = (agent: ReturnType<typeof lead>, budget: Budget.Options, next: Next, open: Open = MemoryStore.make) =>
  Effect.gen(function* () {
    const store = yield* open
    const paid = ledger()
    const services = Layer.mergeAll(
      greedy(paid, next),
      handlers,
      signed,
      Priced,
      Budget.layer({ hiddenTokens: 0, ...budget })
    )
    let appends = 0 // of all lives
    const life = (dies?: number, fate: DyingStore.Fate = "die-after") =>
      Effect.gen(function* () {
        const mortal = yield* Mortal.make
        const dying = DyingStore.make(store, mortal, () => Effect.sync(() => (appends++ === dies ? fate : "live")))
        const owner = Layer.succeed(Owner.Owner, {
          name: Effect.sync(() => `life ${Math.random()}`),
          isDead: () => Effect.succeed(true)
        })
        const live = Layer.mergeAll(services, Layer.succeed(CheckpointStore.CheckpointStore, dying), owner)
        const fiber = yield* Effect.forkDetach(Effect.provide(Run.start(agent, input), live), {
          startImmediately: true
        })
        const outcome = yield* Effect.raceFirst(Fiber.join(fiber), Effect.as(mortal.died, undefined))
        return { outcome, appends }
      })
    const read = (runId?: string) => Effect.provideService(eventsOf(runId), CheckpointStore.CheckpointStore, store)
    return { life, paid, read, store }
  })

/** What is spent and set aside after every event, and at the end. */
const folded = (events: ReadonlyArray<RunEvent.RunEvent>) => {
  let spending: Spending = initial
  let most = 0
  for (const event of events) {
    spending = fold(spending, event)
    most = Math.max(most, spending.spent.tokens + spending.reserved.tokens)
  }
  return { most, spending }
}

describe.each(stores)("a Budget and the agents below, on $kind", ({ isThere, open }) => {
  describe.skipIf(!isThere)("whose shares are what their caller has", () => {
    it.live("RI-026 B5 as many are admitted as their shares fit, and the others are an error that says so", () =>
      Effect.gen(function* () {
        const { life, paid, read } = yield* one(lead({ tokens: 40_000 }), { tokens: 100_000 }, team(5, 1), open)
        expect((yield* life()).outcome).toMatchObject({ _tag: "Completed" })
        const events = yield* read()
        expect(only(events, "ToolCallStarted").map(({ reservations }) => reservations?.["budget"])).toEqual([
          { tokens: 40_000 },
          { tokens: 40_000 }
        ])
        const refused = only(events, "ToolCallCompleted").filter(({ ending }) => ending === "refused")
        expect(refused).toHaveLength(3)
        expect(JSON.stringify(refused[0]?.result)).toMatch(/Refused by budget: the budget has \d+ tokens left/)
        expect(paid.tokens).toBeLessThanOrEqual(100_000)
        const { most, spending } = folded(events)
        expect(most).toBeLessThanOrEqual(100_000)
        expect(spending.reserved).toEqual(none)
        expect(spending.spent.tokens).toBe(paid.tokens)
      })
    )

    it.live("RI-026 one that uses up its share is stopped, and its caller is told", () =>
      Effect.gen(function* () {
        const { life, read } = yield* one(lead({ tokens: 5000 }), { tokens: 100_000 }, team(1, 1000), open)
        expect((yield* life()).outcome).toMatchObject({ _tag: "Completed", output: "all done" })
        const [child] = only(yield* read(), "ToolCallCompleted")
        expect(child).toMatchObject({ isFailure: true, error: "Budget" })
        expect(JSON.stringify(child?.result)).toContain("r.t1.0 was stopped: its budget is used up")
        expect(only(yield* read("r.t1.0"), "RunFinished")).toMatchObject([
          { outcome: { _tag: "Stopped", reason: { _tag: "Budget" } } }
        ])
        expect(folded(yield* read("r.t1.0")).most).toBeLessThanOrEqual(5000)
      })
    )

    it.live("RI-005 where nothing is left for the caller after it, that is stopped at once", () =>
      Effect.gen(function* () {
        // All that is left but the caller's first turn goes to the one below.
        const probe = yield* one(lead({ tokens: 10_000 }), { tokens: 100_000 }, team(1, 1000))
        yield* probe.life()
        const first = only(yield* probe.read(), "TurnCompleted")[0]?.usage
        const used = (first?.cacheWrite ?? 0) + (first?.output ?? 0) + (first?.reasoning ?? 0) + (first?.input ?? 0)
        const { life, read } = yield* one(
          lead({ tokens: 10_000 }),
          { tokens: used + 10_000, minOutputTokens: 1 },
          team(1, 1000),
          open
        )
        expect((yield* life()).outcome).toMatchObject({ _tag: "Stopped", reason: { _tag: "Budget", who: "r.t1.0" } })
        const [child] = only(yield* read(), "ToolCallCompleted")
        expect(JSON.stringify(child?.result)).toContain("r.t1.0 was stopped: its budget is used up")
      })
    )
  })
})

describe("a Budget and the agents below", () => {
  it.effect("CS1 without a share what is left is split evenly among those that a reply calls and their caller", () =>
    Effect.gen(function* () {
      const { life, read } = yield* one(lead(), { tokens: 90_000, costUsd: 1, turns: 32, calls: 14 }, team(2, 1))
      expect((yield* life()).outcome).toMatchObject({ _tag: "Completed" })
      const [turn] = only(yield* read(), "TurnCompleted")
      const started = only(yield* read(), "ToolCallStarted")
      const shares = started.map(({ reservations }) => reservations?.["budget"])
      expect(shares[0]).toEqual(shares[1])
      const usage = turn?.usage
      const used = (usage?.input ?? 0) + (usage?.cacheWrite ?? 0) + (usage?.output ?? 0) + (usage?.reasoning ?? 0)
      expect(shares[0]).toEqual({
        tokens: Math.floor((90_000 - used) / 3),
        costNanoUsd: Math.floor((1e9 - (turn?.costNanoUsd ?? 0)) / 3),
        turns: Math.floor(31 / 3),
        calls: Math.floor((14 - 2) / 3)
      })
      const [accepted] = only(yield* read("r.t1.1"), "RunAccepted")
      expect(accepted?.parent?.share).toEqual({ budget: shares[1] })
      const events = yield* read()
      const last = events.findLastIndex(({ _tag }) => _tag === "ToolCallCompleted")
      expect(folded(events.slice(0, last + 1)).spending.reserved).toEqual(none)
    })
  )

  // What dies before an append may have been paid for.
  it.effect.each<DyingStore.Fate>(["die-before", "die-after"])(
    "B1 B5 holds at every kill (%s): spent and set aside stay within the root's budget, and nothing is left set aside",
    (fate) =>
      Effect.gen(function* () {
        const budget = { tokens: 60_000 }
        let at = 0
        while (true) {
          const { life, paid, read, store } = yield* one(lead(undefined, signer), budget, team(2, 2, 1))
          const { outcome } = yield* life(at, fate)
          let lives = 1
          let end = outcome
          let died = outcome === undefined
          while (end === undefined || end._tag === "Suspended") {
            // One is to sign; a call of a dead helper is in doubt: it is told as failed.
            const answers = (end?.waiting ?? []).map(({ digest = "", id, kind, path = [] }) =>
              Run.answer(lead(undefined, signer), {
                runId: "r",
                callId: id,
                path,
                answer: kind === "approval" ? { _tag: "Approve", digest } : { _tag: "TellFailed", reason: "died" },
                by: "ann"
              })
            )
            yield* Effect.provideService(Effect.all(answers), CheckpointStore.CheckpointStore, store)
            end = (yield* life(at, fate)).outcome
            died ||= end === undefined
            if (++lives > 9) throw new Error(`no end after a death at ${at}`)
          }
          const { most, spending } = folded(yield* read())
          expect([at, most <= budget.tokens, spending.reserved]).toEqual([at, true, none])
          // A turn that was lost below has been paid for as well.
          expect([at, paid.tokens <= spending.spent.tokens]).toEqual([at, true])
          let sum = 0
          // A turn that was lost is not counted again, so the ids differ.
          for (const { runId } of yield* store.list({ parent: "r" }, { limit: 10 })) {
            const below = folded(yield* read(runId))
            sum += below.spending.spent.tokens
            const [accepted] = only(yield* read(runId), "RunAccepted")
            expect(below.most).toBeLessThanOrEqual(accepted?.parent?.share?.["budget"]?.["tokens"] ?? 0)
          }
          expect(sum).toBeLessThanOrEqual(budget.tokens)
          if (!died) break
          at++
        }
        expect(at).toBeGreaterThan(20)
      })
  )
})
