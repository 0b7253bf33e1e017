import { describe, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import type { CheckpointStore } from "../src/CheckpointStore.ts"
import { type Plugin, PluginId } from "../src/Plugin.ts"
import * as Run from "../src/Run.ts"
import { StoreUnavailable } from "../src/RunError.ts"
import type { Fate } from "../src/testing/DyingStore.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import * as WrappedStore from "../src/testing/WrappedStore.ts"
import * as YieldingStore from "../src/testing/YieldingStore.ts"
import { ToolContext } from "../src/ToolContext.ts"
import { begin, clerk, eventsOf, expectValid, type Handlers, pass, tagsOf, told, world } from "./support/scenario.ts"

const { after, call, text } = ScriptedModel

const runId = "r"
const start = Run.start(clerk, { runId, task: "go" })
const resume = Run.resume(clerk, { runId })

class Lingering extends Context.Service<Lingering, Plugin>()("test/Lingering") {}

/** An observer that keeps an Attempt open for a second after its last event. */
const lingering = Layer.succeed(Lingering, {
  [PluginId]: { name: "lingering", observers: [{ name: "slow", attempt: () => Effect.succeed(() => Effect.never) }] }
})

/** A process that is stopped and goes on: what it asks of its store waits. */
const freezing = Effect.gen(function* () {
  const awake = yield* Latch.make(true)
  return {
    wrap: (store: CheckpointStore["Service"]) => WrappedStore.make(store, (operation) => awake.whenOpen(operation)),
    begins: () => awake.closeUnsafe(),
    ends: awake.open
  }
})

describe("the owner of a Run", () => {
  it.effect("RI-069 of twenty concurrent first starts one creates the Run, the others find it busy", () =>
    Effect.gen(function* () {
      const { here, process, store } = yield* world
      const model = yield* ScriptedModel.make([after("5 seconds", text("done"))])
      const starts = Array.from({ length: 20 }, (_, i) =>
        process({ name: `P${i}`, model, wrap: (store) => YieldingStore.make(store, 1 + (i % 3)) })(told(start))
      )
      const fiber = yield* begin(Effect.all(starts, { concurrency: "unbounded" }))
      yield* pass(1000)
      expect((yield* here(Run.get(runId))).owner).toMatch(/^P\d+ /)
      expect(yield* process({ name: "late", model })(told(start))).toBe("Retryable RunBusy")
      yield* pass(5000)
      const results = yield* Fiber.join(fiber)
      expect(results.filter((one) => one === "Completed")).toHaveLength(1)
      expect(results.filter((one) => one === "Retryable RunBusy")).toHaveLength(19)
      const tags = yield* here(tagsOf(runId))
      expect(tags.filter((tag) => tag === "RunAccepted" || tag === "AttemptStarted")).toHaveLength(2)
      expect(yield* store.list({}, { limit: 10 })).toHaveLength(1)
      yield* model.assertConsumed
    })
  )

  it.effect("RI-069 a start of an unknown Run drives nothing if another creates and takes the Run meanwhile", () =>
    Effect.gen(function* () {
      const { here, process, store } = yield* world
      const model = yield* ScriptedModel.make([text("done")])
      const accept = here(Effect.orDie(Run.accept(clerk, { runId, task: "go" })))
      const other = store.claim({ runId, owner: "B 1", ttlMillis: 10_000 })
      const overtaken = process({
        model,
        wrap: (store) => ({
          ...store,
          claim: (request) => Effect.tap(store.claim(request), () => Effect.andThen(accept, other))
        })
      })
      expect(yield* overtaken(told(start))).toBe("Retryable RunBusy")
      expect(yield* here(tagsOf(runId))).toEqual(["RunAccepted"])
      expect(yield* store.head(runId)).toMatchObject({ owner: "B 1", live: true })
    })
  )

  it.effect("a start of a Run that another drives reads its first event only, and still knows another task", () =>
    Effect.gen(function* () {
      const { process } = yield* world
      const model = yield* ScriptedModel.make([after("5 seconds", text("done"))])
      const fiber = yield* begin(process({ name: "P1", model })(told(start)))
      yield* pass(1000)
      const reads: Array<{ readonly after: number; readonly limit: number }> = []
      const other = process({
        name: "P2",
        model,
        wrap: (store) => ({
          ...store,
          read: (id, range) => {
            reads.push(range)
            return store.read(id, range)
          }
        })
      })
      expect(yield* other(told(start))).toBe("Retryable RunBusy")
      expect(yield* other(told(Run.start(clerk, { runId, task: "stop" })))).toBe("Fatal RunExists")
      expect(reads).toEqual([
        { after: 0, limit: 1 },
        { after: 0, limit: 1 }
      ])
      yield* pass(5000)
      expect(yield* Fiber.join(fiber)).toBe("Completed")
    })
  )

  const unreadable = [
    { what: "garbage", body: "{", told: "Fatal CheckpointCorrupt" },
    { what: "of a newer version", body: '{"v":99}', told: "Fatal CheckpointTooNew" }
  ]
  it.effect.each(unreadable)("E1 E2 stops at a stored event that is $what", ({ body, told: expected }) =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* ScriptedModel.make([after("5 seconds", text("done"))])
      yield* here(Run.accept(clerk, { runId, task: "go" }))
      const damaged = process({
        model,
        wrap: (store) => ({
          ...store,
          read: (id, range) =>
            Effect.map(store.read(id, range), (events) => events.map((event) => ({ ...event, body })))
        })
      })
      expect(yield* damaged(told(resume))).toBe(expected)
    })
  )

  it.effect.each(unreadable)("E1 E2 stops at an outside event that is $what", ({ body, told: expected }) =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* ScriptedModel.make([after("5 seconds", text("done"))])
      const damaged = process({
        model,
        wrap: (store) => ({
          ...store,
          read: (id, range) =>
            Effect.map(store.read(id, range), (events) => events.map((event) => ({ ...event, body })))
        })
      })
      const fiber = yield* begin(damaged(told(start)))
      yield* pass(1000)
      yield* here(Run.send({ runId, message: "wait" }))
      yield* pass(10_000)
      expect(yield* Fiber.join(fiber)).toBe(expected)
    })
  )

  it.effect("RI-167 loses it when its lease ends, and what it writes later has no effect", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const model = yield* ScriptedModel.make([after("20 seconds", text("too late")), text("in time")])
      const frozen = process({ name: "A", model, wrap: (store) => ({ ...store, renew: () => Effect.never }) })
      const fiber = yield* begin(frozen(told(start)))
      const other = process({ name: "B", model })
      yield* TestClock.adjust("9 seconds")
      expect(yield* other(told(resume))).toBe("Retryable RunBusy")
      yield* TestClock.adjust("1 second")
      expect(yield* other(resume)).toMatchObject({ _tag: "Completed", output: "in time" })
      const stored = yield* here(eventsOf(runId))
      yield* TestClock.adjust("10 seconds")
      expect(yield* Fiber.join(fiber)).toBe("Fatal OwnershipLost")
      expect(yield* here(eventsOf(runId))).toEqual(stored)
      expect(stored.filter(({ _tag }) => _tag === "TurnCompleted")).toHaveLength(1)
      expect(stored.filter((event) => event._tag === "AttemptStarted").map(({ recovered }) => recovered)).toEqual([
        false,
        true
      ])
    })
  )

  it.effect("does not free a Run that was removed and made anew while it ended", () =>
    Effect.gen(function* () {
      const { here, process, store } = yield* world
      const model = yield* ScriptedModel.make([text("first"), after("5 seconds", text("second"))])
      yield* here(Run.accept(clerk, { runId, task: "go" }))
      const ending = yield* begin(process({ name: "A", model, extra: lingering })(told(resume)))
      expect((yield* here(Run.get(runId))).status).toBe("completed")
      yield* here(Run.remove(runId))
      const anew = yield* begin(process({ name: "B", model })(told(start)))
      expect(ending.pollUnsafe()).toBeUndefined()
      yield* pass(2000)
      expect(yield* Fiber.join(ending)).toBe("Completed")
      expect(yield* store.head(runId)).toMatchObject({ epoch: 1, owner: expect.stringMatching(/^B /), live: true })
      expect(yield* process({ name: "C", model })(told(resume))).toBe("Retryable RunBusy")
      yield* pass(4000)
      expect(yield* Fiber.join(anew)).toBe("Completed")
      expect(yield* store.head(runId)).not.toHaveProperty("owner")
    })
  )

  it.effect("of a former life commits nothing into the Run that was begun again, and ends", () =>
    Effect.gen(function* () {
      const { here, process, store } = yield* world
      const frozen = yield* freezing
      const model = yield* ScriptedModel.make(({ results }) =>
        results.length > 0 ? text("done") : call("book", { seat: 1 })
      )
      const goesOn = yield* Latch.make()
      const ends = yield* Latch.make()
      const booking =
        (latch: Latch.Latch): Handlers["book"] =>
        ({ seat }) =>
          latch.whenOpen(Effect.succeed({ booked: seat }))
      // Both lives stand in the same place, at the same seq and epoch, when the first one wakes.
      const former = process({ name: "A", model, handlers: { book: booking(goesOn) }, wrap: frozen.wrap })
      const old = yield* begin(former(told(start)))
      yield* pass(500)
      frozen.begins()
      yield* pass(15_000)
      expect(yield* process({ name: "C", model })(told(resume))).toBe("Completed")
      yield* here(Run.remove(runId))
      const anew = yield* begin(process({ name: "B", model, handlers: { book: booking(ends) } })(told(start)))
      yield* pass(500)
      const before = yield* here(eventsOf(runId))
      yield* Effect.andThen(goesOn.open, frozen.ends)
      yield* pass(1000)
      expect(yield* Fiber.join(old)).toBe("Fatal OwnershipLost")
      expect(yield* here(eventsOf(runId))).toEqual(before)
      expect(yield* store.head(runId)).toMatchObject({ epoch: 1, owner: expect.stringMatching(/^B /), live: true })
      yield* ends.open
      yield* pass(1000)
      expect(yield* Fiber.join(anew)).toBe("Completed")
      yield* here(expectValid(runId))
    })
  )

  it.effect("of a former life sees nothing of the Run that was begun again, and ends when it looks", () =>
    Effect.gen(function* () {
      const { here, process } = yield* world
      const frozen = yield* freezing
      const model = yield* ScriptedModel.make(({ results }) => call("book", { seat: results.length + 1 }))
      const seen: Array<string> = []
      // The first life had a second owner already, whose epoch the new life has not reached yet.
      const hung = { model: yield* ScriptedModel.make([ScriptedModel.hang]) }
      yield* Fiber.interrupt(yield* begin(process({ name: "Z", ...hung })(told(start))))
      const former = process({
        name: "A",
        model: yield* ScriptedModel.make([call("book", { seat: 1 })]),
        handlers: { book: () => Effect.never },
        // Its look comes before its renewal.
        wrap: (store) => ({ ...frozen.wrap(store), renew: () => Effect.never })
      })
      const updates = Run.streamResume(clerk, { runId }).pipe(
        Stream.runForEach((update) => Effect.sync(() => void seen.push(JSON.stringify(update))))
      )
      yield* begin(former(updates))
      yield* pass(500)
      frozen.begins()
      yield* pass(15_000)
      yield* here(Run.cancel({ runId, by: "me" }))
      yield* process({ name: "C", model })(told(resume))
      yield* here(Run.remove(runId))
      // The new life is longer than the old one was when it fell asleep.
      const anew = yield* begin(
        process({ name: "B", model, handlers: { book: ({ seat }) => Effect.succeed({ booked: 1000 + seat }) } })(
          told(start)
        )
      )
      yield* pass(500)
      yield* frozen.ends
      yield* pass(1000)
      expect(seen.join("\n")).not.toContain("1001")
      expect(seen.at(-1)).toContain("OwnershipLost")
      yield* Fiber.interrupt(anew)
    })
  )

  const removals = [
    { notices: "when it looks", ends: "1 hour" },
    { notices: "with its next append", ends: "100 millis" }
  ] as const
  it.effect.each(removals)("says that a Run is gone which was removed in the middle of a tool, $notices", ({ ends }) =>
    Effect.gen(function* () {
      const { process, store } = yield* world
      const model = yield* ScriptedModel.make([call("book", { seat: 1 })])
      const booked = yield* Latch.make()
      const book: Handlers["book"] = ({ seat }) => booked.whenOpen(Effect.as(Effect.sleep(ends), { booked: seat }))
      const fiber = yield* begin(process({ model, handlers: { book } })(Effect.flip(start)))
      yield* pass(1200)
      expect(yield* store.remove(runId, (yield* store.head(runId))?.seq ?? 0)).toBe(true)
      yield* booked.open
      yield* pass(1000)
      const { _tag, message, reason } = yield* Fiber.join(fiber)
      expect({ _tag, reason }).toMatchObject({ _tag: "Fatal", reason: { _tag: "OwnershipLost", gone: true } })
      expect(message).toMatch(/^There is no Run r any more/)
      expect(yield* store.head(runId)).toBeUndefined()
    })
  )

  it.effect("lets go of a Run as soon as a store that was away has taken what was finished", () =>
    Effect.gen(function* () {
      const { here, process, store } = yield* world
      let away = false
      const model = yield* ScriptedModel.make([call("mail", { to: "bob" }), text("done")])
      const leaves = process({
        model,
        handlers: { mail: ({ to }) => Effect.sync(() => ((away = true), { sent: to })) },
        wrap: (store) =>
          WrappedStore.make(store, (operation) =>
            Effect.suspend(() => (away ? Effect.fail(new StoreUnavailable({ detail: "away" })) : operation))
          )
      })
      const fiber = yield* begin(leaves(told(start)))
      yield* pass(30_000)
      expect(yield* Fiber.join(fiber)).toBe("Retryable StoreUnavailable")
      expect((yield* store.head(runId))?.owner).toMatch(/^A /)
      away = false
      yield* pass(500)
      expect(yield* here(tagsOf(runId))).toContain("ToolCallCompleted")
      expect(yield* store.head(runId)).not.toHaveProperty("owner")
    })
  )

  it.effect("RI-167 keeps it as long as it renews its lease", () =>
    Effect.gen(function* () {
      const { process } = yield* world
      const model = yield* ScriptedModel.make([after("45 seconds", text("done"))])
      const fiber = yield* begin(process({ name: "A", model })(told(start)))
      for (let i = 0; i < 3; i++) {
        yield* TestClock.adjust("14 seconds")
        expect(yield* process({ name: "B", model })(told(resume))).toBe("Retryable RunBusy")
      }
      yield* TestClock.adjust("5 seconds")
      expect(yield* Fiber.join(fiber)).toBe("Completed")
    })
  )
})

