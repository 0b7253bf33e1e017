import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as AiError from "effect/ai/AiError"
import * as Fallback from "../src/Fallback.ts"
import * as Guard from "../src/Guard.ts"
import { ModelInfo, ModelSettings, Prices } from "../src/ModelInfo.ts"
import * as MemoryStore from "../src/MemoryStore.ts"
import * as Run from "../src/Run.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import * as Text from "../src/Text.ts"
import { agentOf, during, handled, only, outcomeOf, plugged, ran, Work } from "./support/tools.ts"

const { call, delta, fail, stream, text } = ScriptedModel
const handler = () => Effect.succeed("ok")
const stateless = { initial: undefined, fold: () => undefined }

type Check = Parameters<Guard.Options<unknown>["check"]>[0]
type StepCheck = Check & { readonly proposal: Extract<Guard.Proposal, { readonly _tag: "Step" }> }

/** A plugin of one guard that judges model calls. */
const judging = (check: (check: StepCheck) => Guard.Verdict, name = "judge", stage: Guard.Stage = "budget") =>
  plugged({
    name,
    guards: [
      Guard.make<unknown>({
        ...stateless,
        name,
        stage,
        check: ({ proposal, ...rest }) => (proposal._tag === "Step" ? check({ ...rest, proposal }) : Guard.allow)
      })
    ]
  })

describe("what a guard may say of a model call", () => {
  it.effect("a final turn sees no tools, and the Run stops after it for the guard's reason", () =>
    Effect.gen(function* () {
      const layer = judging(({ state }) =>
        state.head.turn === 0 ? Guard.allow : { _tag: "Allow", final: { _tag: "Budget" } }
      )
      const result = yield* ran({ handler, layer, script: [call("work", {}), text("so far")] })
      const { events, requests } = result
      expect(outcomeOf(result)).toMatchObject({ _tag: "Stopped", reason: { _tag: "Budget" }, answer: "so far" })
      expect(requests.map(({ tools }) => tools)).toEqual([["work"], []])
      expect(only(events, "TurnStarted").map(({ final }) => final)).toEqual([undefined, { _tag: "Budget" }])
    })
  )

  const cut = stream([delta("half an ans")], { cut: true })
  const overloaded = fail(new AiError.InternalProviderError({ description: "overloaded" }))
  const covering = (maxPaidTries: number) => judging(() => ({ _tag: "Allow", maxPaidTries }))

  it.effect("a try that cost something is the last one that maxPaidTries covers", () =>
    Effect.gen(function* () {
      for (const [covered, tries] of [
        [1, 1],
        [2, 2]
      ] as const) {
        const script = [overloaded, cut, cut, text("late")]
        const { events, requests } = yield* ran({ handler, layer: covering(covered), script, time: "40 seconds" })
        // The first try costs nothing, so it is not counted.
        expect(requests.length).toBe(1 + tries)
        expect(only(events, "TurnFailed")[0]?.tries.length).toBe(1 + tries)
      }
    })
  )

  it.effect("where maxPaidTries is used up no other model is asked either", () =>
    Effect.gen(function* () {
      for (const [covered, asked] of [
        [1, 0],
        [6, 1]
      ] as const) {
        const other = yield* ScriptedModel.make(() => text("from the other"))
        const first = yield* ScriptedModel.make(() => cut)
        const agent = agentOf(Work)
        const models = Fallback.layer([first.layer, other.layer])
        const layer = Layer.mergeAll(covering(covered), models, handled(handler), MemoryStore.layer)
        yield* during("2 minutes")(
          Effect.exit(Run.start(agent, { runId: "r", task: "go" }).pipe(Effect.provide(layer)))
        )
        expect((yield* first.requests).length).toBe(Math.min(covered, 5))
        expect((yield* other.requests).length).toBe(asked)
      }
    })
  )

  it.effect("a maxPaidTries of 0 comes from a broken guard", () =>
    Effect.gen(function* () {
      const result = yield* ran({ handler, layer: covering(0), script: [] })
      expect(outcomeOf(result)).toMatchObject({ _tag: "Stopped", reason: { _tag: "Denied" } })
      expect(result.requests).toEqual([])
    })
  )
})

