/**
 * Says where a driven Run stands among the Runs of its agent, of the agents above it and of those below.
 *
 * It lives as long as the Attempt of the root. All of it is found again from the journals when another Attempt goes on.
 *
 * Invariants
 *   TR1  No Run stands deeper than any agent above it allows, and no agent stands below itself (RI-126).
 *   TR2  A tree makes no more model calls than any agent in it allows for what is below it (RI-126); of several that work beside
 *        each other, each may make the last one.
 *
 * @since 0.1.0
 */
import type { Agent } from "./Agent.ts"

export interface Tree {
  readonly rootId: string
  /** 0 for a root. */
  readonly depth: number
  /** The agents' names, from the root's down to this one's. */
  readonly agents: ReadonlyArray<string>
  /** How deep a Run may stand. */
  readonly maxDepth: number
  /** Nobody is there to be asked. */
  readonly denies: boolean
  /** Model calls of this Run, and of those below it that have ended. */
  readonly turns: () => number
  readonly maxTurns: () => number
  readonly above: Tree | undefined
  /** The Runs below it that have not ended, by call id. */
  readonly below: Map<string, Tree>
}

/** Where a sub-agent's Run comes in. */
export interface Place {
  readonly above: Tree
  readonly callId: string
  readonly denies: boolean
}

type Counts = Pick<Tree, "turns" | "maxTurns">

/** The place of a Run: a root, or one that takes its place below another. */
export const make = (agent: Agent, runId: string, counts: Counts, place?: Place): Tree => {
  const { above, callId = "", denies = false } = place ?? {}
  const depth = above === undefined ? 0 : above.depth + 1
  const deepest = depth + agent.limits.maxDepth
  const tree: Tree = {
    rootId: above?.rootId ?? runId,
    depth,
    agents: [...(above?.agents ?? []), agent.name],
    maxDepth: Math.min(above?.maxDepth ?? deepest, deepest),
    denies: denies || above?.denies === true,
    ...counts,
    above,
    below: new Map()
  }
  above?.below.set(callId, tree)
  return tree
}

/** Model calls of a Run and of all below it. */
const used = (tree: Tree): number => {
  let sum = tree.turns()
  for (const child of tree.below.values()) sum += used(child)
  return sum
}

/** How many model calls are left to it. */
export const left = (tree: Tree): number => {
  const own = tree.maxTurns() - used(tree)
  return tree.above === undefined ? own : Math.min(own, left(tree.above))
}

/** Why a sub-agent may not be called from here; undefined if it may. */
export const refusal = (
  { agents, depth, maxDepth }: Tree,
  agent: string
): { readonly error: "AgentCycle" | "DepthExceeded"; readonly message: string } | undefined => {
  const path = [...agents, agent].join(" > ")
  if (agents.includes(agent)) {
    return {
      error: "AgentCycle",
      message: `AgentCycle: ${agent} waits for this answer itself (${path}); not executed.`
    }
  }
  return depth < maxDepth
    ? undefined
    : {
        error: "DepthExceeded",
        message: `DepthExceeded: at most ${maxDepth} agents may stand below the first (${path}); not executed.`
      }
}
