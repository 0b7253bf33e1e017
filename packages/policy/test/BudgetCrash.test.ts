import { describe, expect, it } from "@effect/vitest"
import { CheckpointStore, MemoryStore, type Outcome, Owner, Run, type RunEvent } from "@waystone/core"
import { DyingStore, Mortal } from "@waystone/core/testing"
import { SqliteStore } from "@waystone/checkpoint-sqlite"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Budget from "../src/Budget.ts"
import { type Amounts, fold, initial, none, type Spending, units } from "../src/Spending.ts"
import {
  agent,
  atOnce,
  calling,
  eventsOf,
  greedy,
  handlers,
  input,
  type Ledger,
  ledger,
  type Next,
  Priced
} from "./support/budgets.ts"

type Store = CheckpointStore.CheckpointStore["Service"]

/** One process. It dies before or after the append of that number, counted from 0; undefined if it died. */
const life = (
  store: Store,
  services: ReturnType<typeof servicesOf>,
  dies?: { readonly at: number; readonly after: boolean }
) =>
  Effect.gen(function* () {
    const mortal = yield* Mortal.make
    let appends = 0
    const dying = DyingStore.make(store, mortal, () =>
      Effect.sync(() => (appends++ !== dies?.at ? "live" : dies.after ? "die-after" : "die-before"))
    )
    const owner = { name: Effect.succeed(`life ${Math.random()}`), isDead: () => Effect.succeed(true) }
    const live = Layer.mergeAll(
      services,
      Layer.succeed(CheckpointStore.CheckpointStore, dying),
      Layer.succeed(Owner.Owner, owner)
    )
    const driven = Effect.provide(Run.start(agent, input), live)
    const fiber = yield* Effect.forkDetach(Effect.exit(driven), { startImmediately: true })
    const end = yield* Effect.raceFirst(Fiber.join(fiber), Effect.as(mortal.died, undefined))
    if (mortal.isDead()) yield* Effect.forkDetach(Fiber.interrupt(fiber))
    return { exit: mortal.isDead() ? undefined : end, appends }
  })
const read = (store: Store) => Effect.provideService(eventsOf(), CheckpointStore.CheckpointStore, store)

/** B1 after every event. */
const holds = (events: ReadonlyArray<RunEvent.RunEvent>, limits: Partial<Amounts>) => {
  let memory: Spending = initial
  for (const event of events) {
    memory = fold(memory, event)
    for (const unit of units) {
      const sum = memory.spent[unit] + memory.reserved[unit]
      expect(sum, `${unit} after ${event._tag}`).toBeLessThanOrEqual(limits[unit] ?? Infinity)
      expect(memory.reserved[unit], `${unit} after ${event._tag}`).toBeGreaterThanOrEqual(0)
    }
  }
  expect(memory.reserved).toEqual(none)
  return memory
}

interface Plan {
  readonly name: string
  readonly options: Budget.Options
  readonly next: Next
}

const mixed: Next = (number, options) =>
  number % 5 === 3 ? "fail" : calling(number % 2 === 0 ? "pay" : "look", 1 + (number % 3))(number, options)

const plans: ReadonlyArray<Plan> = [
  { name: "tokens, stop", options: { tokens: 12_000, hiddenTokens: 0 }, next: mixed },
  { name: "money, stop", options: { costUsd: 40_000 / 1e9, hiddenTokens: 0 }, next: mixed },
  {
    name: "tokens, final answer",
    options: { tokens: 12_000, hiddenTokens: 0, onExhausted: "final-answer" },
    next: mixed
  },
  { name: "turns and calls", options: { turns: 6, calls: 5 }, next: mixed },
  { name: "calls, final answer", options: { turns: 7, calls: 5, onExhausted: "final-answer" }, next: mixed }
]

const limitsOf = ({ calls, costUsd, tokens, turns }: Budget.Options): Partial<Amounts> => ({
  ...(tokens === undefined ? undefined : { tokens }),
  ...(costUsd === undefined ? undefined : { costNanoUsd: costUsd * 1e9 }),
  ...(turns === undefined ? undefined : { turns }),
  ...(calls === undefined ? undefined : { calls })
})

const servicesOf = ({ next, options }: Plan, paid: Ledger) =>
  Layer.mergeAll(greedy(paid, next), handlers, Priced, atOnce, Budget.layer(options))

