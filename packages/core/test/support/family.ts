/** Agents that call each other, over the store and the tools of a scenario. */
import * as Effect from "effect/Effect"
import * as Agent from "../../src/Agent.ts"
import type * as Limits from "../../src/Limits.ts"
import * as Run from "../../src/Run.ts"
import type { Answer } from "../../src/RunEvent.ts"
import * as ScriptedModel from "../../src/testing/ScriptedModel.ts"
import type * as SubAgent from "../../src/SubAgent.ts"
import { tools } from "./scenario.ts"

export const runId = "r"

/** An agent with the tools of the scenario. */
export const worker = (
  name: string,
  options: { readonly limits?: Limits.Options; readonly concurrency?: number } = {}
) => Agent.make(name, { instructions: `You are ${name}.`, tools, ...options })

/** One that can give its task to these. */
export const boss = (
  name: string,
  below: ReadonlyArray<Agent.Agent>,
  options: {
    readonly limits?: Limits.Options
    readonly concurrency?: number
    readonly approvals?: SubAgent.Approvals
    readonly share?: { readonly [unit: string]: number }
  } = {}
) => {
  const { approvals, share, ...rest } = options
  const given = { ...(approvals && { approvals }), ...(share && { share }) }
  const items = below.map((agent) =>
    Agent.asTool(agent as ReturnType<typeof worker>, {
      name: `ask_${agent.name}`,
      description: `Asks ${agent.name}.`,
      ...given
    })
  )
  return Agent.make(name, { instructions: `You are ${name}.`, tools: [...tools, ...items], ...rest })
}

type Said = ScriptedModel.Entry

/** How often each agent's model was asked, and a model for all of them, which knows them by their instructions. */
export interface Cast extends ScriptedModel.Scripted {
  readonly asked: (agent: string) => number
}

/**
 * What each agent says, turn by turn. The turn is read from the request, so a crash derails nobody. Two Runs of one agent say
 * the same.
 */
export const cast = (scripts: {
  readonly [agent: string]: ReadonlyArray<Said> | ((turn: number) => Said)
}): Effect.Effect<Cast> => {
  const asked = new Map<string, number>()
  const says = ({ messages }: ScriptedModel.Request): Said => {
    const agent = /You are (\w+)\./.exec(JSON.stringify(messages[0]?.content))?.[1] ?? ""
    const turn = messages.filter(({ role }) => role === "assistant").length
    asked.set(agent, (asked.get(agent) ?? 0) + 1)
    const script = scripts[agent]
    const entry = typeof script === "function" ? script(turn) : script?.[turn]
    return entry ?? ScriptedModel.die(`${agent} has nothing to say in turn ${turn + 1}`)
  }
  return Effect.map(ScriptedModel.make(says), (model) => ({ ...model, asked: (agent) => asked.get(agent) ?? 0 }))
}

/** What waits at a root: kind, and the way to it. */
export const pending = (rootId: string) =>
  Effect.map(Run.get(rootId), ({ waiting }) =>
    waiting.map(({ id, kind, path }) => `${kind} ${[...(path ?? []), id].join("/")}`)
  )

/** Answers what waits under that path, as `t1.0/t1.0`. */
export const answerAt = (agent: Agent.Agent, where: string, answer: (digest: string) => Answer, by = "ann") =>
  Effect.gen(function* () {
    const { path, callId } = split(where)
    const { waiting } = yield* Run.get(runId)
    const digest = waiting.find((wait) => wait.id === callId && (wait.path ?? []).join() === path.join())?.digest ?? ""
    yield* Run.answer(agent, { runId, callId, path, answer: answer(digest), by })
  })

const split = (where: string) => {
  const all = where.split("/")
  return { path: all.slice(0, -1), callId: all.at(-1) ?? "" }
}

export const yes = (digest: string): Answer => ({ _tag: "Approve", digest })
export const no = (digest: string): Answer => ({ _tag: "Deny", digest, reason: "too dear" })
