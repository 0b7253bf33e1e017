/**
 * The agent that is killed: five replies with seven calls, whose answer is what the calls returned, in order.
 */
import { Agent, ModelInfo, ToolContext } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import type { Job } from "./Job.ts"
import * as Ledger from "./Ledger.ts"

/** The calls of each reply, by item. */
export const script: ReadonlyArray<ReadonlyArray<string>> = [["a", "b"], ["c"], ["d", "e", "f"], ["g"]]
export const items = script.flat()

/** The answer of a Run in which every call returned what it returns, once and in order. */
export const answer = (): string => JSON.stringify(items.map((item) => ({ receipt: Ledger.receipt(item) })))

const Act = Tool.make("act", {
  description: "Does something in the world outside",
  parameters: Schema.Struct({ item: Schema.String }),
  success: Schema.Struct({ receipt: Schema.String })
}).annotate(Tool.Destructive, false)

const toolkits = {
  readonly: Toolkit.make(Act.annotate(Tool.Readonly, true)),
  idempotent: Toolkit.make(Act.annotate(Tool.Idempotent, true)),
  unsafe: Toolkit.make(Act)
} as const

export const agent = ({
  concurrency,
  effect
}: Pick<Job, "concurrency" | "effect">): Agent.Agent<typeof Act, string, never> =>
  Agent.make("subject", {
    instructions: "Act.",
    tools: [toolkits[effect]],
    concurrency,
    // Its deaths are no fault of the Run: it is not to be given up (Poisoned) where several hit the same place by chance.
    limits: { maxRecoveries: 1000 }
  })

/** What happens when a tool acts. */
export type Act = (entry: { readonly key: string; readonly item: string }) => Effect.Effect<string>

export const handlers = (act: Act) =>
  Toolkit.make(Act).toLayer({
    act: Effect.fnUntraced(function* ({ item }) {
      const { idempotencyKey: key } = yield* ToolContext.ToolContext
      return { receipt: yield* act({ key, item }) }
    })
  })

/** Answers by what stands in the prompt, so that a crash cannot derail it. */
export const model: Layer.Layer<LanguageModel.LanguageModel> = Layer.merge(
  Layer.effect(
    LanguageModel.LanguageModel,
    LanguageModel.make({
      generateText: () => Effect.die(new Error("it streams")),
      streamText: ({ prompt }) => Stream.fromIterable(parts(prompt))
    })
  ),
  Layer.succeed(ModelInfo.ModelInfo, { provider: "waystone", model: "subject" })
)

const parts = ({ content }: Prompt.Prompt): ReadonlyArray<Response.StreamPartEncoded> => {
  const turn = content.filter(({ role }) => role === "assistant").length
  const calls = (script[turn] ?? []).map((item) => ({
    type: "tool-call" as const,
    id: `call-${item}`,
    name: Act.name,
    params: { item }
  }))
  const said = calls.length > 0 ? [] : text(JSON.stringify(results(content)))
  return [...said, ...calls, { type: "finish", reason: calls.length > 0 ? "tool-calls" : "stop", usage }]
}

const text = (delta: string): ReadonlyArray<Response.StreamPartEncoded> => [
  { type: "text-start", id: "t" },
  { type: "text-delta", id: "t", delta },
  { type: "text-end", id: "t" }
]

const results = (content: ReadonlyArray<Prompt.Message>): ReadonlyArray<unknown> =>
  content.flatMap((message) =>
    message.role === "tool" ? message.content.flatMap((part) => (part.type === "tool-result" ? [part.result] : [])) : []
  )

const usage = {
  inputTokens: { uncached: 1, total: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 }
}
