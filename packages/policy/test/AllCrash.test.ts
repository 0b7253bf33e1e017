import { NodeServices } from "@effect/platform-node"
import { SqliteStore } from "@waystone/checkpoint-sqlite"
import {
  Agent,
  CheckpointStore,
  Guard,
  MemoryStore,
  ModelInfo,
  Owner,
  Plugin,
  Run,
  type RunEvent
} from "@waystone/core"
import { DyingStore, Mortal, ScriptedModel } from "@waystone/core/testing"
import { Approvals, Breaker, Budget, LoopGuard, Permissions, Prices, Sanitizer } from "@waystone/policy"
import { describe, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import { vi } from "vitest"

vi.setConfig({ testTimeout: 120_000 })

type Store = CheckpointStore.CheckpointStore["Service"]

const key = `AIza${"Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx"}`
const parameters = Schema.Struct({ n: Schema.Number })
const Down = Schema.TaggedStruct("Down", { why: Schema.String })
const Refund = Tool.make("refund", { parameters, success: Schema.String })
const Close = Tool.make("close", { parameters, success: Schema.String })
const Fetch = Tool.make("fetch", { parameters, success: Schema.String, failure: Down })
  .annotate(Tool.Readonly, true)
  .annotate(Tool.OpenWorld, true)
const Look = Tool.make("look", { parameters, success: Schema.String }).annotate(Tool.Readonly, true)
const tools = Toolkit.make(Refund, Close, Fetch, Look)
const agent = Agent.make("desk", {
  instructions: "Work.",
  tools: [tools],
  requires: [
    Approvals.Approvals,
    Breaker.Breaker,
    Budget.Budget,
    LoopGuard.LoopGuard,
    Permissions.Permissions,
    Sanitizer.Sanitizer
  ],
  limits: { maxConsecutiveFailures: 50 }
})
const handlers = tools.toLayer({
  refund: ({ n }) => Effect.succeed(`refunded ${n}`),
  close: ({ n }) => Effect.succeed(`closed ${n}`),
  fetch: () => Effect.fail({ _tag: "Down", why: `no entry with ${key}` } as const),
  look: () => Effect.succeed(`it says ${key}`)
})

const { call } = ScriptedModel
/** Refunds up to the sum and beyond it, closes the same twice, what is away until nobody asks it any more, and then the same again and again. */
const script = [
  ...[3, 4].map((n) => call("refund", { n })),
  ...[1, 1].map((n) => call("close", { n })),
  ...[1, 2, 3, 4].map((n) => call("fetch", { n })),
  ...Array.from({ length: 8 }, () => call("look", { n: 1 }))
]

/** Circuits outlive processes; how long one stays open is always told the same, so that requests are of the same size. */
const Circuits = Layer.effect(
  CircuitBreaker.CircuitBreakerStore,
  Effect.map(CircuitBreaker.CircuitBreakerStore, (store) =>
    CircuitBreaker.CircuitBreakerStore.of({
      ...store,
      admit: (options) =>
        Effect.mapError(store.admit(options), (error) =>
          error.reason._tag === "CircuitOpen"
            ? new CircuitBreaker.CircuitBreakerError({
                reason: new CircuitBreaker.CircuitOpen({ key: error.reason.key, retryAfter: Duration.days(1) })
              })
            : error
        )
    })
  )
).pipe(Layer.provide(CircuitBreaker.layerStoreMemory()))

interface Lasting {
  readonly circuits: Context.Context<CircuitBreaker.CircuitBreakerStore>
  readonly node: Context.Context<NodeServices.NodeServices>
}
const policies = ({ circuits, node }: Lasting, turns: number) =>
  Layer.mergeAll(
    Approvals.layer(),
    Layer.provide(
      Breaker.Breaker.layerStored({ failures: 2, openSeconds: 86_400, errors: ["Down"] }),
      Layer.succeedContext(circuits)
    ),
    Budget.layer({ costUsd: 10, tokens: 1_000_000, turns, warnAt: 0.4 }),
    LoopGuard.layer({ nudgeAt: 3, stopAt: 5 }),
    Layer.provide(
      Permissions.layer({
        rules: [
          { name: "small sums", action: "allow", tools: ["refund"], when: { n: { totalMax: 5 } } },
          { name: "large sums", action: "ask", tools: ["refund"] },
          { name: "closing", action: "ask", tools: ["close"] }
        ]
      }),
      Layer.succeedContext(node)
    ),
    Sanitizer.layer()
  )

const steady = Layer.mergeAll(
  handlers,
  Layer.succeed(ModelInfo.ModelInfo, { provider: "p", model: "m", maxOutput: 100, window: 100_000 }),
  Prices.layer({ maintained: false, table: { "p/m": { input: 1, output: 10 } } })
)

const eventsOf = (store: Store) =>
  Run.events("r", { follow: false }).pipe(
    Stream.map(({ event }) => event),
    Stream.runCollect,
    Effect.provideService(CheckpointStore.CheckpointStore, store),
    Effect.orDie
  )

/** Waits until all that came before a Step or a call is committed, as it is after a quarter of a second. */
const settled = (store: Store, id: string) =>
  // The first append of a Run begins its first turn.
  id === "s1"
    ? Effect.void
    : Effect.repeat(
        Effect.map(eventsOf(store), (events) =>
          events.some((event) =>
            id.startsWith("s")
              ? event._tag === "ToolCallCompleted" && `s${turnOf(event.callId) + 1}` === id
              : event._tag === "TurnCompleted" && event.turn === turnOf(id)
          )
        ),
        { until: (is) => is, schedule: Schedule.spaced("20 millis") }
      )
const turnOf = (callId: string): number => Number(/^t(\d+)/.exec(callId)?.[1])

/** What meets each proposal: the process may die there. */
class Fate extends Context.Service<Fate, Plugin.Plugin>()("test/Fate") {}
const fate = (meet: (id: string) => Effect.Effect<void>) =>
  Layer.succeed(Fate, {
    [Plugin.PluginId]: {
      name: "a fate",
      guards: [
        Guard.make({
          name: "a fate",
          stage: "limits",
          initial: undefined,
          fold: (memory) => memory,
          check: ({ proposal, state }) =>
            Effect.as(meet(proposal._tag === "Step" ? `s${state.head.turn + 1}` : proposal.call.callId), Guard.allow)
        })
      ]
    }
  })

interface Lives {
  readonly open: Effect.Effect<Store, unknown, Scope.Scope>
  readonly turns: number
  /** Whether a process dies before each step that it meets first. */
  readonly die: boolean
}

/** One Run in as many processes as it takes; every one dies before the next step. */
const lived = Effect.fnUntraced(function* ({ die, open, turns }: Lives) {
  const lasting = { circuits: yield* Layer.build(Circuits), node: yield* Layer.build(NodeServices.layer) }
  const model = yield* ScriptedModel.make(script)
  const met = new Set<string>()
  const life = Effect.gen(function* () {
    const mortal = yield* Mortal.make
    const own = yield* open
    const meet = (id: string) =>
      Effect.suspend(() => {
        if (!die || met.has(id)) return Effect.void
        met.add(id)
        return Effect.andThen(settled(own, id), mortal.die)
      })
    const store = DyingStore.make(own, mortal)
    const live = Layer.mergeAll(
      Layer.fresh(policies(lasting, turns)),
      steady,
      model.layer,
      fate(meet),
      Layer.succeed(CheckpointStore.CheckpointStore, store),
      Layer.succeed(Owner.Owner, { name: Effect.succeed(`life ${met.size}`), isDead: () => Effect.succeed(true) })
    )
    const driven = Effect.gen(function* () {
      const outcome = yield* Run.start(agent, { runId: "r", task: "go" })
      for (const { digest = "", id: callId } of outcome._tag === "Suspended" ? outcome.waiting : []) {
        yield* Run.answer(agent, { runId: "r", callId, by: "ann", answer: { _tag: "Approve", digest, scope: "run" } })
      }
      return outcome
    })
    const fiber = yield* Effect.forkDetach(Effect.exit(Effect.provide(driven, live)), { startImmediately: true })
    const exit = yield* Effect.raceFirst(Fiber.join(fiber), Effect.as(mortal.died, undefined))
    if (exit === undefined) yield* Effect.forkDetach(Fiber.interrupt(fiber))
    return exit
  }).pipe(Effect.scoped)
  for (let lives = 1; lives < 100; lives++) {
    const exit = yield* life
    if (exit === undefined) continue
    if (Exit.isFailure(exit)) return yield* Effect.failCause(exit.cause)
    if (exit.value._tag === "Suspended") continue
    const events = yield* Effect.scoped(Effect.flatMap(open, eventsOf))
    return { outcome: exit.value, events, lives }
  }
  return yield* Effect.die(new Error("the Run does not end"))
})

const told: ReadonlySet<RunEvent.RunEvent["_tag"]> = new Set([
  "TurnStarted",
  "ApprovalRequested",
  "CallAnswered",
  "VerdictGiven",
  "ToolCallStarted",
  "ToolCallCompleted",
  "RunFinished"
])
/** What was decided and what came of it, without times. */
const decided = (events: ReadonlyArray<RunEvent.RunEvent>): ReadonlyArray<unknown> =>
  events
    .filter(({ _tag }) => told.has(_tag))
    .map((event) =>
      JSON.parse(
        JSON.stringify(event, (name, value) => (/^(?:at|expiresAt|startedAt)$/.test(name) ? undefined : value))
      )
    )

const stores: ReadonlyArray<
  readonly [string, Effect.Effect<Effect.Effect<Store, unknown, Scope.Scope>, unknown, Scope.Scope>]
> = [
  ["memory", Effect.map(MemoryStore.make, (store) => Effect.succeed(store))],
  [
    "SQLite, opened anew by each process",
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* fs.makeTempDirectoryScoped()
      const layer = SqliteStore.layer({ file: `${folder}/runs.db`, durability: "process" })
      return Effect.map(Layer.build(Layer.fresh(layer)), Context.get(CheckpointStore.CheckpointStore))
    }).pipe(Effect.provide(NodeServices.layer))
  ]
]

