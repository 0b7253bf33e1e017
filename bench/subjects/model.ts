import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { add, answer, description, pause, reply, type Script } from "../script.ts"

/** The tool and the scripted model of the two subjects on effect/ai. Without annotations its effect class is `unsafe`. */
export const Add = Tool.make("add", {
  description,
  parameters: Schema.Struct({ a: Schema.Number, b: Schema.Number }),
  success: Schema.Struct({ sum: Schema.Number, pad: Schema.String })
})
export const kit = Toolkit.make(Add)

const lastCall = (prompt: Prompt.Prompt): string | undefined => {
  const last = prompt.content.at(-1)
  const result = last?.role === "tool" ? last.content[0] : undefined
  return result?.type === "tool-result" ? result.id : undefined
}

const finish = (reason: "tool-calls" | "stop"): Response.FinishPartEncoded => ({
  type: "finish",
  reason,
  usage: {
    inputTokens: { uncached: 10, total: 10, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 5, text: 5, reasoning: 0 }
  },
  response: undefined
})

const timed = <A>(script: Script, answered: () => A): Effect.Effect<A> =>
  Effect.suspend(() => {
    const paused = pause(script)
    return paused === undefined ? Effect.succeed(answered()) : Effect.promise(() => paused.then(answered))
  })

export const layer = (script: Script) =>
  Layer.merge(
    Layer.effect(
      LanguageModel.LanguageModel,
      LanguageModel.make({
        generateText: ({ prompt }) =>
          timed(script, (): Array<Response.PartEncoded> => {
            const call = reply(script, lastCall(prompt))
            return call === undefined
              ? [{ type: "text", text: answer }, finish("stop")]
              : [{ type: "tool-call", name: "add", ...call }, finish("tool-calls")]
          }),
        streamText: ({ prompt }) =>
          Stream.fromIterableEffect(
            timed(script, (): Array<Response.StreamPartEncoded> => {
              const call = reply(script, lastCall(prompt))
              return call === undefined
                ? [
                    { type: "text-start", id: "0" },
                    { type: "text-delta", id: "0", delta: answer },
                    { type: "text-end", id: "0" },
                    finish("stop")
                  ]
                : [{ type: "tool-call", name: "add", ...call }, finish("tool-calls")]
            })
          )
      })
    ),
    kit.toLayer({ add: (input) => Effect.sync(() => add(input)) })
  )
