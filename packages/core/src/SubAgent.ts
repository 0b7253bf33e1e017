/**
 * Makes an agent the tool of another one: a call of it is a Run of its own, in the same store.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import type { Agent, Services } from "./Agent.ts"
import { sha256 } from "./Digest.ts"

/** What becomes of a question that a sub-agent's Run asks a person. */
export type Approvals = "bubble" | "deny"

/** What a call of a tool that is an agent starts. */
export interface SubAgent {
  readonly agent: Agent
  /** The task of its Run, from the decoded arguments. */
  readonly task: (parameters: unknown) => string
  /** What guards set aside for one call, in their own units; without it they decide. */
  readonly share?: { readonly [unit: string]: number }
  readonly approvals: Approvals
}

/** Set by `asTool`. */
export const Annotation: Context.Reference<SubAgent | undefined> = Context.Reference("@waystone/core/SubAgent", {
  defaultValue: (): SubAgent | undefined => undefined
})

/** A tool that is an agent: it has no handler, and needs what the agent needs. */
export interface IsSubAgent<R> {
  readonly "~@waystone/core/SubAgent": (_: never) => R
}

export interface Options<Name extends string, Parameters extends Schema.Top> {
  /** What the model calls it. */
  readonly name: Name
  /** What the model is told of it: what it is good at, and what it must be told. */
  readonly description: string
  /** What the model gives it. Default `{ task: string }`. */
  readonly parameters?: Parameters
  /** The task of the sub-agent's Run. Default: `parameters.task` where that is text, else the parameters as JSON. */
  readonly task?: (parameters: Parameters["Type"]) => string
  /**
   * What of the caller's budget one call may use, in the units of the guards that count (`Budget`: `tokens`, `costNanoUsd`,
   * `turns`, `calls`). A call that asks for more than is left is refused. Default: what those guards say.
   */
  readonly share?: { readonly [unit: string]: number }
  /**
   * `bubble` (default): what the sub-agent asks a person is listed at the root, which waits. `deny`: nobody is there to ask, so
   * its call gets an error result that says 'no approver', and external questions do, too (RI-074). It holds for all
   * agents below. What became of a call in doubt is asked all the same: nobody but a person can know.
   */
  readonly approvals?: Approvals
  /** A person must agree to each call of it. Default false. */
  readonly needsApproval?: boolean
}

/** The Run of a call: a new one would be a second one. Of any length it fits a run id (RI-117). */
export const runIdOf = (runId: string, callId: string): Effect.Effect<string> => {
  const id = `${runId}.${callId}`
  return id.length <= 128 ? Effect.succeed(id) : Effect.map(sha256([runId, callId]), (digest) => `sub.${digest}`)
}

/** `{ task }`, for a sub-agent that needs no more than to be told. */
export const Task = Schema.Struct({ task: Schema.String })

/** An agent's output, as its schema says; text without one. */
type OutputOf<A> = A extends Agent<infer _Tools, infer Output, infer _R> ? Output : never

/** The tool that an agent is. */
export type AsTool<A extends Agent, Name extends string, Parameters extends Schema.Top> = Tool.Tool<
  Name,
  {
    readonly parameters: Parameters
    readonly success: Schema.Codec<OutputOf<A>, unknown>
    readonly failure: typeof Schema.Never
    readonly failureMode: "error"
  }
> &
  IsSubAgent<Services<A>>

/**
 * Makes an agent a tool. A call of it starts a Run of the agent, whose id is made of the caller's and the call's, and whose
 * output is the call's result; one that ends in any other way is an error result that says why. That Run is driven, resumed,
 * paused, cancelled and removed with its root, and asks through it. It runs with everything that the root was given: the
 * model, the handlers, and all plugins, which judge its calls as they judge its caller's. How long it may take is its agent's
 * `limits.activeTime`; of interceptors only sanitizers see its output, since all of them see what is done to get it.
 *
 * @example
 * const research = Agent.asTool(researcher, { name: "research", description: "Finds sources. Say what about." })
 * const writer = Agent.make("writer", { instructions: "Write.", tools: [research] })
 */
export const asTool = <A extends Agent, const Name extends string, Parameters extends Schema.Top = typeof Task>(
  agent: A,
  options: Options<Name, Parameters>
): AsTool<NoInfer<A>, NoInfer<Name>, NoInfer<Parameters>> => {
  // NoInfer: written into a list of tools, the list's type would be taken for the agent's.
  const { approvals = "bubble", description, name, needsApproval, parameters = Task, share, task } = options
  const child: SubAgent = {
    agent,
    // Called with what the parameters' own schema has decoded.
    task: task === undefined ? told : (decoded) => task(decoded as Parameters["Type"]),
    approvals,
    ...(share === undefined ? undefined : { share })
  }
  const tool = Tool.make(name, {
    description,
    parameters,
    success: agent.output?.schema ?? Schema.String,
    ...(needsApproval === undefined ? undefined : { needsApproval })
  })
  // The agent's type says what its output schema is; the marker exists in types alone.
  const made: Tool.Any = tool.annotate(Annotation, child).annotate(Tool.Idempotent, true)
  return made as AsTool<NoInfer<A>, NoInfer<Name>, NoInfer<Parameters>>
}

const told = (decoded: unknown): string =>
  typeof decoded === "object" && decoded !== null && "task" in decoded && typeof decoded.task === "string"
    ? decoded.task
    : JSON.stringify(decoded)