/** The loop guard ends the first Run, the budget the second one. */
const ends = [
  { turns: 100, reason: "Loop", at: 13 },
  { turns: 11, reason: "Budget", at: 11 }
] as const

describe.concurrent("all six policies, where a process dies before every step", () => {
  for (const [name, make] of stores) {
    it.live.each(ends)(`decide the same at the same steps ($reason; ${name})`, ({ at, reason, turns }) =>
      Effect.gen(function* () {
        const whole = yield* lived({ open: yield* make, turns, die: false })
        const text = JSON.stringify(decided(whole.events))
        // Each of them has acted.
        expect(whole.outcome).toMatchObject({ _tag: "Stopped", reason: { _tag: reason } })
        expect(text).toMatch(
          /"_tag":"ApprovalRequested","callId":"t2\.0".*"guard":"permissions","reason":"[^"]*large sums/
        )
        expect(text).toMatch(/"guard":"approvals","on":"t4\.0","verdict":"Allow"/)
        expect(text).toContain("CircuitOpen")
        expect(text).toContain("[redacted:google-key]")
        expect(text).not.toContain(key)
        if (reason === "Budget") expect(text).toContain('"note":{"warning":')
        else expect(text).toContain('"guard":"loop-guard","on":"s12","verdict":"Nudge"')

        const killed = yield* lived({ open: yield* make, turns, die: true })
        expect(decided(killed.events)).toEqual(decided(whole.events))
        expect(killed.outcome).toEqual(whole.outcome)
        const started = whole.events.filter(({ _tag }) => _tag === "TurnStarted")
        expect(started).toHaveLength(at)
        // Before every Step, the one that was not taken too, and before every call; one process ends the Run, one asks.
        expect(killed.lives).toBeGreaterThan(2 * at)
      }).pipe(Effect.scoped)
    )
  }
})
