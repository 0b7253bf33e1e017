/**
 * Lets an agent ask its user something: the Run rests until the answer comes, for minutes or for days.
 *
 * It is an external tool: it has no handler, and nothing in front of the question is run twice (RI-121). It counts as
 * Readonly, since a question changes nothing and should need no approval, and not as OpenWorld, since the user answers.
 *
 * @example
 * const agent = Agent.make("asker", { instructions: "Ask before you guess.", tools: [AskUser.tool] })
 * const outcome = yield* Run.start(agent, { runId, task })
 * if (outcome._tag === "Suspended") {
 *   const [wait] = outcome.waiting // { id: "t1.0", kind: "external", name: "ask_user" }
 *   yield* Run.answer(agent, { runId, callId: wait.id, answer: { _tag: "Value", value: "the blue one" }, by: "ann" })
 *   yield* Run.resume(agent, { runId })
 * }
 *
 * @since 0.1.0
 */
import { ToolOptions } from "@waystone/core"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"

/** `ask_user`: a question, perhaps with two to ten choices; the answer is any text, also none of the choices. */
export const tool = ToolOptions.external(
  Tool.make("ask_user", {
    description:
      "Ask the user a question that only they can answer, and wait for it. Offer choices where there are a few",
    parameters: Schema.Struct({
      question: Schema.NonEmptyString,
      choices: Schema.optionalKey(
        Schema.Array(Schema.NonEmptyString).check(Schema.isMinLength(2), Schema.isMaxLength(10))
      )
    }),
    success: Schema.String
  })
    .annotate(Tool.Readonly, true)
    .annotate(Tool.Destructive, false)
    .annotate(Tool.OpenWorld, false)
)
