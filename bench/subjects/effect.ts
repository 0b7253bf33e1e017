import * as Effect from "effect/Effect"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Stream from "effect/Stream"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import { instructions, type Options, type Subject, task } from "../script.ts"
import { kit, layer } from "./model.ts"

/** The bare loop on effect/ai, which resolves the calls itself: nothing is kept, judged, bounded or retried. */
export const make = ({ script, stream, window }: Options): Subject => {
  const runtime = ManagedRuntime.make(layer(script))
  const system = Prompt.makeMessage("system", { content: instructions })
  const shown = (history: ReadonlyArray<Prompt.Message>): Prompt.Prompt => {
    const start = window === undefined ? 0 : Math.max(0, history.length - window)
    return Prompt.fromMessages([system, ...history.slice(history[start]?.role === "tool" ? start + 1 : start)])
  }
  const ask = Effect.fnUntraced(function* (prompt: Prompt.Prompt) {
    const options = { prompt, toolkit: kit }
    const parts: ReadonlyArray<Response.AnyPart> = stream
      ? yield* Stream.runCollect(LanguageModel.streamText(options))
      : (yield* LanguageModel.generateText(options)).content
    return parts
  })
  const loop = Effect.gen(function* () {
    const history: Array<Prompt.Message> = [...Prompt.make(task).content]
    while (true) {
      const parts = yield* ask(shown(history))
      const { content } = Prompt.fromResponseParts(parts)
      if (!parts.some((part) => part.type === "tool-call")) {
        return content.map((message) => (message.role === "assistant" ? textOf(message) : "")).join("")
      }
      history.push(...content)
    }
  })
  return { run: () => runtime.runPromise(loop) }
}

const textOf = ({ content }: Prompt.AssistantMessage): string =>
  content.map((part) => (part.type === "text" ? part.text : "")).join("")
