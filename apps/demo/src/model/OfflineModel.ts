/**
 * A language model that needs neither key nor network: its words are scripted, and its script reacts to what the tools
 * returned. It is called as any other model is and knows only what stands in the prompt.
 */
import { ModelInfo } from "@waystone/core"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import { decide, type Reply } from "./Decide.ts"
import * as Memory from "./Memory.ts"

/** The time between two pieces of text. */
export const Pace: Context.Reference<Duration.Input> = Context.Reference("demo/OfflineModel/Pace", {
  defaultValue: (): Duration.Input => "12 millis"
})

const service = Effect.gen(function* () {
  const pace = yield* Pace
  return yield* LanguageModel.make({
    generateText: ({ prompt }) => Effect.sync(() => whole(prompt, decide(Memory.of(prompt)))),
    streamText: ({ prompt }) =>
      Stream.fromIterable(streamed(prompt, decide(Memory.of(prompt)))).pipe(
        Stream.tap(({ type }) => (type === "text-delta" ? Effect.sleep(pace) : Effect.void))
      )
  })
})

export const layer: Layer.Layer<LanguageModel.LanguageModel> = Layer.merge(
  Layer.effect(LanguageModel.LanguageModel, service),
  Layer.succeed(ModelInfo.ModelInfo, { provider: "waystone", model: "scripted-repairer" })
)

const whole = (prompt: Prompt.Prompt, reply: Reply): Array<Response.PartEncoded> => [
  { type: "text", text: reply.text },
  ...calls(prompt, reply),
  finish(prompt, reply)
]

const streamed = (prompt: Prompt.Prompt, reply: Reply): Array<Response.StreamPartEncoded> => [
  { type: "text-start", id: "text" },
  ...pieces(reply.text).map((delta) => ({ type: "text-delta" as const, id: "text", delta })),
  { type: "text-end", id: "text" },
  ...calls(prompt, reply),
  finish(prompt, reply)
]

/** Words, each with the blank that follows it. */
const pieces = (text: string): ReadonlyArray<string> => text.match(/\S+\s*/g) ?? []

const calls = ({ content }: Prompt.Prompt, reply: Reply): ReadonlyArray<Response.ToolCallPartEncoded> =>
  reply.calls.map(({ name, parameters }, index) => ({
    type: "tool-call",
    id: `scripted_${content.length}_${index}`,
    name,
    params: parameters
  }))

const finish = ({ content }: Prompt.Prompt, reply: Reply): Response.FinishPartEncoded => {
  const input = tokens(JSON.stringify(content))
  const output = tokens(JSON.stringify(reply))
  return {
    type: "finish",
    reason: reply.calls.length > 0 ? "tool-calls" : "stop",
    usage: {
      inputTokens: { uncached: input, total: input, cacheRead: undefined, cacheWrite: undefined },
      outputTokens: { total: output, text: output, reasoning: undefined }
    }
  }
}

/** Nobody tokenises here: four characters a token is the usual rule of thumb. */
const tokens = (text: string): number => Math.ceil(text.length / 4)
