import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import * as Run from "../src/Run.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import { answerAt, boss, cast, runId, worker, yes } from "./support/family.ts"
import { eventsOf, settle, world } from "./support/scenario.ts"
import { only } from "./support/tools.ts"

const { call, text } = ScriptedModel
const child = "r.t1.0"
const lead = boss("lead", [worker("ann")])

/** Somebody else holds the Run of the sub-agent, and renews its lease; the root is driven, and waits for it. */
const held = Effect.gen(function* () {
  const { here, process, ran, store } = yield* world
  const model = yield* cast({
    lead: [call("ask_ann", { task: "pay" }), text("done")],
    ann: [call("pay", { amount: 1 }), text("paid")]
  })
  yield* process({ model })(Run.start(lead, { runId, task: "go" }))
  yield* here(answerAt(lead, "t1.0/t1.0", yes))
  const claimed = yield* store.claim({ runId: child, owner: "B 1", ttlMillis: 3_600_000 })
  expect(claimed._tag).toBe("Claimed")
  const driving = yield* Effect.forkChild(process({ model })(Run.resume(lead, { runId })))
  yield* settle
  yield* TestClock.adjust("3 seconds")
  yield* settle
  expect(driving.pollUnsafe()).toBeUndefined()
  return { driving, here, ran }
})

/** Until the Fiber has ended, in steps, since others must answer in between. */
const within = <A, E>(fiber: Fiber.Fiber<A, E>, seconds: number) =>
  Effect.gen(function* () {
    for (let i = 0; i < seconds && fiber.pollUnsafe() === undefined; i++) {
      yield* TestClock.adjust("1 second")
      yield* settle
    }
    expect(fiber.pollUnsafe()).toBeDefined()
    return yield* Fiber.join(fiber)
  })

describe("a sub-agent whose Run somebody else holds", () => {
  it.effect("pause makes its root rest at once, and the call goes on when that is over", () =>
    Effect.gen(function* () {
      const { driving, here } = yield* held
      yield* here(Run.pause({ runId }))
      expect(yield* within(driving, 3)).toMatchObject({ _tag: "Suspended" })
      const { owner, waiting } = yield* here(Run.get(runId))
      expect(owner).toBeUndefined()
      expect(waiting.map(({ kind }) => kind)).toContain("paused")
    })
  )

  it.effect("cancel tells the holder, and ends the root after two leases at the latest", () =>
    Effect.gen(function* () {
      const { driving, here, ran } = yield* held
      yield* here(Run.cancel({ runId }))
      expect(yield* within(driving, 25)).toMatchObject({ _tag: "Cancelled" })
      expect((yield* here(Run.get(runId))).status).toBe("cancelled")
      expect(yield* here(eventsOf(child))).toEqual(
        expect.arrayContaining([expect.objectContaining({ _tag: "CancelRequested" })])
      )
      const [ask] = only(yield* here(eventsOf(runId)), "ToolCallCompleted")
      expect(ask).toMatchObject({ callId: "t1.0", ending: "unknown", isFailure: true })
      expect(ran).toEqual([])
    })
  )
})
