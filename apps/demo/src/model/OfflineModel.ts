/**
 * A language model that needs neither key nor network: its words are scripted, and its script reacts to what the tools
 * returned. It is called as any other model is and knows only what stands in the prompt.
 */
import { ModelInfo } from "@waystone/core"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import type * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import type * as Tool from "effect/ai/Tool"
import { delegate } from "../Agent.ts"
import { decide, plan, type Reply } from "./Decide.ts"
import * as Memory from "./Memory.ts"

/** The time between two pieces of text: where a person watches, as fast as one reads. */
export const Pace: Context.Reference<Duration.Input> = Context.Reference("demo/OfflineModel/Pace", {
  defaultValue: (): Duration.Input => (process.stdout.isTTY === true ? "12 millis" : 0)
})

/** What a model can do instead of answering. */
export type Disturbance =
  | { readonly _tag: "Fail"; readonly error: AiError.AiError }
  /** Says its first words, then fails. */
  | { readonly _tag: "BreakOff"; readonly words: number; readonly error: AiError.AiError }
  | { readonly _tag: "Hang" }

/** `request` counts from 1. */
export type Disturb = (request: number) => Disturbance | undefined

const service = Effect.fnUntraced(function* (disturb: Disturb) {
  const pace = yield* Pace
  const requests = yield* Ref.make(0)
  const next = Effect.map(
    Ref.updateAndGet(requests, (n) => n + 1),
    disturb
  )
  return yield* LanguageModel.make({
    generateText: ({ prompt, tools }) =>
      Effect.flatMap(next, (disturbance) =>
        disturbance === undefined
          ? Effect.sync(() => whole(prompt, answer(prompt, tools)))
          : disturbance._tag === "Hang"
            ? Effect.never
            : Effect.fail(disturbance.error)
      ),
    streamText: ({ prompt, tools }) =>
      Stream.unwrap(
        Effect.map(next, (disturbance) => disturbed(streamed(prompt, answer(prompt, tools)), disturbance))
      ).pipe(Stream.tap(({ type }) => (type === "text-delta" ? Effect.sleep(pace) : Effect.void)))
  })
})

/** Whoever has workers plans. */
const answer = (prompt: Prompt.Prompt, tools: ReadonlyArray<Tool.Any>): Reply =>
  (tools.some(({ name }) => name === delegate.name) ? plan : decide)(Memory.of(prompt))

const info: ModelInfo.ModelInfo = { provider: "waystone", model: "scripted-repairer" }

/** True if it is this model that was asked. */
export const is = ({ model, provider }: ModelInfo.ModelInfo): boolean =>
  provider === info.provider && model === info.model

/** The model, which answers every request unless `disturb` says otherwise. */
export const layer = (disturb: Disturb = () => undefined): Layer.Layer<LanguageModel.LanguageModel> =>
  Layer.merge(Layer.effect(LanguageModel.LanguageModel, service(disturb)), Layer.succeed(ModelInfo.ModelInfo, info))

const disturbed = (
  parts: ReadonlyArray<Response.StreamPartEncoded>,
  disturbance: Disturbance | undefined
): Stream.Stream<Response.StreamPartEncoded, AiError.AiError> => {
  switch (disturbance?._tag) {
    case undefined:
      return Stream.fromIterable(parts)
    case "Hang":
      return Stream.never
    case "Fail":
      return Stream.fail(disturbance.error)
    case "BreakOff":
      // The first part opens the text.
      return Stream.concat(Stream.fromIterable(parts.slice(0, 1 + disturbance.words)), Stream.fail(disturbance.error))
  }
}

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