describe("recover", () => {
  it.effect("RI-161 a Run that kills every worker is given up after four executions, and no other Run suffers", () =>
    Effect.gen(function* () {
      const { here, mortal, process, ran } = yield* world
      const poison = yield* ScriptedModel.make(({ messages }) =>
        JSON.stringify(messages).includes("harmless") ? after("1 second", text("fine")) : call("book", { seat: 1 })
      )
      const harmless = yield* begin(process({ model: poison })(Run.start(clerk, { runId: "other", task: "harmless" })))
      yield* Fiber.interrupt(harmless)
      const worker = (name: string) => mortal({ name, model: poison, deadly: "book" })
      yield* (yield* worker("A")).untilDead(start)
      for (const name of ["B", "C", "D"]) yield* (yield* worker(name)).untilDead(Run.recover([clerk]))
      const last = yield* begin(process({ name: "E", model: poison })(Run.recover([clerk])))
      yield* pass(1000)
      const swept = yield* Fiber.join(last)
      expect(swept.toSorted((a, b) => (a.runId < b.runId ? -1 : 1))).toMatchObject([
        { _tag: "Driven", runId: "other", outcome: { _tag: "Completed", output: "fine" } },
        { _tag: "Failed", runId, error: { _tag: "Fatal", reason: { _tag: "Poisoned", recoveries: 4 } } }
      ])
      expect(ran).toEqual(Array(4).fill("book died"))
      expect(yield* here(Run.get(runId))).toMatchObject({ status: "failed" })
      expect(yield* process({ name: "F", model: poison })(Run.recover([clerk]))).toEqual([])
      yield* here(expectValid(runId, "other"))
    })
  )

  it.effect("RI-161 deaths in different places are not added up", () =>
    Effect.gen(function* () {
      const { mortal, ran } = yield* world
      const model = yield* ScriptedModel.make(({ messages }) => {
        const done = messages.filter(({ role }) => role === "tool").length
        return done < 3 ? call("book", { seat: done }) : text("done")
      })
      const twice = (seat: number) => [`book ${seat} died`, `book ${seat} died`, `book ${seat}`]
      // Every seat kills two workers before it can be booked.
      const deaths = new Map<number, number>()
      const worker = (name: string) => {
        const book: Handlers["book"] = ({ seat }) =>
          Effect.suspend(() => {
            const count = deaths.get(seat) ?? 0
            deaths.set(seat, count + 1)
            ran.push(count < 2 ? `book ${seat} died` : `book ${seat}`)
            return count < 2 ? dies : Effect.succeed({ booked: seat })
          })
        let dies: Effect.Effect<never> = Effect.never
        return Effect.map(mortal({ name, model, handlers: { book } }), (made) => {
          dies = made.die
          return made
        })
      }
      yield* (yield* worker("A")).untilDead(start)
      for (const name of ["B", "C", "D", "E", "F"]) yield* (yield* worker(name)).untilDead(Run.recover([clerk]))
      const last = yield* worker("G")
      expect(yield* last.alive(Run.recover([clerk]))).toMatchObject([{ outcome: { _tag: "Completed" } }])
      expect(ran).toEqual([0, 1, 2].flatMap(twice))
    })
  )

  const fates: ReadonlyArray<Fate> = ["die-before", "die-after"]
  const boundaries = fates.flatMap((fate) => [0, 1, 2, 3].map((k) => [fate, k] as const))

  it.effect.each(boundaries)(
    "RI-046 a worker that is to %s append %i blocks neither its Run nor the one behind it",
    ([fate, k]) =>
      Effect.gen(function* () {
        const { dead, here, mortal, process } = yield* world
        const booked: Array<string> = []
        const book: Handlers["book"] = ({ seat }) =>
          Effect.gen(function* () {
            const { idempotencyKey } = yield* ToolContext
            if (!booked.includes(idempotencyKey)) booked.push(idempotencyKey)
            return { booked: seat }
          })
        const model = yield* ScriptedModel.make(({ results }) =>
          results.length > 0 ? text("done") : call("book", { seat: 1 })
        )
        for (const runId of ["first", "second"]) yield* here(Run.accept(clerk, { runId, task: "go" }))
        let appends = 0
        const doomed = yield* mortal({ name: "A", model, handlers: { book } }, () =>
          Effect.sync(() => (appends++ === k ? fate : "live"))
        )
        yield* doomed.untilDead(Run.resume(clerk, { runId: "first" }))
        // Nobody knows that it is dead: its lease must end.
        dead.clear()
        const worker = process({ name: "B", model, handlers: { book } })
        expect(yield* worker(Run.recover([clerk]))).toEqual([])
        yield* TestClock.adjust("10 seconds")
        yield* worker(Run.recover([clerk], { concurrency: 1 }))
        const queued = yield* here(Run.list({ status: "accepted" }))
        for (const { runId } of queued) yield* worker(Run.resume(clerk, { runId }))
        expect(yield* here(Run.list({ status: "completed" }))).toHaveLength(2)
        // A lost turn keeps its number, so the call's may be a later one; each Run has booked once.
        expect(booked.map((key) => key.split("/")[0]).toSorted()).toEqual(["first", "second"])
        yield* here(expectValid("first", "second"))
      })
  )
})
