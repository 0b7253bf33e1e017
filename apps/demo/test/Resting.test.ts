import { describe, expect, it } from "@effect/vitest"
import { RunError } from "@waystone/core"
import * as Resting from "../src/Resting.ts"

const away = new RunError.ModelUnavailable({ runId: "r", detail: "503" })
const failed = (reason: RunError.RetryableReason, wakeAt?: number) => ({
  error: new RunError.Retryable({ reason, ...(wakeAt === undefined ? {} : { wakeAt }) })
})

describe("a Run rests", () => {
  it("where its error says when to come back, until then", () => {
    const update = failed(away, 7)
    expect(Resting.is(update)).toBe(true)
    expect(Resting.wakeAt(update)).toBe(7)
  })

  it.each([away, new RunError.StoreUnavailable({ detail: "busy" })])("not where it does not: $_tag", (reason) => {
    expect(Resting.is(failed(reason))).toBe(false)
  })
})
