import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Repetition from "../src/Repetition.ts"
import * as Run from "../src/Run.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import { agentOf, journal, ofKind, scene } from "./support/turns.ts"

const { delta, stream, thought } = ScriptedModel
const line = "I will do it.\n"
const input = { runId: "r", task: "go" }

describe("RI-035 Repetition.count", () => {
  it.each([
    ["a line over and over", line.repeat(40), 40],
    ["a paragraph of several lines", "First I look.\nThen I edit.\nThen I test.\n".repeat(12), 12],
    ["what comes after something else", `Let me think about it. ${line.repeat(30)}`, 30],
    ["a repeat that is not complete", `${line.repeat(30)}I will`, 30],
    ["text without line breaks", "no ".repeat(100), 100]
  ])("counts %s", (_, said, times) => {
    expect(Repetition.count(said)).toBe(times)
  })

  it.each([
    ["nothing", ""],
    ["a rule of dashes", "-".repeat(100)],
    ["numbered lines", Array.from({ length: 200 }, (_, i) => `${i}. ${line}`).join("")],
    ["a loop that was left", `${line.repeat(40)}Now for something completely different, at last.`],
    [
      "prose",
      "The quick brown fox jumps over the lazy dog. ".repeat(2) + "And then it sleeps, for it is late. ".repeat(3)
    ]
  ])("sees less than 5 repeats in %s", (_, said) => {
    expect(Repetition.count(said)).toBeLessThan(5)
  })
})

describe("RI-035 Repetition.detector", () => {
  /** Text that says nothing twice; another one for another seed. */
  const unit = (length: number, seed = 1) => {
    let last = seed
    return Array.from({ length }, () => String.fromCharCode(97 + ((last = (last * 16_807) % 2_147_483_647) % 26))).join(
      ""
    )
  }
  /** How much of it is seen before it is found, in pieces of 5; undefined if it is not. */
  const found = (atMost: number, said: string): number | undefined => {
    const repeats = Repetition.detector(atMost)
    for (let at = 0; at < said.length; at += 5) if (repeats(said.slice(at, at + 5))) return at + 5
    return undefined
  }

  it.each([
    [20, 1200],
    [20, Repetition.longest],
    [2, 1200],
    [50, 1000]
  ])("finds %d repeats of a paragraph of %d units before a few more have come", (times, length) => {
    const seen = found(times, `First this. ${unit(length).repeat(times * 2)}`) ?? 0
    expect(seen).toBeGreaterThanOrEqual(times * length)
    expect(seen).toBeLessThanOrEqual(times * length * 1.2 + 256)
  })

  it("finds what is short as soon as it has been said often enough", () => {
    expect(found(20, unit(100).repeat(100))).toBeLessThanOrEqual(20 * 100 + 256)
  })

  it.each([
    [20, 1200],
    [4, 50]
  ])("finds nothing before %d repeats of %d units", (times, length) => {
    expect(
      found(
        times,
        unit(length)
          .repeat(times - 1)
          .padEnd(60_000, unit(60_000, 2))
      )
    ).toBe(undefined)
  })
})

describe("RI-035 a reply that repeats itself", () => {
  const endless = (say: (said: string) => ScriptedModel.Chunk) =>
    stream(Array.from({ length: 20_000 }, () => say(line)))

  it.effect.each([
    ["text", delta],
    ["reasoning", thought]
  ] as const)("in its %s is interrupted and stops the Run; what was said is paid for", ([, say]) =>
    scene([endless(say), endless(delta)], ({ model }) =>
      Effect.gen(function* () {
        const agent = yield* agentOf({ limits: { maxRepeats: 20 } })
        expect(yield* Run.start(agent, input)).toMatchObject({ _tag: "Stopped", reason: { _tag: "RepetitiveOutput" } })
        expect((yield* model.requests).length).toBe(1)
        const [failed] = ofKind(yield* journal("r"), "TurnFailed")
        expect(failed).toMatchObject({ failure: { tag: "RepetitiveOutput", retryable: false } })
        expect(failed?.usage).toMatchObject({ estimated: true })
        // 20 repeats and the distance between two looks, at 4 units a token at least, and not 20,000 repeats.
        expect(failed?.usage.output).toBeLessThan((20 * line.length + 256) / 2)
        // It can go on when somebody says so, with another limit if need be.
        const again = { runId: "r", limits: { maxRepeats: 100_000 } }
        expect(yield* Run.resume(agent, again)).toMatchObject({ output: line.repeat(20_000) })
      })
    )
  )

  it.effect("is taken as it is where nobody asked for the limit", () =>
    scene([stream(Array.from({ length: 100 }, () => delta(line)))], () =>
      Effect.gen(function* () {
        expect(yield* Run.start(yield* agentOf(), input)).toMatchObject({ output: line.repeat(100) })
      })
    )
  )

  it.effect("a limit of less than 2 repeats is refused", () =>
    scene([], () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(Run.start(yield* agentOf({ limits: { maxRepeats: 1 } }), input))
        expect(error.reason.message).toContain("limits.maxRepeats")
      })
    )
  )
})
