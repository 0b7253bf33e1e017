import { describe, expect, it } from "@effect/vitest"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import type { CheckpointStore } from "../src/CheckpointStore.ts"
import * as Run from "../src/Run.ts"
import { CheckpointCorrupt } from "../src/RunError.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import { begin, clerk, told, world } from "./support/scenario.ts"

const { call, hang, text } = ScriptedModel

const ids = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}-${i}`)

/** What a caller without types may pass. */
const fromUser = (text: string): Duration.Input => JSON.parse(JSON.stringify(text))

describe("prune", () => {
  /** 100 finished, 5 waiting, 5 running, 5 accepted. */
  const crowd = Effect.gen(function* () {
    const one = yield* world
    const model = yield* ScriptedModel.make(({ messages }) => {
      const task = JSON.stringify(messages.at(-1))
      return task.includes("waiting") ? call("pay", { amount: 1 }) : task.includes("running") ? hang : text("done")
    })
    const here = one.process({ model })
    const finished = ids("finished", 100)
    const unfinished = [...ids("waiting", 5), ...ids("running", 5)]
    for (const runId of finished) yield* here(Run.start(clerk, { runId, task: runId }))
    const fiber = yield* begin(
      here(
        Effect.forEach(unfinished, (runId) => Run.start(clerk, { runId, task: runId }), { concurrency: "unbounded" })
      )
    )
    const accepted = ids("accepted", 5)
    for (const runId of accepted) yield* here(Run.accept(clerk, { runId, task: runId }))
    return { here, fiber, finished, kept: [...unfinished, ...accepted].toSorted(), store: one.store }
  })

  it.effect("RI-158 takes everything of the Runs that ended, and nothing of the others", () =>
    Effect.gen(function* () {
      const { fiber, finished, here, kept, store } = yield* crowd
      const before = yield* Effect.forEach(kept, (runId) => store.read(runId, { after: 0, limit: 100 }))
      expect(yield* here(Run.prune({ olderThan: 0 }))).toBe(100)
      expect((yield* here(Run.list({ limit: 1000 }))).map(({ runId }) => runId).toSorted()).toEqual(kept)
      expect(yield* Effect.forEach(kept, (runId) => store.read(runId, { after: 0, limit: 100 }))).toEqual(before)
      for (const runId of finished) {
        expect(yield* store.head(runId)).toBeUndefined()
        expect(yield* store.read(runId, { after: 0, limit: 1 })).toEqual([])
      }
      expect(yield* here(Run.prune({ olderThan: 0 }))).toBe(0)
      yield* Fiber.interrupt(fiber)
    })
  )

  it.effect("RI-158 keeps what is younger, and what has another status", () =>
    Effect.gen(function* () {
      const { process } = yield* world
      const model = yield* ScriptedModel.make(({ messages }) =>
        JSON.stringify(messages).includes("pay") ? call("pay", { amount: 1 }) : text("done")
      )
      const here = process({ model })
      yield* here(Run.start(clerk, { runId: "old", task: "go" }))
      yield* here(Run.start(clerk, { runId: "cancelled", task: "pay" }))
      yield* here(Run.cancel({ runId: "cancelled" }))
      yield* TestClock.adjust("1 hour")
      yield* here(Run.start(clerk, { runId: "young", task: "go" }))
      expect(yield* here(Run.prune({ olderThan: "1 hour", status: ["cancelled", "running", "waiting"] }))).toBe(1)
      expect(yield* here(Run.prune({ olderThan: "1 hour" }))).toBe(1)
      expect((yield* here(Run.list())).map(({ runId }) => runId)).toEqual(["young"])
    })
  )

  const wrong: ReadonlyArray<Duration.Input> = [Number.NaN, -5, "-1 day", Infinity, "Infinity", fromUser("abc")]
  it.effect.each(wrong)("refuses olderThan %s by name, and removes nothing", (olderThan) =>
    Effect.gen(function* () {
      const { process } = yield* world
      const here = process({ model: yield* ScriptedModel.make([text("done")]) })
      yield* here(Run.start(clerk, { runId: "r", task: "go" }))
      yield* TestClock.adjust("1 hour")
      const { _tag, message, reason } = yield* here(Effect.flip(Run.prune({ olderThan })))
      expect([_tag, reason._tag]).toEqual(["Fatal", "InputInvalid"])
      expect(message).toBe(`Run.prune: olderThan is ${String(olderThan)}: it must be a duration from 0, like "30 days"`)
      expect(yield* here(Run.list())).toHaveLength(1)
    })
  )
})

describe("remove with force", () => {
  const unreadable = new CheckpointCorrupt({ runId: "r", seq: 0, path: "row" })
  type Wrong = (store: CheckpointStore["Service"]) => Partial<CheckpointStore["Service"]>
  const damages: ReadonlyArray<readonly [what: string, wrong: Wrong]> = [
    [
      "head the store cannot read",
      (store) => ({
        head: () => Effect.fail(unreadable),
        remove: (runId, seq) => (seq === "damaged" ? store.remove(runId, 1) : Effect.fail(unreadable))
      })
    ],
    [
      "head core cannot read",
      (store) => ({ head: (runId) => Effect.map(store.head(runId), (entry) => entry && { ...entry, body: "{" }) })
    ],
    [
      "event cannot be read",
      (store) => ({
        read: (runId, range) =>
          Effect.map(store.read(runId, range), (events) => events.map((event) => ({ ...event, body: "{" })))
      })
    ],
    ["events are gone", () => ({ read: () => Effect.succeed([]) })]
  ]

  it.effect.each(damages)("takes away an accepted Run whose %s; without force it stays", ([, wrong]) =>
    Effect.gen(function* () {
      const { here, process, store } = yield* world
      yield* here(Run.accept(clerk, { runId: "r", task: "go" }))
      const damaged = process({ wrap: (store) => ({ ...store, ...wrong(store) }) })
      expect(yield* damaged(told(Run.remove("r")))).toMatch(/^Fatal (CheckpointCorrupt|RunNotTerminal)$/)
      expect(yield* store.head("r")).toBeDefined()
      yield* damaged(Run.remove("r", { force: true }))
      expect(yield* store.head("r")).toBeUndefined()
    })
  )

  it.effect("keeps a sound Run that is accepted, and a damaged one that somebody drives", () =>
    Effect.gen(function* () {
      const { here, process, store } = yield* world
      yield* here(Run.accept(clerk, { runId: "r", task: "go" }))
      expect(yield* here(told(Run.remove("r", { force: true })))).toBe("Fatal RunNotTerminal")
      const driving = yield* begin(
        process({ model: yield* ScriptedModel.make([hang]) })(Run.resume(clerk, { runId: "r" }))
      )
      const damaged = process({ wrap: (store) => ({ ...store, read: () => Effect.succeed([]) }) })
      expect(yield* damaged(told(Run.remove("r", { force: true })))).toBe("Fatal RunNotTerminal")
      expect(yield* store.head("r")).toMatchObject({ live: true })
      yield* Fiber.interrupt(driving)
    })
  )
})
