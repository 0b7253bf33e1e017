/**
 * The agents that are killed. Alone: five replies with seven calls, whose answer is what the calls returned, in order. As a
 * team: one that has two others work beside each other, each with effects, one of which a person must approve.
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

const shape = { parameters: Schema.Struct({ item: Schema.String }), success: Schema.Struct({ receipt: Schema.String }) }
const Act = Tool.make("act", { ...shape, description: "Does something in the world outside" }).annotate(
  Tool.Destructive,
  false
)
/** The same, where a person agrees. */
const Sign = Tool.make("sign", { ...shape, description: "Signs something", needsApproval: true })

const toolkits = {
  readonly: Toolkit.make(Act.annotate(Tool.Readonly, true)),
  idempotent: Toolkit.make(Act.annotate(Tool.Idempotent, true)),
  unsafe: Toolkit.make(Act)
} as const

/** Its deaths are no fault of a Run: it is not to be given up (Poisoned) where several hit the same place by chance. */
const limits = { maxRecoveries: 1000 }

const payer = Agent.make("payer", { instructions: "Pay.", tools: [Act], limits })
const signer = Agent.make("signer", { instructions: "Sign.", tools: [Act, Sign], limits })
const lead = Agent.make("lead", {
  instructions: "Lead.",
  tools: [
    Act,
    Agent.asTool(payer, { name: "have_paid", description: "Pays." }),
    Agent.asTool(signer, { name: "have_signed", description: "Signs." })
  ],
  concurrency: 2,
  limits
})

export const agent = ({ concurrency, effect, team }: Pick<Job, "concurrency" | "effect" | "team">) =>
  team === true ? lead : Agent.make("subject", { instructions: "Act.", tools: [toolkits[effect]], concurrency, limits })
export type Any = ReturnType<typeof agent>

/** The calls of each reply by agent: the tool and its item, or the task of a sub-agent. */
type Script = ReadonlyArray<ReadonlyArray<readonly [tool: string, item: string]>>
const acts = (...items: ReadonlyArray<string>): Script[number] => items.map((item) => ["act", item])

const alone: Script = [acts("a", "b"), acts("c"), acts("d", "e", "f"), acts("g")]
const scripts: { readonly [instructions: string]: Script } = {
  "Act.": alone,
  "Lead.": [
    [
      ["have_paid", "pay"],
      ["have_signed", "sign"]
    ],
    acts("g")
  ],
  "Pay.": [acts("a", "b"), acts("c")],
  "Sign.": [[["sign", "d"]], acts("e")]
}

/** What the agent does, and what it answers if every call returned what it returns, once and in order. */
export const right = ({
  team
}: Pick<Job, "team">): { readonly items: ReadonlyArray<string>; readonly answer: string } =>
  team === true
    ? {
        items: ["a", "b", "c", "d", "e", "g"],
        answer: told(told("a", "b", "c"), told("d", "e"), { receipt: Ledger.receipt("g") })
      }
    : { items, answer: answer() }

const told = (...results: ReadonlyArray<unknown>): string =>
  JSON.stringify(
    results.map((one) => (typeof one === "string" && one.length === 1 ? { receipt: Ledger.receipt(one) } : one))
  )

export const items = alone.flat().map(([, item]) => item)
export const answer = (): string => told(...items)

/** What happens when a tool acts. */
export type Act = (entry: { readonly key: string; readonly item: string }) => Effect.Effect<string>

export const handlers = (act: Act) => {
  const does = Effect.fnUntraced(function* ({ item }: { readonly item: string }) {
    const { idempotencyKey: key } = yield* ToolContext.ToolContext
    return { receipt: yield* act({ key, item }) }
  })
  return Toolkit.make(Act, Sign).toLayer({ act: does, sign: does })
}

/** Answers by what stands in the prompt, so that a crash cannot derail it; whoever is told of a call charges for it. */
export const model = (charge: () => void = () => {}): Layer.Layer<LanguageModel.LanguageModel> =>
  Layer.merge(
    Layer.effect(
      LanguageModel.LanguageModel,
      LanguageModel.make({
        generateText: () => Effect.die(new Error("it streams")),
        streamText: ({ prompt }) =>
          Stream.unwrap(
            Effect.sync(() => {
              charge()
              return Stream.fromIterable(parts(prompt))
            })
          )
      })
    ),
    Layer.succeed(ModelInfo.ModelInfo, { provider: "waystone", model: "subject", maxOutput: 10 })
  )

const parts = ({ content }: Prompt.Prompt): ReadonlyArray<Response.StreamPartEncoded> => {
  const turn = content.filter(({ role }) => role === "assistant").length
  const [first] = content
  const calls = (scripts[first?.role === "system" ? first.content : ""]?.[turn] ?? []).map(([name, item]) => ({
    type: "tool-call" as const,
    id: `call-${item}`,
    name,
    params: name.startsWith("have_") ? { task: item } : { item }
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

/** What each answer costs, in tokens: less than any budget sets aside for it. */
export const tokens = 110
const usage = {
  inputTokens: { uncached: 100, total: 100, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 10, text: 10, reasoning: 0 }
}
