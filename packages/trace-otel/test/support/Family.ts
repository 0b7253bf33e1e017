/** A root Run with sub-agents that work at the same time, of a scripted model that knows each agent by its instructions. */
import { Agent, Run } from "@waystone/core"
import { ScriptedModel } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import { Act, Work } from "./Runs.ts"

const { calls, text } = ScriptedModel

const tools = [Work, Act]
export const ann = Agent.make("ann", { instructions: "You are ann.", tools })
export const bob = Agent.make("bob", { instructions: "You are bob.", tools })
export const lead = Agent.make("lead", {
  instructions: "You are lead.",
  tools: [
    ...tools,
    Agent.asTool(ann, { name: "ask_ann", description: "Asks ann." }),
    Agent.asTool(bob, { name: "ask_bob", description: "Asks bob." })
  ],
  concurrency: 2
})

type Said = ScriptedModel.Entry

/** What each agent says, turn by turn. */
export const cast =
  (scripts: { readonly [agent: string]: ReadonlyArray<Said> }) =>
  ({ messages }: ScriptedModel.Request): Said => {
    const agent = /You are (\w+)\./.exec(JSON.stringify(messages[0]?.content))?.[1] ?? ""
    const turn = messages.filter(({ role }) => role === "assistant").length
    return scripts[agent]?.[turn] ?? ScriptedModel.die(`${agent} has nothing to say in turn ${turn + 1}`)
  }

/** Both sub-agents at once. */
export const both = (task: string): Said =>
  calls([
    ["ask_ann", { task }],
    ["ask_bob", { task }]
  ])

export const done = text("done")

/** Answers everything that waits at the root. */
export const approveAll = (runId: string) =>
  Effect.gen(function* () {
    const { waiting } = yield* Run.get(runId)
    for (const { digest = "", id, path } of waiting)
      yield* Run.answer(lead, {
        runId,
        callId: id,
        by: "ann",
        answer: { _tag: "Approve", digest },
        ...(path === undefined ? undefined : { path })
      })
  })
