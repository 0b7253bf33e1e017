import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as AiError from "effect/ai/AiError"
import * as Agent from "../src/Agent.ts"
import * as Run from "../src/Run.ts"
import * as ScriptedModel from "../src/testing/ScriptedModel.ts"
import { journal, Kit, ofKind, scene } from "./support/turns.ts"

const { call, fail, text } = ScriptedModel
const input = { runId: "r", task: "go" }

/** A date in its JSON form, so that what comes out is not what the model wrote. */
const Report = Schema.Struct({ count: Schema.Number, at: Schema.DateFromString })
const good = '{"count":1,"at":"2026-01-02T00:00:00.000Z"}'
const report = { count: 1, at: new Date("2026-01-02T00:00:00.000Z") }

const agent = Agent.make("reporter", { instructions: "Report.", tools: [Kit], output: Report })
const told = (messages: ReadonlyArray<{ readonly content: unknown }> = []) => JSON.stringify(messages)

describe("an agent with an output schema", () => {
  it.effect("tells the model the JSON Schema, and completes with the schema's type after any calls", () =>
    scene([call("look", { at: 1 }), text(good)], ({ model }) =>
      Effect.gen(function* () {
        expect(yield* Run.start(agent, input)).toMatchObject({ _tag: "Completed", output: report, attempts: 1 })
        for (const { messages } of yield* model.requests) {
          expect(messages[0]?.role).toBe("system")
          expect(told(messages.slice(0, 1))).toMatch(/Report\..*JSON Schema.*count/)
        }
        // The stored Outcome is the same, in another process too.
        expect(yield* Run.start(agent, input)).toMatchObject({ _tag: "Completed", output: report, attempts: 1 })
        expect(yield* Run.resume(agent, { runId: "r" })).toMatchObject({ output: report })
        expect(ofKind(yield* journal("r"), "TurnCompleted").at(-1)?.output).toEqual(JSON.parse(good))
      })
    )
  )

  it.effect.each([
    ["bare", good],
    ["in a fence", `\`\`\`json\n${good}\n\`\`\``],
    ["in a fence with prose around it", `Here it is:\n\n\`\`\`\n${good}\n\`\`\`\nAnything else?`],
    ["with space around it", `\n  ${good} \n`],
    ["with a byte order mark and no-break spaces around it", `\ufeff\u00a0${good}\u00a0`],
    ["after thoughts in text", `<think>Is it {"count":2}?\n</think>\n${good}`],
    ["in a fence on one line", `\`\`\`json ${good} \`\`\``],
    ["in a longer fence", `\`\`\`\`json\n${good}\n\`\`\`\``],
    ["in a fence of tildes with CRLF", `~~~json\r\n${good}\r\n~~~\r\n`],
    [
      "in a fence, after ten thousand lines of fences that hold nothing",
      `${"```a ```\n".repeat(10_000)}\`\`\`\n${good}\n\`\`\``
    ],
    ["in a fence, behind half a megabyte of blanks", `\`\`\`json\n${" ".repeat(500_000)}${good}\n\`\`\``],
    ["in a fence, beside one of something else", `\`\`\`sh\ncurl x\n\`\`\`\n\`\`\`json\n${good}\n\`\`\``]
  ])("RI-086 accepts JSON that is %s", ([, answer = ""]) =>
    scene([text(answer)], () =>
      Effect.gen(function* () {
        expect(yield* Run.start(agent, input)).toMatchObject({ output: report, attempts: 1 })
      })
    )
  )

  it.effect.each([
    ["with prose beside it", `Sure! ${good}`, "not JSON"],
    ["no JSON", "no", "not JSON"],
    ["with a trailing comma", `${good.slice(0, -1)},}`, "not JSON"],
    ["in two fences", `\`\`\`\n${good}\n\`\`\`\n\`\`\`\n${good}\n\`\`\``, "not JSON"],
    ["of another shape", '{"count":"one"}', "count"],
    ["a JSON string of it", JSON.stringify(good), "schema"]
  ])("RI-086 asks again for an answer that is %s, and quotes what is wrong", ([, answer = "", issue = ""]) =>
    scene([text(answer), text(good)], ({ model }) =>
      Effect.gen(function* () {
        expect(yield* Run.start(agent, input)).toMatchObject({ output: report, attempts: 2 })
        const [, second] = yield* model.requests
        expect(second?.messages.slice(-2).map(({ role }) => role)).toEqual(["assistant", "user"])
        expect(told(second?.messages.slice(-1))).toContain(issue)
      })
    )
  )

  it.effect("RI-163 says how many answers it took", () =>
    scene([text("bad"), text('{"count":2}'), text(good)], () =>
      Effect.gen(function* () {
        expect(yield* Run.start(agent, input)).toMatchObject({ output: report, attempts: 3 })
      })
    )
  )

  it.effect("RI-163 fails with the count and the last issues after three answers that do not match", () =>
    scene([text("bad"), text("bad"), text('{"count":"three"}')], ({ model }) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(Run.start(agent, input))
        expect(error).toMatchObject({ _tag: "Fatal", reason: { _tag: "OutputInvalid", attempts: 3 } })
        expect(error.reason).toMatchObject({ issues: expect.stringContaining("count") })
        yield* model.assertConsumed
        // It is stored so, and can be asked again.
        expect(yield* Effect.flip(Run.start(agent, input))).toMatchObject({ reason: { attempts: 3 } })
      })
    )
  )

  it.effect("counts anew after a call, since that was progress", () =>
    scene([text("bad"), text("bad"), call("look", { at: 1 }), text("bad"), text(good)], () =>
      Effect.gen(function* () {
        expect(yield* Run.start(agent, input)).toMatchObject({ output: report, attempts: 2 })
      })
    )
  )

  it.effect("RI-150 finds a refusal before it looks for JSON, after one call of the model", () =>
    scene([fail(new AiError.ContentPolicyError({ description: "no" }))], ({ model }) =>
      Effect.gen(function* () {
        expect(yield* Effect.flip(Run.start(agent, input))).toMatchObject({ reason: { _tag: "ModelRefusal" } })
        yield* model.assertConsumed
      })
    )
  )

  it.effect("RI-150 finds a content filter before it looks for JSON", () =>
    scene([text("I can", { finish: "content-filter" })], ({ model }) =>
      Effect.gen(function* () {
        expect(yield* Run.start(agent, input)).toMatchObject({ _tag: "Stopped", reason: { _tag: "ContentFiltered" } })
        yield* model.assertConsumed
      })
    )
  )

  it.effect("a cut-off answer stays a cut-off one, and an empty one an empty one", () =>
    Effect.gen(function* () {
      const cut = text('{"count":1', { finish: "length" })
      yield* scene([cut, cut, cut], () =>
        Effect.gen(function* () {
          expect(yield* Run.start(agent, input)).toMatchObject({ reason: { _tag: "OutputTruncated" } })
        })
      )
      yield* scene([text(" "), text(""), text(" ")], () =>
        Effect.gen(function* () {
          expect(yield* Effect.flip(Run.start(agent, input))).toMatchObject({ reason: { _tag: "EmptyResponse" } })
        })
      )
    })
  )

  it.effect("quotes everything that is wrong, not only the first", () =>
    scene([text('{"count":"one","at":7}'), text(good)], ({ model }) =>
      Effect.gen(function* () {
        yield* Run.start(agent, input)
        const said = told((yield* model.requests)[1]?.messages.slice(-1))
        expect(said).toMatch(/count[\s\S]*\bat\b/)
      })
    )
  )

  it.effect("a stored output that a later version's schema does not take is an error, never the raw value", () =>
    scene([text(good)], () =>
      Effect.gen(function* () {
        yield* Run.start(agent, input)
        const later = Agent.make("reporter", {
          instructions: "Report.",
          version: "2",
          tools: [Kit],
          output: Schema.Struct({ total: Schema.Number })
        })
        const error = yield* Effect.flip(Run.start(later, input))
        expect(error).toMatchObject({
          _tag: "Fatal",
          reason: { _tag: "OutputInvalid", issues: expect.stringContaining("total") }
        })
      })
    )
  )

  it.effect(
    "a stored output that is no text is an error for a later version without a schema, whose type is text",
    () =>
      scene([text(good)], () =>
        Effect.gen(function* () {
          yield* Run.start(agent, input)
          const later = Agent.make("reporter", { instructions: "Report.", version: "2", tools: [Kit] })
          const error = yield* Effect.flip(Run.start(later, input))
          expect(error).toMatchObject({ _tag: "Fatal", reason: { _tag: "OutputInvalid" } })
        })
      )
  )

  it.effect("a final turn after a limit answers in text, whatever the schema", () =>
    scene([call("look", { at: 1 }), text("I ran out of turns")], () =>
      Effect.gen(function* () {
        const brief = Agent.make("reporter", {
          instructions: "Report.",
          tools: [Kit],
          output: Report,
          limits: { maxTurns: 1, finalAnswer: true }
        })
        expect(yield* Run.start(brief, input)).toMatchObject({ _tag: "Stopped", answer: "I ran out of turns" })
      })
    )
  )

  it.effect("a schema that cannot be said as JSON Schema is refused at the start", () =>
    scene([], () =>
      Effect.gen(function* () {
        const broken = Schema.suspend((): Schema.Codec<string> => {
          throw new Error("bug")
        })
        const odd = Agent.make("odd", { instructions: "x", tools: [Kit], output: broken })
        const error = yield* Effect.flip(Run.start(odd, input))
        expect(error).toMatchObject({ reason: { _tag: "ToolkitInvalid" } })
        expect(error.reason.message).toContain("output")
      })
    )
  )
})
