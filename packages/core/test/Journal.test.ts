import { describe, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Agent from "../src/Agent.ts"
import { type Append, CheckpointStore } from "../src/CheckpointStore.ts"
import * as Guard from "../src/Guard.ts"
import { headRow, Journal } from "../src/Journal.ts"
import * as MemoryStore from "../src/MemoryStore.ts"
import type { Entry } from "../src/Observer.ts"
import { Owner } from "../src/Owner.ts"
import * as Plugin from "../src/Plugin.ts"
import * as Run from "../src/Run.ts"
import { StoreUnavailable } from "../src/RunError.ts"
import type { Draft, RunEvent } from "../src/RunEvent.ts"
import { encode, stamp } from "../src/RunEvent.ts"
import * as RunState from "../src/RunState.ts"
import * as AnswerLosingStore from "../src/testing/AnswerLosingStore.ts"
import { eventsOf } from "../src/testing/CrashRun.ts"
import * as DyingStore from "../src/testing/DyingStore.ts"
import * as Mortal from "../src/testing/Mortal.ts"
import * as PairingChecker from "../src/testing/PairingChecker.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import * as YieldingStore from "../src/testing/YieldingStore.ts"
import { ToolContext } from "../src/ToolContext.ts"
import * as Usage from "../src/Usage.ts"

type Store = CheckpointStore["Service"]
const runId = "r"

const called = (turn: number, count: number): Draft => ({
  _tag: "TurnCompleted",
  turn,
  reply: Array.from({ length: count }, (_, i) => ({
    type: "tool-call",
    id: `c${i}`,
    name: "pay",
    params: {},
    providerExecuted: false
  })),
  finish: "tool-calls",
  usage: Usage.zero
})
const begun: ReadonlyArray<Draft> = [
  { _tag: "RunAccepted", agent: "a", version: "0", task: "go" },
  { _tag: "RunStarted", agent: "a", version: "0", tools: {}, plugins: [] },
  { _tag: "AttemptStarted", attempt: 1, owner: "o", recovered: false },
  { _tag: "TurnStarted", turn: 1, stream: true },
  called(1, 3)
]
const start = (index: number): Draft => ({
  _tag: "ToolCallStarted",
  callId: `t1.${index}`,
  name: "pay",
  effect: "unsafe",
  key: `r/t1.${index}`
})
const done = (index: number): Draft => ({
  _tag: "ToolCallCompleted",
  callId: `t1.${index}`,
  name: "pay",
  isFailure: false,
  result: index,
  ending: "executed"
})
const said = (id: string): Draft => ({ _tag: "MessageReceived", id, content: id })
const isRequested = (index: number) => (state: RunState.RunState) =>
  state.calls.some(({ callId, status }) => callId === `t1.${index}` && status === "requested")

/** Counts what it sees by kind. */
const counting = Guard.make<{ readonly [kind: string]: number }>({
  name: "counting",
  stage: "loop",
  initial: {},
  fold: (memory, { _tag }) => ({ ...memory, [_tag]: (memory[_tag] ?? 0) + 1 }),
  check: () => Guard.allow
})

const load = (
  store: Store,
  { epoch = 1, owner = "o", seq = 0 } = {},
  onCommit: (entries: ReadonlyArray<Entry>) => void = () => {}
) => {
  let now = 0
  const lease = { owner, ttlMillis: 1_000_000 }
  return Journal.load({ store, runId, epoch, lease, guards: [counting], now: () => ++now, onCommit }, seq)
}

/** A Run in the middle of its first turn, three calls asked for, all of it committed. */
const opened = Effect.fnUntraced(function* (store: Store, onCommit?: (entries: ReadonlyArray<Entry>) => void) {
  const journal = yield* load(store, {}, onCommit)
  for (const draft of begun) yield* journal.put(draft)
  yield* journal.commit
  return journal
})

const outside = (store: Store, ...drafts: ReadonlyArray<Draft>) =>
  Effect.gen(function* () {
    const entry = yield* store.head(runId)
    const events = drafts.map((draft) => stamp(draft, 1000))
    const { head } = RunState.fromEvents([...(yield* eventsOf(store, runId)), ...events])
    const expectedSeq = entry?.seq ?? 0
    return yield* store.append({ runId, epoch: 0, expectedSeq, events: events.map(encode), head: headRow(head) })
  })

/** Runs `before` once, right before the next append that an owner makes. */
const interposed = (store: Store) => {
  let before: Effect.Effect<unknown, unknown> = Effect.void
  const append = (request: Append) =>
    Effect.suspend(() => {
      const first = before
      if (request.epoch !== 0) before = Effect.void
      return Effect.andThen(request.epoch === 0 ? Effect.void : Effect.orDie(first), store.append(request))
    })
  const next = (effect: Effect.Effect<unknown, unknown>) => Effect.sync(() => void (before = effect))
  return { store: { ...store, append }, next }
}

const name = (event: RunEvent): string =>
  "callId" in event ? `${event._tag} ${event.callId}` : event._tag === "MessageReceived" ? event.id : event._tag
const stored = (store: Store) => Effect.map(eventsOf(store, runId), (events) => events.slice(begun.length).map(name))
const yielding = Effect.map(MemoryStore.make, (store) => YieldingStore.make(store, 3))

describe("Journal", () => {
  it.effect("J1 an event that is staged while an append is under way is not lost", () =>
    Effect.gen(function* () {
      const store = yield* yielding
      const journal = yield* opened(store)
      const first = yield* Effect.forkChild(journal.put(start(0), { commit: true }), { startImmediately: true })
      const second = yield* Effect.forkChild(journal.put(done(1)), { startImmediately: true })
      expect(yield* Fiber.join(first)).toBe(true)
      expect(yield* Fiber.join(second)).toBe(true)
      expect(yield* stored(store)).toEqual(["ToolCallStarted t1.0"])
      expect(journal.state.calls.map(({ status }) => status)).toEqual(["started", "completed", "requested"])
      yield* journal.commit
      expect(yield* stored(store)).toEqual(["ToolCallStarted t1.0", "ToolCallCompleted t1.1"])
    })
  )

  it.effect("J5 a duplicate does not reach the guards, staged or read again", () =>
    Effect.gen(function* () {
      const store = yield* MemoryStore.make
      const journal = yield* opened(store)
      for (const draft of [done(0), called(1, 3), done(0)]) yield* journal.put(draft)
      yield* journal.commit
      const again = yield* load(store, { seq: journal.committedSeq })
      for (const { memory } of [journal, again]) {
        expect(memory).toEqual([expect.objectContaining({ TurnCompleted: 1, ToolCallCompleted: 1 })])
      }
    })
  )

  it.effect("J1 each of three siblings that start at once gets the answer about its own start", () =>
    Effect.gen(function* () {
      const { next, store } = interposed(yield* yielding)
      const journal = yield* opened(store)
      yield* next(outside(store, said("hurry")))
      const answers = yield* Effect.all(
        [0, 1, 2].map((index) => journal.put(start(index), { commit: true, still: isRequested(index) })),
        { concurrency: "unbounded" }
      )
      const started = (yield* stored(store)).filter((event) => event.startsWith("ToolCallStarted"))
      expect(started).toEqual(answers.flatMap((made, index) => (made ? [`ToolCallStarted t1.${index}`] : [])))
      expect(answers).toEqual([false, true, true])
    })
  )

  it.effect("J1 of two that start the same call at once one may", () =>
    Effect.gen(function* () {
      const store = yield* yielding
      const journal = yield* opened(store)
      const one = journal.put(start(0), { commit: true, still: isRequested(0) })
      expect(yield* Effect.all([one, one], { concurrency: "unbounded" })).toEqual([true, false])
      expect(yield* stored(store)).toEqual(["ToolCallStarted t1.0"])
    })
  )

  it.effect("J2 a conflict folds outside events in, keeps facts with their time, drops intents and says so", () =>
    Effect.gen(function* () {
      const store = yield* yielding
      const journal = yield* opened(store)
      yield* journal.put(done(0))
      const at = journal.oldest
      yield* outside(store, said("one"), said("two"))
      expect(yield* journal.put(start(1), { commit: true })).toBe(false)
      expect(yield* stored(store)).toEqual(["one", "two", "ToolCallCompleted t1.0"])
      expect((yield* eventsOf(store, runId)).at(-1)?.at).toBe(at)
      expect(journal.state.inbox.map(({ id }) => id)).toEqual(["one", "two"])
      expect(journal.state.calls.map(({ status }) => status)).toEqual(["completed", "requested", "requested"])
      expect(yield* journal.put(start(1), { commit: true })).toBe(true)
    })
  )

  it.effect("J2 an effect never starts after a committed cancel", () =>
    Effect.gen(function* () {
      const { next, store } = interposed(yield* yielding)
      const journal = yield* opened(store)
      yield* next(outside(store, { _tag: "CancelRequested", by: "ann" }))
      expect(yield* journal.put(start(0), { commit: true, still: isRequested(0) })).toBe(false)
      expect(yield* stored(store)).toEqual(["CancelRequested"])
    })
  )

  it.effect("J2 a refresh finds what is outside and loses nothing that is staged", () =>
    Effect.gen(function* () {
      const store = yield* yielding
      const journal = yield* opened(store)
      expect(yield* journal.refresh).toBe(false)
      yield* journal.put(done(0))
      yield* outside(store, said("one"))
      expect(yield* journal.refresh).toBe(true)
      expect(journal.state.inbox).toHaveLength(1)
      yield* journal.commit
      expect(yield* stored(store)).toEqual(["one", "ToolCallCompleted t1.0"])
    })
  )

  it.live("J3 an append whose answer was lost is counted once", () =>
    Effect.gen(function* () {
      const store = AnswerLosingStore.make(yield* yielding, AnswerLosingStore.nth(1))
      const seen: Array<Entry> = []
      const journal = yield* opened(store, (entries) => seen.push(...entries))
      yield* journal.put(done(0))
      expect(yield* journal.put(start(1), { commit: true })).toBe(true)
      expect(yield* stored(store)).toEqual(["ToolCallCompleted t1.0", "ToolCallStarted t1.1"])
      expect(seen.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7])
      expect(journal.committedSeq).toBe(7)
      expect(journal.state.head.toolCalls).toBe(1)
    })
  )

  it.live("J3 it is recognised beside what others wrote after it, and what is staged later goes on", () =>
    Effect.gen(function* () {
      const memory = yield* yielding
      const lossy = AnswerLosingStore.make(memory, AnswerLosingStore.nth(1))
      const seen: Array<Entry> = []
      const journal = yield* opened(lossy, (entries) => seen.push(...entries))
      const putting = yield* Effect.forkChild(journal.put(start(0), { commit: true }), { startImmediately: true })
      yield* Effect.sleep("10 millis")
      yield* outside(memory, said("one"))
      expect(yield* Fiber.join(putting)).toBe(true)
      expect(yield* stored(memory)).toEqual(["ToolCallStarted t1.0", "one"])
      expect(yield* journal.put(done(0), { commit: true })).toBe(true)
      expect(seen.map(({ event }) => name(event)).slice(5)).toEqual(yield* stored(memory))
    })
  )

  it.live("J3 a finished result is written on the next chance after the store was away (RI-134)", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryStore.make
      let away = false
      const append: Store["append"] = (request) =>
        Effect.suspend(() => (away ? Effect.fail(new StoreUnavailable({ detail: "away" })) : memory.append(request)))
      const journal = yield* opened({ ...memory, append })
      yield* journal.put(start(0), { commit: true })
      away = true
      expect((yield* Effect.flip(journal.put(done(0), { commit: true })))._tag).toBe("StoreUnavailable")
      away = false
      yield* journal.commit
      expect(yield* stored(memory)).toEqual(["ToolCallStarted t1.0", "ToolCallCompleted t1.0"])
    })
  )

  it.effect("J4 a superseded owner's append has no effect and fails with OwnershipLost", () =>
    Effect.gen(function* () {
      const store = yield* yielding
      const journal = yield* opened(store)
      yield* store.claim({ runId, owner: "p", ttlMillis: 1000, takeover: 1 })
      expect((yield* Effect.flip(journal.put(start(0), { commit: true })))._tag).toBe("OwnershipLost")
      expect(yield* stored(store)).toEqual([])
    })
  )

  it.effect("J4 of two that create a Run under the same epoch the second one has lost it", () =>
    Effect.gen(function* () {
      const store = yield* yielding
      const [one, two] = [yield* load(store), yield* load(store, { owner: "p" })]
      for (const draft of begun) {
        yield* one.put(draft)
        // Two processes may write the same at the same time, but their names differ.
        yield* two.put(draft._tag === "AttemptStarted" ? { ...draft, owner: "p" } : draft)
      }
      expect(yield* one.commit).toBe(true)
      expect((yield* Effect.flip(two.commit))._tag).toBe("OwnershipLost")
      expect(yield* stored(store)).toEqual([])
    })
  )

  it.effect("J4 an owner that reads a later epoch has lost the Run, whatever it had staged", () =>
    Effect.gen(function* () {
      const store = yield* yielding
      const journal = yield* opened(store)
      yield* journal.put(done(0))
      yield* store.claim({ runId, owner: "p", ttlMillis: 1000, takeover: 1 })
      const next = yield* load(store, { epoch: 2, owner: "p", seq: 5 })
      yield* next.put({ _tag: "AttemptStarted", attempt: 2, owner: "p", recovered: true }, { commit: true })
      expect((yield* Effect.flip(journal.refresh))._tag).toBe("OwnershipLost")
    })
  )

  it.effect("J5 guards' memory holds buffered events, and after a conflict what really happened", () =>
    Effect.gen(function* () {
      const { next, store } = interposed(yield* yielding)
      const journal = yield* opened(store)
      yield* journal.put(done(0))
      expect(journal.memory).toMatchObject([{ ToolCallCompleted: 1 }])
      yield* next(outside(store, said("one")))
      expect(yield* journal.put(start(1), { commit: true })).toBe(false)
      const [memory] = journal.memory
      expect(memory).toMatchObject({ ToolCallCompleted: 1, MessageReceived: 1 })
      expect(memory).not.toHaveProperty("ToolCallStarted")
      const seq = (yield* store.head(runId))?.seq ?? 0
      expect((yield* load(store, { seq })).memory).toEqual([memory])
    })
  )

  it.effect("keeps the stored head equal to the fold after each append (H1)", () =>
    Effect.gen(function* () {
      const store = yield* yielding
      const journal = yield* opened(store)
      for (const draft of [start(0), done(0), start(1), done(1), start(2), done(2)]) {
        yield* journal.put(draft, { commit: true })
        const { head } = RunState.fromEvents(yield* eventsOf(store, runId))
        expect(JSON.parse((yield* store.head(runId))?.body ?? "")).toEqual(JSON.parse(JSON.stringify(head)))
      }
    })
  )
})

