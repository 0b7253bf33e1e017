/**
 * Passes a request on to a LanguageModel as it came and gives its answer back in effect/ai's encoded form, so that a
 * model can stand in front of another one without either noticing.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Response from "effect/ai/Response"
import { describing } from "../AgentTool.ts"

const encodePart = Schema.encodeUnknownEffect(Response.Part())
const encodeStreamPart = Schema.encodeUnknownEffect(Response.StreamPart())

const passed = ({ prompt, toolChoice, tools }: LanguageModel.ProviderOptions) => ({
  prompt,
  toolkit: describing(tools),
  toolChoice,
  disableToolCallResolution: true as const,
  toolCallValidation: "deferred" as const
})

const unencodable = (method: string, { issue }: Schema.SchemaError): AiError.AiError =>
  AiError.make({
    module: "RecordedModel",
    method,
    reason: new AiError.InvalidOutputError({ description: String(issue) })
  })

/** The whole reply. */
export const whole = (
  model: LanguageModel.LanguageModel,
  options: LanguageModel.ProviderOptions
): Effect.Effect<Array<Response.PartEncoded>, AiError.AiError> =>
  Effect.flatMap(model.generateText(passed(options)), ({ content }) =>
    Effect.mapError(
      Effect.forEach(content, (part) => encodePart(part)),
      (error) => unencodable("generateText", error)
    )
  )

/** The reply as a stream, in the chunks that it came in. */
export const streamed = (
  model: LanguageModel.LanguageModel,
  options: LanguageModel.ProviderOptions
): Stream.Stream<Response.StreamPartEncoded, AiError.AiError> =>
  Stream.mapArrayEffect(model.streamText(passed(options)), (parts) =>
    Effect.mapError(
      Effect.forEach(parts, (part) => encodeStreamPart(part)),
      (error) => unencodable("streamText", error)
    )
  )
