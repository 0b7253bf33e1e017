import { describe, expect, it } from "@effect/vitest"
import { CheckpointStore, MemoryStore, RunError } from "@waystone/core"
import { WrappedStore } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { drive } from "../src/Drive.ts"
import * as Ledger from "../src/Ledger.ts"
import * as Patient from "../src/Patient.ts"
import * as Subject from "../src/Subject.ts"
import type * as Trace from "../src/Trace.ts"

const agent = Subject.agent({ effect: "idempotent", concurrency: 1 })

type Store = CheckpointStore.CheckpointStore["Service"]

/** Time goes on for as long as anybody waits for it; what other threads make (digests) takes the turns in between. */
const ticking = Effect.forever(
  Effect.andThen(
    TestClock.adjust("1 second"),
    Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
  )
)

/** Drives a Run on a store that `disturb` makes worse: what it said and what it met. */
const driven = (disturb: (store: Store) => Store) =>
  Effect.gen(function* () {
    const marks: Array<Trace.What> = []
    const store = Layer.effect(CheckpointStore.CheckpointStore, Effect.map(MemoryStore.make, disturb))
    const handlers = Subject.handlers(({ item }) => Effect.succeed(Ledger.receipt(item)))
    const services = Layer.mergeAll(store, Subject.model(), handlers)
    const driving = drive(agent, "r", (what) => Effect.sync(() => void marks.push(what)))
    const fiber = yield* Effect.forkChild(Effect.provide(driving, services))
    return { exit: yield* Effect.raceFirst(Fiber.await(fiber), ticking), marks }
  })

describe("a worker that drives a Run", () => {
  it.effect("gives up a store that stays away, and says why", () =>
    Effect.gen(function* () {
      let asked = 0
      const away = Effect.suspend(() => {
        asked++
        return Effect.fail(new RunError.StoreUnavailable({ detail: "no disk" }))
      })
      const { exit } = yield* driven((store) => WrappedStore.make(store, () => away))
      const message = "The checkpoint store is unavailable: no disk"
      expect(exit).toEqual(Exit.succeed({ _tag: "StoreUnavailable", message }))
      expect(asked).toBe(Patient.times + 1)
    })
  )

  it.effect("waits for another worker for as long as that one holds it", () =>
    Effect.gen(function* () {
      let refusals = 0
      const { exit, marks } = yield* driven((store) => ({
        ...store,
        claim: (request) =>
          Effect.suspend(() => {
            if (refusals === 10 * Patient.times) return store.claim(request)
            refusals++
            return Effect.succeed({ _tag: "Busy", epoch: 1, owner: "another" } as const)
          })
      }))
      expect(exit).toMatchObject({ value: { _tag: "Completed", output: Subject.answer() } })
      expect(marks).toEqual(Array.from({ length: 10 * Patient.times }, () => "busy"))
    })
  )
})
