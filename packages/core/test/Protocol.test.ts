import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import * as Run from "../src/Run.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import { agentOf, failure, journal, ofKind, scene } from "./support/turns.ts"

const { call, reply, text } = ScriptedModel
const input = { runId: "r", task: "go" }
const usage = { inputTokens: {}, outputTokens: {} }

/** A reply that its adapter could not read. */
const broken = (protocol: Schema.Json, ...parts: ReadonlyArray<ScriptedModel.Reply>) =>
  reply([...parts, { type: "finish", reason: "stop", usage, metadata: { waystone: { protocol } } }])

describe("a reply that breaks the protocol of its adapter", () => {
  it.effect("is answered with the adapter's feedback twice, and its calls are not run", () =>
    scene(
      [
        broken("first error", text("hm"), call("save", { text: "never" })),
        broken("second error"),
        call("save", { text: "a" }),
        broken("third error"),
        text("done")
      ],
      ({ model }) =>
        Effect.gen(function* () {
          expect(yield* Run.start(yield* agentOf(), input)).toMatchObject({ _tag: "Completed", output: "done" })
          const last = (yield* model.requests).map(({ messages }) => JSON.stringify(messages.at(-1)?.content))
          expect(last.map((content) => /(first|second|third) error/.exec(content)?.[1])).toEqual([
            undefined,
            "first",
            "second",
            undefined,
            "third"
          ])
          const events = yield* journal("r")
          expect(ofKind(events, "ToolCallCompleted").map(({ ending }) => ending)).toEqual(["not-executed", "executed"])
          expect(ofKind(events, "TurnCompleted")[0]?.rejected).toEqual({ kind: "protocol", feedback: "first error" })
        })
    )
  )

  it.effect("three times in a row fails the Run, the last error quoted", () =>
    scene([broken("one"), broken("two"), broken("three")], () =>
      Effect.gen(function* () {
        const error = yield* failure(Run.start(yield* agentOf(), input))
        expect(error).toMatchObject({ _tag: "Fatal", reason: { _tag: "ModelRejected" } })
        expect(String("reason" in error ? error.reason : "")).toContain("three")
      })
    )
  )

  it.effect.each([7, null, { a: 1 }])("feedback that is no text is none: %s", (protocol) =>
    scene([broken(protocol, text("done"))], () =>
      Effect.gen(function* () {
        expect(yield* Run.start(yield* agentOf(), input)).toMatchObject({ output: "done" })
      })
    )
  )
})
