/**
 * The agent of the cases. What its model says stands in the task, so that any process can go on with any Run.
 */
import { Agent, ToolContext, ToolOptions } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import type * as Ledger from "../../src/Ledger.ts"

/** Unsafe, and a person must approve it. */
export const Pay = Tool.make("pay", {
  parameters: Schema.Struct({ amount: Schema.Number }),
  success: Schema.Struct({ paid: Schema.Number }),
  needsApproval: true
})
/** Unsafe, and runs at once. */
export const Mail = Tool.make("mail", {
  parameters: Schema.Struct({ to: Schema.String }),
  success: Schema.Struct({ sent: Schema.String })
})
export const Book = Tool.make("book", {
  parameters: Schema.Struct({ seat: Schema.Number }),
  success: Schema.Struct({ booked: Schema.Number }),
  failure: Schema.Unknown
}).annotate(Tool.Idempotent, true)
export const Look = Tool.make("look", {
  parameters: Schema.Struct({ at: Schema.Number }),
  success: Schema.Struct({ seen: Schema.String })
}).annotate(Tool.Readonly, true)
/** Its result comes from outside. */
export const Ask = ToolOptions.external(
  Tool.make("ask", {
    parameters: Schema.Struct({ question: Schema.String }),
    success: Schema.Union([Schema.Boolean, Schema.Number, Schema.String])
  })
)
/** A later version of `pay`, whose arguments the earlier one's do not fit. */
const PayIn = Tool.make("pay", {
  parameters: Schema.Struct({ amount: Schema.Number, currency: Schema.String }),
  success: Schema.Struct({ paid: Schema.Number }),
  needsApproval: true
})

const kit = Toolkit.make(Pay, Mail, Book, Look)
export type Handlers = Toolkit.HandlersFrom<Toolkit.Tools<typeof kit>>

const instructions = "Work."
export const clerk = Agent.make("clerk", { instructions, tools: [kit, Ask] })
/** Has clerks do what its model says: the task of each is a script, too. */
export const lead = Agent.make("lead", {
  instructions,
  tools: [
    kit,
    Ask,
    Agent.asTool(clerk, { name: "have", description: "Has a clerk do it." }),
    Agent.asTool(clerk, { name: "have_alone", description: "Has a clerk do it who can ask nobody.", approvals: "deny" })
  ],
  concurrency: 2
})
const have = Agent.asTool(lead, { name: "have_led", description: "Has a lead do it." })
/** One below which a lead may stand, and no clerk below that. */
const flat = Agent.make("flat", { instructions, tools: [kit, Ask, have], limits: { maxDepth: 1 } })
/** One whose lead would call it. */
const cyclic = Agent.make("clerk", { instructions, tools: [kit, Ask, have] })
/** The same agent as later releases know it, and the one above it. */
export const releases = {
  present: clerk,
  lead,
  flat,
  cyclic,
  changed: Agent.make("clerk", { instructions, version: "1", tools: [PayIn, Mail, Book, Look, Ask] }),
  poorer: Agent.make("clerk", { instructions, version: "1", tools: [Mail, Book, Look, Ask] })
}
export type Release = keyof typeof releases

/** What happens when a tool acts. */
export type Act = (entry: Ledger.Entry) => Effect.Effect<void>

const does = <A>(act: Act, item: string, result: A): Effect.Effect<A> =>
  Effect.gen(function* () {
    const { idempotencyKey: key } = yield* ToolContext.ToolContext
    yield* act({ key, item })
    return result
  })

export const handlers = (act: Act, others: Partial<Handlers> = {}) =>
  kit.toLayer({
    pay: ({ amount }) => does(act, `pay:${amount}`, { paid: amount }),
    mail: ({ to }) => does(act, `mail:${to}`, { sent: to }),
    book: ({ seat }) => does(act, `book:${seat}`, { booked: seat }),
    look: ({ at }) => does(act, `look:${at}`, { seen: `${at}` }),
    ...others
  })

type Call = readonly [name: string, params: Schema.Json]
/** A text, calls, or nothing at all. */
type Reply = string | ReadonlyArray<Call> | null

/** A task that says what the model answers, turn by turn; it says the last one again when it is asked more often. */
export const task = (...replies: readonly [Reply, ...ReadonlyArray<Reply>]): string => JSON.stringify(replies)

const decode = Schema.decodeUnknownSync(
  Schema.fromJsonString(
    Schema.Array(Schema.NullOr(Schema.Union([Schema.String, Schema.Array(Schema.Tuple([Schema.String, Schema.Json]))])))
  )
)

export const script: ScriptedModel.Script = ({ messages }) => {
  const replies = decode(textOf(messages.find(({ role }) => role === "user")))
  const said = messages.filter(({ role }) => role === "assistant").length
  const reply = replies[said] ?? replies.at(-1)
  if (reply === null || reply === undefined) return ScriptedModel.hang
  return typeof reply === "string" ? ScriptedModel.text(reply) : ScriptedModel.calls(reply)
}

const textOf = (message: Prompt.Message | undefined): string =>
  message?.role === "user" ? message.content.map((part) => (part.type === "text" ? part.text : "")).join("") : ""
