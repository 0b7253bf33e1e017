import { describe, expect, it } from "@effect/vitest"
import { ModelRetry } from "@waystone/core"
import * as Faults from "../src/Faults.ts"

const failureOf = (report: unknown) =>
  ModelRetry.failureOf(Faults.make("streamText", Faults.reasonOf(report, 0)), ModelRetry.table, 0)

describe("RI-065 an error event within a stream", () => {
  it.each([
    { by: "a status", report: { message: "busy", statusCode: 429 }, is: "retry", status: 429 },
    { by: "a status in place of a code", report: { message: "busy", code: 503 }, is: "retry", status: 503 },
    { by: "a status that no try mends", report: { message: "no", code: 400 }, is: "fatal", status: 400 },
    { by: "a word", report: { message: "busy", type: "overloaded_error" }, is: "retry", status: undefined },
    {
      by: "a word in place of a code",
      report: { message: "busy", code: "server_error" },
      is: "retry",
      status: undefined
    },
    {
      by: "a limit behind the kind of what is limited",
      report: { message: "busy", type: "tokens", code: "rate_limit_exceeded" },
      is: "retry",
      status: undefined
    },
    { by: "a status as text", report: { message: "busy", code: "429" }, is: "retry", status: 429 },
    {
      by: "a status as text that no try mends",
      report: { message: "no", type: "server_error", code: "400" },
      is: "fatal",
      status: 400
    },
    {
      by: "a busy server",
      report: { message: "busy", type: "server_busy", code: null },
      is: "retry",
      status: undefined
    },
    {
      by: "a quota, whatever its package thinks",
      report: { message: "busy", type: "insufficient_quota", code: "insufficient_quota", isRetryable: true },
      is: "elsewhere",
      status: undefined
    },
    {
      by: "a quota, whatever its status",
      report: { message: "busy", code: "insufficient_quota", statusCode: 429 },
      is: "elsewhere",
      status: 429
    },
    { by: "a limit", report: { message: "busy", code: "rate_limit_exceeded" }, is: "retry", status: undefined },
    {
      by: "its package",
      report: { message: "busy", type: "brand_new", isRetryable: true },
      is: "retry",
      status: undefined
    },
    { by: "nothing that is known", report: { message: "new", type: "brand_new" }, is: "fatal", status: undefined },
    { by: "a number that is no status", report: { message: "new", code: 7 }, is: "fatal", status: undefined },
    { by: "its text alone", report: "busy", is: "fatal", status: undefined }
  ])("is classified by $by, also where it lies within another", ({ is, report, status }) => {
    const wrapped = typeof report === "string" ? [report] : [report, { error: report }, { response: { error: report } }]
    for (const one of wrapped) {
      expect(failureOf(one)).toMatchObject({ class: is, ...(status === undefined ? {} : { status }) })
    }
  })

  it("keeps the more general of two unknown words, by which a table of one's own decides", () => {
    const error = Faults.make("streamText", Faults.reasonOf({ message: "odd", type: "general", code: "special" }, 0))
    const table = { ...ModelRetry.table, types: { general: "retry", special: "refusal" } } as const
    expect(ModelRetry.failureOf(error, table, 0).class).toBe("retry")
  })

  it("says what the provider said", () => {
    expect(failureOf({ response: { error: { message: "new and odd", code: 400 } } }).message).toContain("new and odd")
    expect(failureOf({ message: "slow down", code: "rate_limit_exceeded" }).message).toContain("slow down")
    expect(failureOf({ message: "pay first", code: "insufficient_quota" }).message).toContain("pay first")
    expect(failureOf("odd").message).toContain("odd")
    expect(failureOf({}).message).toContain("reported an error within the stream")
  })
})