const shape = { parameters: Schema.Struct({ n: Schema.Number }), success: Schema.Number }
const Pay = Tool.make("pay", shape)
const Look = Tool.make("look", shape).annotate(Tool.Readonly, true)
const Put = Tool.make("put", shape).annotate(Tool.Idempotent, true)

describe("the flush rule (SPEC 6, FACTS 13)", () => {
  const results = (store: Store) =>
    Effect.map(eventsOf(store, runId), (events) =>
      events.flatMap((event) => (event._tag === "ToolCallCompleted" ? [event.callId] : []))
    )

  it.live("a finished effect is committed before a readonly tool runs", () =>
    Effect.gen(function* () {
      const store = yield* yielding
      let seen: ReadonlyArray<string> = []
      const kit = Toolkit.make(Pay, Look)
      const handlers = kit.toLayer({
        pay: ({ n }) => Effect.succeed(n),
        look: ({ n }) =>
          Effect.gen(function* () {
            seen = yield* Effect.orDie(results(store))
            yield* Effect.sleep("5 millis")
            return n
          })
      })
      const agent = Agent.make("a", { instructions: "i", tools: [kit] })
      const model = yield* ScriptedModel.make([
        ScriptedModel.calls([
          ["look", { n: 0 }],
          ["pay", { n: 1 }],
          ["look", { n: 2 }]
        ]),
        ScriptedModel.text("done")
      ])
      yield* Run.start(agent, { runId, task: "go" }).pipe(
        Effect.provide([model.layer, handlers, Layer.succeed(CheckpointStore, store)])
      )
      expect(seen).toEqual(["t1.0", "t1.1"])
    })
  )

  it.live("a finished effect is committed before an asynchronous guard is asked, and a quick one need not wait", () =>
    Effect.gen(function* () {
      const store = yield* yielding
      const seen: Array<ReadonlyArray<string>> = []
      const slow = Guard.make({
        name: "slow",
        stage: "loop",
        initial: 0,
        fold: (memory: number) => memory,
        check: () =>
          Effect.as(
            Effect.tap(Effect.orDie(results(store)), (ids) => Effect.sync(() => seen.push(ids))),
            Guard.allow
          )
      })
      class Slow extends Context.Service<Slow, Plugin.Plugin>()("test/Slow") {}
      const kit = Toolkit.make(Pay)
      const handlers = kit.toLayer({ pay: ({ n }) => Effect.succeed(n) })
      const agent = Agent.make("a", { instructions: "i", tools: [kit], requires: [Slow] })
      const model = yield* ScriptedModel.make([
        ScriptedModel.call("pay", { n: 1 }),
        ScriptedModel.call("pay", { n: 2 }),
        ScriptedModel.text("done")
      ])
      const plugin = Layer.succeed(Slow, { [Plugin.PluginId]: { name: "slow", guards: [slow] } })
      yield* Run.start(agent, { runId, task: "go" }).pipe(
        Effect.provide([model.layer, handlers, plugin, Layer.succeed(CheckpointStore, store)])
      )
      // Asked about turn 1, call 1, turn 2, call 2, turn 3.
      expect(seen).toEqual([[], [], ["t1.0"], ["t1.0"], ["t1.0", "t2.0"]])
    })
  )
})