const bytesOf = ({ messages }: ScriptedModel.Request) =>
  messages.reduce((sum, message) => sum + Buffer.byteLength(JSON.stringify(message)), 0)

describe("what a guard may know of a model call", () => {
  it.effect("Q1 inputBytes are those of the messages that the model then sees", () =>
    Effect.gen(function* () {
      const seen: Array<number> = []
      const withTools: Array<number> = []
      const layer = judging(({ proposal: { request } }) => {
        seen.push(request.inputBytes({ tools: false }))
        withTools.push(request.inputBytes({ tools: true }))
        return Guard.allow
      })
      const script = [call("work", { n: 1 }), call("work", { n: 2 }), text("žluťoučký 🧭")]
      const { requests } = yield* ran({ handler: () => Effect.succeed("ž🧭".repeat(99)), layer, script })
      expect(seen).toEqual(requests.map(bytesOf))
      expect(new Set(withTools.map((all, i) => all - (seen[i] ?? 0))).size).toBe(1)
      expect((withTools[0] ?? 0) - (seen[0] ?? 0)).toBeGreaterThan(100) // the schema of a tool
    })
  )

  it.effect("G4 a nudge is in what is measured next, and its guard is not heard twice", () =>
    Effect.gen(function* () {
      const seen: Array<number> = []
      const measuring = judging(({ proposal: { request } }) => {
        seen.push(request.inputBytes({ tools: false }))
        return { _tag: "Allow", reservation: { bytes: seen.at(-1) ?? 0 }, note: "measured" }
      })
      const nudging = judging(() => Guard.nudge("Hurry up."), "nudge", "loop")
      const { events, requests } = yield* ran({
        handler,
        layer: Layer.merge(nudging, measuring),
        script: [text("done")]
      })
      expect(seen.at(-1)).toBe(requests.map(bytesOf)[0])
      expect(only(events, "TurnStarted")[0]?.reservations).toEqual({ judge: { bytes: seen.at(-1) } })
      expect(only(events, "VerdictGiven").map(({ verdict }) => verdict)).toEqual(["Nudge", "Allow"])
    })
  )

  it.effect("models, settings and prices are those of the request; a table that throws knows no price", () =>
    Effect.gen(function* () {
      const told: Array<unknown> = []
      const layer = judging(({ proposal: { request } }) => {
        const [{ info, settings } = { info: {}, settings: {} }] = request.models
        told.push(
          info,
          settings,
          request.cost(info, { input: 1, cacheRead: 0, cacheWrite: 0, output: 2, reasoning: 0 })
        )
        told.push(request.cost({}, { input: 1, cacheRead: 0, cacheWrite: 0, output: 2, reasoning: 0 }))
        return Guard.allow
      })
      const info = { provider: "p", model: "m", window: 1000 }
      const given = Layer.mergeAll(
        layer,
        Layer.succeed(ModelInfo, info),
        Layer.succeed(ModelSettings, { maxOutputTokens: 7 }),
        Layer.succeed(Prices, {
          cost: ({ model }, { input, output }) => {
            if (model === undefined) throw new Error("no model")
            return input + output
          }
        })
      )
      yield* ran({ handler, layer: given, script: [text("done")] })
      expect(told).toEqual([info, { maxOutputTokens: 7 }, 3, undefined])
    })
  )
})

describe("utf8Length", () => {
  it("counts as UTF-8 does, lone surrogates as their replacement", () => {
    for (const sample of ["", "abc", "žluť", "€", "🧭🧭", "a\ud800b", "\udc00", "\ud83e", "𝒳é\u0000"])
      expect(Text.utf8Length(sample)).toBe(Buffer.byteLength(sample))
  })
})
