import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as AiError from "effect/ai/AiError"
import { TestClock } from "effect/testing"
import * as Agent from "../src/Agent.ts"
import * as Run from "../src/Run.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import * as WrappedStore from "../src/testing/WrappedStore.ts"
import { begin, clerk, eventsOf, pass, told, tools, world } from "./support/scenario.ts"

const { after, call, fail, hang, text } = ScriptedModel

const runId = "r"
const start = Run.start(clerk, { runId, task: "go" })
const hour = 3_600_000

/** A wall clock that can be set; the monotonic one goes on. */
const settable = Effect.clockWith((clock) =>
  Effect.sync(() => {
    let off = 0
    const wall = () => clock.currentTimeMillisUnsafe() + off
    const set: Clock.Clock = {
      ...clock,
      currentTimeMillisUnsafe: wall,
      currentTimeMillis: Effect.sync(wall),
      sleep: (duration) => clock.sleep(duration)
    }
    return { clock: set, step: (millis: number) => void (off = millis) }
  })
)

/** A process on a machine whose wall clock is set by `millis` after 1.5 s, while its model answers. */
const stepped = (script: ScriptedModel.Script, millis: number, run = start) =>
  Effect.gen(function* () {
    yield* TestClock.adjust("1 day")
    const one = yield* world
    const { clock, step } = yield* settable
    const asked: Array<string> = []
    const warnings: Array<string> = []
    const model = yield* ScriptedModel.make(script)
    const process = one.process({
      model,
      handlers: { look: () => Effect.as(Effect.sleep("25 seconds"), { seen: 1 }) },
      wrap: (store) =>
        WrappedStore.make(store, (operation, name) => Effect.suspend(() => (asked.push(name), operation)))
    })
    const logger = Logger.make(({ logLevel, message }) => {
      if (logLevel === "Warn") warnings.push(String(message))
    })
    const driving = told(run).pipe(
      process,
      Effect.provideService(Clock.Clock, clock),
      Effect.provide(Logger.layer([logger]))
    )
    const fiber = yield* begin(driving)
    yield* pass(1500)
    step(millis)
    asked.length = 0
    return { ...one, asked: (name: string) => asked.filter((one) => one === name).length, fiber, model, warnings }
  })

describe("a wall clock that is set while a Run is driven", () => {
  const looks = [after("2 seconds", call("look", { at: 1 })), text("done")]

  describe.each([-60_000, -hour, 1_200_000, 24 * hour])("by %i ms", (millis) => {
    it.effect("keeps no event from its append, no lease from its renewal and no head from being looked at", () =>
      Effect.gen(function* () {
        const { asked, fiber, store } = yield* stepped(looks, millis)
        yield* pass(750)
        expect((yield* store.head(runId))?.seq).toBe(5) // TurnCompleted, a quarter of a second after it happened
        yield* pass(12_000)
        expect(asked("renew")).toBeGreaterThanOrEqual(3)
        expect(asked("head")).toBeGreaterThanOrEqual(20)
        yield* Fiber.interrupt(fiber)
      })
    )

    it.effect("keeps no cancel from being noticed within a second", () =>
      Effect.gen(function* () {
        const { fiber, here } = yield* stepped(looks, millis)
        yield* pass(5000)
        yield* here(Run.cancel({ runId }))
        yield* pass(1000)
        expect(fiber.pollUnsafe()).toBeDefined()
        expect(yield* Fiber.join(fiber)).toBe("Cancelled")
      })
    )

    it.effect("is no time that was driven, blocks no event loop, and puts no event before the one before it", () =>
      Effect.gen(function* () {
        const { fiber, here, warnings } = yield* stepped(looks, millis)
        yield* pass(28_000)
        expect(yield* Fiber.join(fiber)).toBe("Completed")
        expect(warnings).toEqual([])
        const at = (yield* here(eventsOf(runId))).map((event) => event.at - 24 * hour)
        expect(at.slice(0, 4)).toEqual([0, 0, 0, 0])
        expect(at.slice(4)).toEqual([2000, 27_000, 27_000, 27_000, 27_000])
      })
    )

    it.effect("moves no time limit of a model call", () =>
      Effect.gen(function* () {
        const patient = Agent.make("clerk", { instructions: "Work.", tools, timeouts: { firstPart: "10 seconds" } })
        const { fiber, model } = yield* stepped([hang, text("done")], millis, Run.start(patient, { runId, task: "go" }))
        yield* pass(8000)
        expect(yield* model.requests).toHaveLength(1)
        yield* pass(4000)
        expect(yield* model.requests).toHaveLength(2)
        expect(yield* Fiber.join(fiber)).toBe("Completed")
      })
    )

    it.effect("moves the time at which a Run that rests goes on, since a store compares that with the wall clock", () =>
      Effect.gen(function* () {
        const away = after("2 seconds", fail(new AiError.RateLimitError({ retryAfter: Duration.minutes(2) })))
        const { fiber, store } = yield* stepped([away], millis)
        yield* pass(1000)
        expect(yield* Fiber.join(fiber)).toBe("Retryable ModelUnavailable")
        expect((yield* store.head(runId))?.wakeAt).toBe(24 * hour + 2000 + millis + 120_000)
      })
    )
  })

  it.effect("forward renews the lease at once: a computer that slept may have lost it", () =>
    Effect.gen(function* () {
      const { asked, fiber } = yield* stepped([hang], 60_000)
      yield* pass(250)
      expect(asked("renew")).toBe(1)
      yield* pass(1000)
      expect(asked("renew")).toBe(1)
      yield* Fiber.interrupt(fiber)
    })
  )
})

it.effect("a lease of 10 s is renewed when a third of it is over, and not before", () =>
  Effect.gen(function* () {
    const { asked, fiber } = yield* stepped([hang], 0)
    yield* pass(1750)
    expect(asked("renew")).toBe(0)
    yield* pass(250)
    expect(asked("renew")).toBe(1)
    yield* pass(3250)
    expect(asked("renew")).toBe(1)
    yield* pass(250)
    expect(asked("renew")).toBe(2)
    yield* Fiber.interrupt(fiber)
  })
)
