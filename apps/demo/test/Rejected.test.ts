import { describe, expect, it } from "@effect/vitest"
import { RunError } from "@waystone/core"
import type { Choice } from "../src/model/Choice.ts"
import * as Rejected from "../src/Rejected.ts"

const choice: Choice = { _tag: "Named", provider: "openai", name: "m", textProtocol: false }

/** What is said of a Run that failed with that status. */
const said = (status: number, away?: true) => {
  const known = { runId: "r", detail: "no", status, ...(away === undefined ? {} : { away }) }
  const error = RunError.classOf(new RunError.ModelRejected(known))
  return Rejected.advice({ _tag: "Failed", error }, choice)?.advice
}

describe("a provider that stayed away for all rests", () => {
  it.each([429, 503])("with status %i is said to have been away, and no account or request is blamed", (status) => {
    expect(said(status, true)).toBe(
      "openai was away, or too busy, for longer than a run waits: try again later, or name another model by --model."
    )
  })

  it("is told apart from a quota that is used up, which has the status of a limit", () => {
    expect(said(429)).toContain("top up its account")
  })
})
