import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import * as Running from "../src/Running.ts"

it.effect("a call that runs for long is known as such until its result is there", () =>
  Effect.gen(function* () {
    const { long, note } = yield* Running.make
    note({ _tag: "CallStarted", callId: "t1.0", name: "run_tests" })
    yield* TestClock.adjust("2 seconds")
    expect(yield* long).toEqual([])
    yield* TestClock.adjust("8 seconds")
    expect(yield* long).toEqual([{ _tag: "StillRunning", callId: "t1.0", name: "run_tests", seconds: 10 }])
    const call = { callId: "t1.0", name: "run_tests", turn: 1 }
    const result = { isFailure: false, result: {}, ending: "executed" } as const
    note({ _tag: "Committed", seq: 4, event: { _tag: "ToolCallCompleted", ...call, ...result, at: 10_000 } })
    expect(yield* long).toEqual([])
  })
)
