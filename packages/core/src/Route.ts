/**
 * Leads what is said at a root to the Run below it that it is for, and tells every Run on the way up that it has come.
 *
 * Invariants
 *   RT1  The Run below hears an answer first and those above it after, so a process that dies in between loses nothing: the same
 *        answer again, or the next sweep, goes on from there.
 *   RT2  Only a root is driven, spoken to and removed.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Agent from "./Agent.ts"
import type { AgentTool } from "./AgentTool.ts"
import type { CheckpointStore, Entry, StoreError } from "./CheckpointStore.ts"
import type { ReadError } from "./Journal.ts"
import * as Outside from "./Outside.ts"
import { type EncodeFailed, RunIsChild } from "./RunError.ts"
import type { Draft, Wait } from "./RunEvent.ts"
import type { Head } from "./RunHead.ts"
import * as Stored from "./Stored.ts"
import * as SubAgent from "./SubAgent.ts"

/** A Run above another one, and which of its calls leads down. */
interface Above {
  readonly runId: string
  readonly callId: string
  /** From that call on down. */
  readonly path: ReadonlyArray<string>
}

export interface Route {
  readonly runId: string
  /** The nearest one first. */
  readonly above: ReadonlyArray<Above>
}

/** Refuses the Run of a sub-agent. */
export const root = (runId: string, { parent }: Pick<Head, "parent">): Effect.Effect<void, RunIsChild> =>
  parent === undefined ? Effect.void : Effect.fail(new RunIsChild({ runId, rootId: parent.rootId }))

/** The Run that these calls lead to from a root. */
export const along = (rootId: string, path: ReadonlyArray<string>): Effect.Effect<Route> =>
  Effect.gen(function* () {
    const above: Array<Above> = []
    let runId = rootId
    for (const [i, callId] of path.entries()) {
      above.unshift({ runId, callId, path: path.slice(i) })
      runId = yield* SubAgent.runIdOf(runId, callId)
    }
    return { runId, above }
  })

/** The agent whose Run these calls lead to from a Run of this agent; undefined if it has no such sub-agent any more. */
export const agentAt = (
  agent: Agent.Agent,
  rootId: string,
  path: ReadonlyArray<string>
): Effect.Effect<Agent.Agent | undefined, ReadError, CheckpointStore> =>
  Effect.map(toolsAlong(agent, rootId, path), (tools) => (path.length === 0 ? agent : tools.at(-1)?.child?.agent))

/** The tools of the calls that lead down from a Run of this agent; undefined where there is none any more. */
export const toolsAlong = (
  agent: Agent.Agent,
  rootId: string,
  path: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<AgentTool | undefined>, ReadError, CheckpointStore> =>
  Effect.gen(function* () {
    const tools: Array<AgentTool | undefined> = []
    let found: Agent.Agent | undefined = agent
    let runId = rootId
    for (const callId of path) {
      const seen = yield* Outside.find(runId)
      if (seen === undefined) return [...tools, undefined]
      // Two of its tools may be agents of one name, so the call says which.
      const { calls } = yield* Stored.load(runId, seen.entry.seq)
      const call = calls.find((call) => call.callId === callId)
      const tool: AgentTool | undefined = found?.tools.find(({ name }) => name === call?.name)
      tools.push(tool)
      found = tool?.child?.agent
      runId = yield* SubAgent.runIdOf(runId, callId)
    }
    return tools
  })

/** That agent, if it is the one of the Run; else one of that name without tools, as where a tool is gone. */
export const orGone = (found: Agent.Agent | undefined, { agent }: Pick<Head, "agent">): Agent.Agent =>
  found?.name === agent ? found : Agent.make(agent, { instructions: "" })

/** All agents that Runs of these can start Runs of. */
export const below = (agents: Iterable<Agent.Agent>): ReadonlyArray<Agent.Agent> => {
  const found = new Set<Agent.Agent>()
  const add = ({ tools }: Agent.Agent): void => {
    for (const { child } of tools) {
      if (child === undefined || found.has(child.agent)) continue
      found.add(child.agent)
      add(child.agent)
    }
  }
  for (const agent of agents) add(agent)
  return [...found]
}

type Told = Effect.Effect<void, StoreError | EncodeFailed, CheckpointStore>

/** What no Run above waits for any more. A Run that is gone needs not be told. */
const woken = (runId: string, decide: (head: Head) => ReadonlyArray<Draft>): Told =>
  Effect.catchTag(
    Outside.append(runId, ({ head }) => Effect.succeed(decide(head))),
    "RunNotFound",
    () => Effect.void
  )

/** Tells the Runs above that what they wait for under that id has come. One that is about to wait for it is told, too. */
export const wake = (id: string, above: ReadonlyArray<Above>): Told =>
  Effect.forEach(
    above,
    ({ callId, path, runId }) =>
      woken(runId, (head) => {
        const waits = head.waits.some((wait) => wait.id === id && isAt(wait, path))
        const mayWait = head.status === "running" && head.open.includes(callId)
        return waits || mayWait ? [{ _tag: "ChildWoken", callId, id, path }] : []
      }),
    { discard: true }
  )

const isAt = ({ path = [] }: Wait, where: ReadonlyArray<string>): boolean => path.join() === where.join()

/** Wakes the Runs above one that can go on, where whoever answered it could not tell them (RT1). */
export const wakeAbove = (entry: Entry): Told =>
  Effect.gen(function* () {
    const own = yield* Outside.headOf(entry)
    const waiting = new Set<string>()
    let { parent } = own
    let path: ReadonlyArray<string> = []
    while (parent !== undefined) {
      const { callId, runId } = parent
      path = [callId, ...path]
      waiting.clear()
      for (const wait of own.waits) waiting.add(keyOf(wait.id, [...path, ...(wait.path ?? [])]))
      const prefix = path
      const isStale = (wait: Wait) =>
        prefix.every((id, i) => wait.path?.[i] === id) && !waiting.has(keyOf(wait.id, wait.path ?? []))
      const seen = yield* Outside.find(runId)
      if (seen === undefined) return
      if (seen.head.status === "waiting" && seen.head.waits.some(isStale)) {
        yield* woken(runId, ({ status, waits }) =>
          status !== "waiting"
            ? []
            : waits.filter(isStale).map(({ id, path = [] }) => ({ _tag: "ChildWoken", callId, id, path }))
        )
      }
      parent = seen.head.parent
    }
  })

const keyOf = (id: string, path: ReadonlyArray<string>): string => [...path, id].join()
