import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import type { CheckpointStore } from "../src/CheckpointStore.ts"
import * as Lease from "../src/Lease.ts"
import * as MemoryStore from "../src/MemoryStore.ts"
import * as WrappedStore from "../src/testing/WrappedStore.ts"

const held = { runId: "r", epoch: 1, owner: "one" }
const head = { status: "running", agent: "a", waiting: [], updatedAt: 1, body: "{}" }

const begin = (store: CheckpointStore["Service"], owner: string) =>
  store.append({ ...held, owner, expectedSeq: 0, events: ["{}"], head, lease: { owner, ttlMillis: 10_000 } })

const world = Effect.gen(function* () {
  const store = yield* MemoryStore.make
  yield* begin(store, "one")
  const clock = yield* Clock.clockWith(Effect.succeed)
  const leaseOver = (store: CheckpointStore["Service"]) =>
    Lease.make(store, held, [() => clock.currentTimeMillisUnsafe()])
  return { store, leaseOver }
})

describe("a lease", () => {
  it.effect("lasts from when its renewal was asked for, however late the answer comes", () =>
    Effect.gen(function* () {
      const { leaseOver, store } = yield* world
      const lease = leaseOver({ ...store, renew: (request) => Effect.delay(store.renew(request), "3 seconds") })
      yield* TestClock.adjust("4 seconds")
      expect(lease.left()).toBe(6000)
      const renewing = yield* Effect.forkChild(lease.renew, { startImmediately: true })
      yield* TestClock.adjust("3 seconds")
      yield* Fiber.join(renewing)
      expect(lease.left()).toBe(7000)
    })
  )

  it.effect("that another took is lost; of a Run that was removed it says that the Run is gone", () =>
    Effect.gen(function* () {
      const { leaseOver, store } = yield* world
      const { renew } = leaseOver(store)
      yield* store.claim({ runId: "r", owner: "two", ttlMillis: 10_000, takeover: 1 })
      const taken = yield* Effect.flip(renew)
      expect(taken).toMatchObject({ _tag: "OwnershipLost", message: expect.stringContaining("taken over by another") })
      yield* store.remove("r", 1)
      const removed = yield* Effect.flip(renew)
      expect(removed).toMatchObject({ _tag: "OwnershipLost", gone: true })
      expect(removed.message).toMatch(/^There is no Run r any more/)
    })
  )

  it.effect("is let go with one question, and of a Run that was begun again nothing is", () =>
    Effect.gen(function* () {
      const { store } = yield* world
      const asked: Array<string> = []
      const counted = WrappedStore.make(store, (operation, name) => Effect.suspend(() => (asked.push(name), operation)))
      yield* store.remove("r", 1)
      yield* begin(store, "two")
      yield* Lease.release(counted, held)
      expect(yield* store.head("r")).toMatchObject({ owner: "two", epoch: 1, live: true })
      yield* Lease.release(counted, { ...held, owner: "two" })
      expect(yield* store.head("r")).not.toHaveProperty("owner")
      expect(asked).toEqual(["release", "release"])
    })
  )
})
