import { describe, expect, it } from "@effect/vitest"
import { CheckpointStore, MemoryStore, type Outcome, Owner, Run, type RunEvent } from "@waystone/core"
import { DyingStore, Mortal } from "@waystone/core/testing"
import { NodeServices } from "@effect/platform-node"
import { SqliteStore } from "@waystone/checkpoint-sqlite"
import { Approvals, Breaker, LoopGuard, Permissions, Sanitizer } from "@waystone/policy"
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

interface Death {
  readonly at: number
  readonly after: boolean
}

/** One process. It dies before or after the append of that number, counted from 0 over all processes; undefined if it died. */
const life = (store: Store, services: ReturnType<typeof servicesOf>, count: { appends: number }, dies?: Death) =>
  Effect.gen(function* () {
    const mortal = yield* Mortal.make
    const dying = DyingStore.make(store, mortal, () =>
      Effect.sync(() => (count.appends++ !== dies?.at ? "live" : dies.after ? "die-after" : "die-before"))
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
    return mortal.isDead() ? undefined : end
  })

/** One Run, whose process dies once, in as many processes as it takes; a person agrees to what is asked. */
const lives = (store: Store, plan: Plan, paid: Ledger, dies?: Death) =>
  Effect.gen(function* () {
    const count = { appends: 0 }
    const services = servicesOf(plan, paid)
    let deaths = 0
    for (let processes = 0; processes < 30; processes++) {
      const exit = yield* life(store, services, count, dies)
      if (exit === undefined) deaths++
      else if (Exit.isSuccess(exit) && exit.value._tag === "Suspended") yield* answered(store, services)
      else return { exit, deaths, appends: count.appends }
    }
    return yield* Effect.die(new Error("the Run does not end"))
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
  /** The other five; the circuits of the breaker are those of the process. */
  readonly all?: true
}

const others = Layer.mergeAll(
  Approvals.layer(),
  Breaker.layer({ failures: 2 }),
  LoopGuard.layer({ nudgeAt: 2, stopAt: 100 }),
  Permissions.layer({
    rules: [
      { action: "allow", tools: ["pay"], when: { n: { totalMax: 0 } } },
      { name: "more", action: "ask", tools: ["pay"] }
    ]
  }).pipe(Layer.provide(NodeServices.layer)),
  Sanitizer.layer({ delimit: "all" })
)

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
  { name: "calls, final answer", options: { turns: 7, calls: 5, onExhausted: "final-answer" }, next: mixed },
  {
    name: "everything, beside the other five policies",
    options: { tokens: 60_000, costUsd: 300_000 / 1e9, turns: 12, calls: 12, hiddenTokens: 0 },
    // It repeats itself first.
    next: (number, options) => (number <= 2 ? calling("look") : mixed)(number, options),
    all: true
  }
]

const limitsOf = ({ calls, costUsd, tokens, turns }: Budget.Options): Partial<Amounts> => ({
  ...(tokens === undefined ? undefined : { tokens }),
  ...(costUsd === undefined ? undefined : { costNanoUsd: costUsd * 1e9 }),
  ...(turns === undefined ? undefined : { turns }),
  ...(calls === undefined ? undefined : { calls })
})

const servicesOf = ({ all, next, options }: Plan, paid: Ledger) =>
  Layer.mergeAll(
    greedy(paid, next),
    handlers,
    Priced,
    atOnce,
    Budget.layer(options),
    all === true ? Layer.fresh(others) : Layer.empty
  )

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
    const undisturbed = yield* lives(whole, plan, paid)
    expect(Exit.isSuccess(undisturbed.exit)).toBe(true)
    const events = yield* read(whole)
    holds(events, limits)
    within(paid, limits)
    expect(paid.requests).toBeGreaterThan(2)
    for (let at = 0; at < undisturbed.appends; at++) {
      for (const after of [false, true]) {
        const store = yield* make
        const paid = ledger()
        // An unsafe call that was started waits for a person: this one has it run again.
        const { deaths, exit } = yield* lives(store, plan, paid, { at, after })
        expect(deaths).toBe(1)
        expect(exit).toSatisfy(ended)
        holds(yield* read(store), limits)
        within(paid, limits)
      }
    }
    return { appends: undisturbed.appends, events }
  })

/** Stopped, or resting since a try failed that cost something and no other one was covered. */
const ended = (exit: Exit.Exit<Outcome.Outcome<string>, unknown>): boolean =>
  Exit.isSuccess(exit)
    ? exit.value._tag === "Stopped"
    : JSON.stringify(Cause.squash(exit.cause)).includes("ModelUnavailable")

const answered = (store: Store, services: ReturnType<typeof servicesOf>) =>
  Effect.gen(function* () {
    const { waiting } = yield* Run.get("r")
    for (const { digest = "", id, kind } of waiting) {
      const answer = kind === "approval" ? ({ _tag: "Approve", digest } as const) : ({ _tag: "RunAgain" } as const)
      yield* Run.answer(agent, { runId: "r", callId: id, answer, by: "ann" })
    }
  }).pipe(Effect.provide(services), Effect.provideService(CheckpointStore.CheckpointStore, store))

describe("B1 spent and set aside stay within the budget, killed before and after every append", () => {
  for (const plan of plans) {
    it.live(plan.name, () =>
      Effect.map(killed(plan, MemoryStore.make), ({ appends, events }) => {
        expect(appends).toBeGreaterThan(5)
        if (plan.all !== true) return
        const text = JSON.stringify(events)
        for (const said of ['"verdict":"Nudge"', '"guard":"permissions"', "untrusted"]) expect(text).toContain(said)
      })
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
      yield* lives(store, plan, paid, { at: 0, after: true })
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