describe("RI-171", () => {
  /** A permutation of 0, 1, 2 and how many of them finish in the first life. */
  const cases = Array.from({ length: 50 }, (_, seed) => {
    const [first = 0] = [seed % 3]
    const rest = [0, 1, 2].filter((index) => index !== first)
    const order = seed === 0 ? [2, 0, 1] : [first, ...((seed >> 1) % 2 === 0 ? rest : rest.toReversed())]
    return { seed, order, finished: seed === 0 ? 2 : (seed >> 2) % 3, pauses: (seed >> 3) % 4 }
  })

  it.live.each(cases)("calls finish as $order, $finished of them before a crash, then in reversed order", (one) =>
    Effect.gen(function* () {
      const store = YieldingStore.make(yield* MemoryStore.make, 1 + one.pauses)
      const effects: Array<string> = []
      const kit = Toolkit.make(Put)
      const agent = Agent.make("a", { instructions: "i", tools: [kit], concurrency: 3 })
      const model = yield* ScriptedModel.make(({ results }) =>
        results.length > 0
          ? ScriptedModel.text(results.map(({ result }) => JSON.stringify(result)).join())
          : ScriptedModel.calls([0, 1, 2].map((n) => ["put", { n }, `c${n + 1}`] as const))
      )
      const life = (mortal: Mortal.Mortal, order: ReadonlyArray<number>, dies: boolean) => {
        const waitUntil = (ready: () => boolean) =>
          Effect.gen(function* () {
            for (let i = 0; !ready(); i++)
              yield* i > 5000 ? Effect.die("the calls before it never finish") : Effect.yieldNow
          })
        const handlers = kit.toLayer({
          put: ({ n }) =>
            mortal.guard(
              Effect.gen(function* () {
                const { idempotencyKey } = yield* ToolContext
                yield* waitUntil(() =>
                  order.slice(0, order.indexOf(n)).every((before) => effects.includes(`r/t1.${before}`))
                )
                if (dies && order.indexOf(n) === one.finished) {
                  const completed = Effect.map(
                    Effect.orDie(eventsOf(store, runId)),
                    (events) => events.filter(({ _tag }) => _tag === "ToolCallCompleted").length
                  )
                  for (let i = 0; (yield* completed) < one.finished; i++) {
                    if (i > 1000) return yield* Effect.die("what finished is never committed")
                  }
                  return yield* mortal.die
                }
                effects.push(idempotencyKey)
                return n * 10
              })
            )
        })
        const owner = { name: Effect.succeed(dies ? "first" : "second"), isDead: () => Effect.succeed(true) }
        const services = Layer.mergeAll(
          model.layer,
          handlers,
          Layer.succeed(CheckpointStore, DyingStore.make(store, mortal)),
          Layer.succeed(Owner, owner)
        )
        return Effect.provide(Run.start(agent, { runId, task: "go" }), services)
      }
      const mortal = yield* Mortal.make
      const first = yield* Effect.forkDetach(life(mortal, one.order, true))
      yield* mortal.died
      yield* Effect.forkDetach(Fiber.interrupt(first))
      const left = one.order.filter((n) => !effects.includes(`r/t1.${n}`))
      const outcome = yield* life(
        yield* Mortal.make,
        [...one.order.slice(0, one.finished), ...left.toReversed()],
        false
      )
      expect(outcome).toMatchObject({ _tag: "Completed", output: "0,10,20" })
      expect(effects.toSorted()).toEqual(["r/t1.0", "r/t1.1", "r/t1.2"])
      const wrong = yield* Effect.provideService(PairingChecker.ofRun(runId), CheckpointStore, store)
      expect(wrong).toEqual([])
    })
  )
})
