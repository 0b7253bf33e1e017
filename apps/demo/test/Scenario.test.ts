import { describe, expect, it } from "@effect/vitest"
import type { RunEvent } from "@waystone/core"
import * as Effect from "effect/Effect"
import { vi } from "vitest"
import * as Scenario from "../src/scenario/Scenario.ts"
import { demo, project, real } from "./support.ts"

vi.setConfig({ testTimeout: 120_000 })

const withScenario = (scenario: Scenario.Scenario) => Effect.flatMap(project(), (folder) => demo(folder, { scenario }))
const named = (events: ReadonlyArray<RunEvent.RunEvent>, name: string) =>
  events.flatMap((event) => (event._tag === "ToolCallCompleted" && event.name === name ? [event] : []))
const turn = (events: ReadonlyArray<RunEvent.RunEvent>, number: number) =>
  events.flatMap((event) => (event._tag === "TurnCompleted" && event.turn === number ? [event] : []))[0]

describe("each scenario is proven by its journal", () => {
  it.live("normal: nothing fails, nothing is asked twice", () =>
    real(
      Effect.gen(function* () {
        const { code, proof, verified } = yield* withScenario(Scenario.get("normal"))
        expect(code).toBe(0)
        expect(verified?.repaired).toBe(true)
        expect(proof).toMatchObject({ scenario: "normal", proven: true })
        expect(proof?.line).toMatch(/^each of the \d+ calls has exactly one result; .*; the project is repaired$/)
      })
    )
  )

  it.live("tool-failure: the model is told of the crash, without path and stack, and makes the call again", () =>
    real(
      Effect.gen(function* () {
        const { code, events, proof } = yield* withScenario(Scenario.get("tool-failure"))
        expect({ code, proven: proof?.proven }).toEqual({ code: 0, proven: true })
        const [crashed, again] = named(events, "edit_file")
        expect(crashed).toMatchObject({ isFailure: true, ending: "executed" })
        expect(JSON.stringify(crashed?.result)).toContain("EIO")
        expect(JSON.stringify(crashed?.result)).not.toContain("/src/")
        expect(again).toMatchObject({ isFailure: false })
      })
    )
  )

  it.live("rate-limit: Retry-After is kept, and what a broken try had said is void", () =>
    real(
      Effect.gen(function* () {
        const { code, events, proof, shown } = yield* withScenario(Scenario.get("rate-limit"))
        expect({ code, proven: proof?.proven }).toEqual({ code: 0, proven: true })
        const second = turn(events, 2)
        expect(second?.tries?.map(({ failure }) => failure?.tag)).toEqual([
          "ModelUnavailable",
          "ModelUnavailable",
          undefined
        ])
        expect(shown.filter((one) => one._tag === "TryFailed")).toMatchObject([{ waitMs: 2000 }, { try: 2 }])
      })
    )
  )

  it.live("timeout: a silent model and tests that hang are ended, and both are asked again", () =>
    real(
      Effect.gen(function* () {
        const { code, events, proof } = yield* withScenario(Scenario.get("timeout"))
        expect({ code, proven: proof?.proven }).toEqual({ code: 0, proven: true })
        expect(turn(events, 2)?.tries?.[0]?.failure?.tag).toBe("ModelTimeout")
        expect(named(events, "run_tests")[0]?.result).toMatchObject({ status: "timed-out", left_running: [] })
        // The claim is about what the tool reported: a process that is left breaks it, and it alone.
        const left = events.map((event) =>
          event === named(events, "run_tests")[0]
            ? { ...event, result: { status: "timed-out", output: "", left_running: ["7 node"] } }
            : event
        )
        const broken = Scenario.get("timeout")
          .prove(left)
          .filter(({ holds }) => !holds)
        expect(broken.map(({ claim }) => claim)).toEqual(["no process of theirs is left"])
      })
    )
  )
})

describe("a proof can fail", () => {
  const scenarios = Scenario.names.map((name) => Scenario.get(name))

  it.live.each(scenarios.filter(({ name }) => name !== "normal"))(
    "$name is not proven by a run to which nothing happens",
    (scenario) =>
      real(
        Effect.gen(function* () {
          const { name, prove, says } = scenario
          const { code, proof } = yield* withScenario({ name, prove, says })
          expect({ code, proven: proof?.proven }).toEqual({ code: 1, proven: false })
        })
      )
  )

  it.live("normal is not proven by a run in which a call fails", () =>
    real(
      Effect.gen(function* () {
        const scenario = { ...Scenario.get("tool-failure"), prove: Scenario.get("normal").prove }
        const { code, proof } = yield* withScenario(scenario)
        expect({ code, line: proof?.line }).toEqual({ code: 1, line: "no call failed" })
      })
    )
  )

  it.each(scenarios)("$name is not proven by nothing at all", ({ prove }) => {
    expect(prove([]).some(({ holds }) => !holds)).toBe(true)
  })
})