/** What the provider has charged is within the budget too, also for what nobody lived to hear of. */
const within = (paid: Ledger, limits: Partial<Amounts>) => {
  expect(paid.tokens).toBeLessThanOrEqual(limits.tokens ?? Infinity)
  expect(paid.costNanoUsd).toBeLessThanOrEqual(limits.costNanoUsd ?? Infinity)
}

/** Runs one plan undisturbed, then killed at every append, once before and once after it. */
const killed = (plan: Plan, make: Effect.Effect<Store>) =>
  Effect.gen(function* () {
    const limits = limitsOf(plan.options)
    const paid = ledger()
    const whole = yield* make
    const undisturbed = yield* life(whole, servicesOf(plan, paid))
    expect(undisturbed.exit !== undefined && Exit.isSuccess(undisturbed.exit)).toBe(true)
    holds(yield* read(whole), limits)
    within(paid, limits)
    expect(paid.requests).toBeGreaterThan(2)
    for (let at = 0; at < undisturbed.appends; at++) {
      for (const after of [false, true]) {
        const store = yield* make
        const paid = ledger()
        const first = yield* life(store, servicesOf(plan, paid), { at, after })
        expect(first.exit).toBeUndefined()
        // An unsafe call that was started waits for a person: this one has it run again.
        let outcome = (yield* life(store, servicesOf(plan, paid))).exit
        for (
          let doubts = 0;
          doubts < 3 && outcome !== undefined && Exit.isSuccess(outcome) && outcome.value._tag === "Suspended";
          doubts++
        ) {
          yield* answered(store)
          outcome = (yield* life(store, servicesOf(plan, paid))).exit
        }
        expect(outcome).toSatisfy(ended)
        holds(yield* read(store), limits)
        within(paid, limits)
      }
    }
    return undisturbed.appends
  })

/** Stopped, or resting since a try failed that cost something and no other one was covered. */
const ended = (exit: Exit.Exit<Outcome.Outcome<string>, Run.StartError> | undefined): boolean =>
  exit !== undefined &&
  (Exit.isSuccess(exit)
    ? exit.value._tag === "Stopped"
    : JSON.stringify(Cause.squash(exit.cause)).includes("ModelUnavailable"))

const answered = (store: Store) =>
  Effect.gen(function* () {
    const { waiting } = yield* Run.get("r")
    for (const { id } of waiting) {
      yield* Run.answer(agent, { runId: "r", callId: id, answer: { _tag: "RunAgain" }, by: "ann" })
    }
  }).pipe(Effect.provideService(CheckpointStore.CheckpointStore, store))

describe("B1 spent and set aside stay within the budget, killed before and after every append", () => {
  for (const plan of plans) {
    it.live(plan.name, () =>
      Effect.map(killed(plan, MemoryStore.make), (appends) => expect(appends).toBeGreaterThan(5))
    )
  }

  it.live("tokens, on SQLite", () =>
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.promise(() => mkdtemp(join(tmpdir(), "budget-"))),
        (path) => Effect.promise(() => rm(path, { recursive: true }))
      )
      let files = 0
      const make = Effect.suspend(() =>
        Layer.build(SqliteStore.layer({ file: join(folder, `${files++}.db`), durability: "process" }))
      ).pipe(Effect.map(Context.get(CheckpointStore.CheckpointStore)), Effect.orDie)
      const scope = yield* Effect.scope
      const [plan] = plans
      if (plan !== undefined) yield* killed(plan, Effect.provideService(make, Scope.Scope, scope))
    }).pipe(Effect.scoped)
  )
})

describe("B2 a turn that was lost", () => {
  it.live("has spent all that was set aside for it", () =>
    Effect.gen(function* () {
      const plan: Plan = { name: "", options: { tokens: 12_000, hiddenTokens: 0 }, next: mixed }
      const store = yield* MemoryStore.make
      const paid = ledger()
      // The first append begins the first turn.
      yield* life(store, servicesOf(plan, paid), { at: 0, after: true })
      yield* life(store, servicesOf(plan, paid))
      const events = yield* read(store)
      const at = events.findLastIndex(({ _tag }) => _tag === "AttemptStarted")
      const before = events.slice(0, at).reduce(fold, initial)
      const after = events.slice(0, at + 1).reduce(fold, initial)
      expect(before.turn).toBe(1)
      expect(before.reserved.tokens).toBeGreaterThan(500)
      expect(after.spent).toEqual({ ...before.reserved, turns: 1 })
      expect(after.reserved).toEqual(none)
    })
  )
})
