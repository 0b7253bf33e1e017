/**
 * Asks for a whole reply.
 *
 * @since 0.1.0
 */
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4GenerateResult } from "@ai-sdk/provider"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as AiError from "effect/ai/AiError"
import type * as Response from "effect/ai/Response"
import * as Faults from "./Faults.ts"
import * as Finish from "./Finish.ts"
import * as ForbiddenKeys from "./ForbiddenKeys.ts"
import * as Guarded from "./Guarded.ts"
import * as Parts from "./Parts.ts"
import type { Options } from "./Streamed.ts"

/** One request; its interruption aborts it. */
export const make = Effect.fnUntraced(function* (
  model: LanguageModelV4,
  call: LanguageModelV4CallOptions,
  { log, tools }: Options
): Effect.fn.Return<Array<Response.PartEncoded>, AiError.AiError> {
  const clock = yield* Clock.Clock
  const result = yield* Effect.tryPromise({
    try: (abortSignal) => ask(Guarded.whole(model), { ...call, abortSignal }),
    catch: (error) => Faults.make("generateText", Faults.reasonOf(error, clock.currentTimeMillisUnsafe()))
  })
  // The package for Google reads an error with a good status as a reply that says nothing.
  const reported = result.content.length === 0 ? Faults.ofBody(result.response?.body) : undefined
  if (reported !== undefined) return yield* Faults.make("generateText", reported)
  yield* log(result.warnings.map(warning))
  const finish = Finish.part(result)
  if (Finish.isRefusal(result)) return yield* Faults.make("generateText", Faults.refusal(textOf(result), finish.usage))
  const notes: Array<string> = []
  const about = Parts.context(tools, (note) => notes.push(note))
  const content = result.content.flatMap((part) => Parts.content(part, about))
  yield* log(notes)
  return [Parts.responseMetadata(result.response ?? {}), ...content, finish]
})

const ask = async (
  model: LanguageModelV4,
  call: LanguageModelV4CallOptions
): Promise<LanguageModelV4GenerateResult> => {
  try {
    return await model.doGenerate(call)
  } catch (error) {
    const again = ForbiddenKeys.rereading(model, error)
    if (again === undefined) throw error
    return await again.doGenerate(call)
  }
}

const textOf = ({ content }: LanguageModelV4GenerateResult): string =>
  content.map((part) => (part.type === "text" ? part.text : "")).join("")

/** What a package could not do as asked, in one line. */
export const warning = (given: LanguageModelV4GenerateResult["warnings"][number]): string =>
  Object.values(given).map(String).join(": ").slice(0, 300)
