import { describe, expect, it } from "@effect/vitest"
import { MemoryStore, Run } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as RateLimiter from "effect/persistence/RateLimiter"
import { TestClock } from "effect/testing"
import * as Quota from "../src/Quota.ts"
import { agent, greedy, handlers, ledger, saying } from "./support/budgets.ts"

const Limiter = RateLimiter.layer.pipe(Layer.provide(RateLimiter.layerStoreMemory))

/** Starts Runs on one store, with one limiter for all of them. */
const started = (runId: string, principal?: string) =>
  Run.start(agent, { runId, task: "go", ...(principal === undefined ? undefined : { principal: { id: principal } }) })

const services = (options: Quota.Options) => {
  const paid = ledger()
  const live = Layer.mergeAll(
    greedy(paid, () => saying("done")),
    handlers,
    MemoryStore.layer,
    Quota.layer(options).pipe(Layer.provide(Limiter))
  )
  return { paid, live }
}

describe("Quota", () => {
  it.effect("counts the model calls of one principal over all of its Runs", () =>
    Effect.gen(function* () {
      const { live, paid } = services({ turns: 2, maxWaitSeconds: 0 })
      yield* Effect.gen(function* () {
        for (const runId of ["a1", "a2"]) expect((yield* started(runId, "ann"))._tag).toBe("Completed")
        expect(yield* started("a3", "ann")).toMatchObject({
          _tag: "Stopped",
          reason: { _tag: "Denied", guard: "quota", message: expect.stringMatching(/2 model calls in 60 s is used up/) }
        })
        for (const [runId, who] of [
          ["b1", "bob"],
          ["n1", undefined],
          ["n2", undefined]
        ] as const) {
          expect((yield* started(runId, who))._tag).toBe("Completed")
        }
        expect((yield* started("n3"))._tag).toBe("Stopped") // Runs without a principal share one
        expect(paid.requests).toBe(5)
        yield* TestClock.adjust("61 seconds")
        expect((yield* started("a4", "ann"))._tag).toBe("Completed")
      }).pipe(Effect.provide(live))
    })
  )

  it.effect("waits as long as maxWaitSeconds allows", () =>
    Effect.gen(function* () {
      const { live } = services({ turns: 1, windowSeconds: 10 })
      yield* Effect.gen(function* () {
        yield* started("a1", "ann")
        const fiber = yield* Effect.forkChild(started("a2", "ann"), { startImmediately: true })
        yield* TestClock.adjust("9 seconds")
        expect(fiber.pollUnsafe()).toBeUndefined()
        yield* TestClock.adjust("2 seconds")
        expect((yield* Fiber.join(fiber))._tag).toBe("Completed")
      }).pipe(Effect.provide(live))
    })
  )

  it.effect("QU1 refuses what cannot be looked up", () =>
    Effect.gen(function* () {
      const broken = Layer.succeed(RateLimiter.RateLimiterStore, {
        fixedWindow: () => Effect.fail(down),
        tokenBucket: () => Effect.fail(down),
        adaptiveConsume: () => Effect.fail(down),
        adaptiveFeedback: () => Effect.fail(down)
      })
      const paid = ledger()
      const limiter = RateLimiter.layer.pipe(Layer.provide(broken))
      const live = Layer.mergeAll(
        greedy(paid, () => saying("done")),
        handlers,
        MemoryStore.layer,
        Quota.layer({ turns: 5 }).pipe(Layer.provide(limiter))
      )
      const outcome = yield* started("a", "ann").pipe(Effect.provide(live))
      expect(outcome).toMatchObject({ _tag: "Stopped", reason: { _tag: "Denied", guard: "quota" } })
      expect(paid.requests).toBe(0)
    })
  )

  it("has these defaults", () => {
    expect(Quota.defaults).toEqual({ windowSeconds: 60, maxWaitSeconds: 30 })
  })

  it.effect("wrong options are named", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Layer.build(Quota.layer({ turns: 0 }).pipe(Layer.provide(Limiter))))
      expect(error).toMatchObject({ _tag: "OptionsInvalid", policy: "Quota", field: "turns" })
    }).pipe(Effect.scoped)
  )
})

const down = new RateLimiter.RateLimiterError({ reason: new RateLimiter.RateLimitStoreError({ message: "down" }) })
