import { Agent, MemoryStore, Run } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as AskUser from "../src/AskUser.ts"

const { call, text } = ScriptedModel
const agent = Agent.make("asker", { instructions: "Ask before you guess.", tools: [AskUser.tool] })
const question = { question: "Which one?", choices: ["red", "blue"] }

describe("AskUser", () => {
  it.effect.each(["the blue one", "", "false"])(
    "RI-105 a Run rests until the user answers, and goes on with what they said: %j",
    (value) =>
      Effect.gen(function* () {
        const model = yield* ScriptedModel.make([call("ask_user", question), text("done")])
        yield* Effect.gen(function* () {
          const outcome = yield* Run.start(agent, { runId: "r", task: "go" })
          expect(outcome).toMatchObject({
            _tag: "Suspended",
            waiting: [{ id: "t1.0", kind: "external", name: "ask_user" }]
          })
          const answer = (value: string | number) =>
            Run.answer(agent, { runId: "r", callId: "t1.0", answer: { _tag: "Value", value }, by: "ann" })
          expect((yield* Effect.flip(answer(7))).reason._tag).toBe("AnswerInvalid")
          yield* answer(value)
          expect(yield* Run.resume(agent, { runId: "r" })).toMatchObject({ _tag: "Completed", output: "done" })
        }).pipe(Effect.provide([model.layer, MemoryStore.layer]))
        const [, second] = yield* model.requests
        expect(second?.results).toMatchObject([{ name: "ask_user", isFailure: false, result: value }])
        yield* model.assertConsumed
      })
  )

  it.effect.each([{ question: "" }, { question: "Which?", choices: ["one"] }, {}])(
    "a question that is none, %j, is the model's mistake and asks nobody",
    (parameters) =>
      Effect.gen(function* () {
        const model = yield* ScriptedModel.make([call("ask_user", parameters), text("done")])
        const outcome = yield* Run.start(agent, { runId: "r", task: "go" }).pipe(
          Effect.provide([model.layer, MemoryStore.layer])
        )
        expect(outcome).toMatchObject({ _tag: "Completed" })
        const [, second] = yield* model.requests
        expect(second?.results).toMatchObject([{ isFailure: true }])
      })
  )
})
