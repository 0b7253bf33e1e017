/**
 * Defines an agent: an immutable value that Runs are started from.
 *
 * @since 0.1.0
 */
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type * as LanguageModel from "effect/ai/LanguageModel"
import type * as Tool from "effect/ai/Tool"
import type * as Toolkit from "effect/ai/Toolkit"
import * as AgentOutput from "./AgentOutput.ts"
import * as AgentTool from "./AgentTool.ts"
import type { CheckpointStore } from "./CheckpointStore.ts"
import * as Limits from "./Limits.ts"
import type { Plugin } from "./Plugin.ts"
import type { IsSubAgent } from "./SubAgent.ts"
import type { IsExternal } from "./ToolOptions.ts"
import type { ToolRecord } from "./RunEvent.ts"
import * as Window from "./Window.ts"

export { asTool, type AsTool, type Approvals, type IsSubAgent, type Options as AsToolOptions } from "./SubAgent.ts"

/** Time limits of one try of a model call. */
export interface Timeouts {
  /** Streaming: until the first part. Default 60 s. */
  readonly firstPart: Duration.Duration
  /** Streaming: between parts that say something; keep-alives do not count (RI-112). Default 60 s. */
  readonly idle: Duration.Duration
  /** Streaming: the whole try. Default 10 min. */
  readonly total: Duration.Duration
  /** Not streaming: the whole try. Default 120 s. */
  readonly request: Duration.Duration
}

const timeouts: Timeouts = {
  firstPart: Duration.seconds(60),
  idle: Duration.seconds(60),
  total: Duration.minutes(10),
  request: Duration.seconds(120)
}

/** An agent. `Tools` are its tools, `R` what it requires beside them. */
export interface Agent<out Tools extends Tool.Any = Tool.Any, out Output = unknown, out R = unknown> {
  readonly name: string
  readonly version: string
  readonly instructions: string
  readonly tools: ReadonlyArray<AgentTool.AgentTool>
  /** The tools as the model is told of them. */
  readonly toolkit: AgentTool.WireToolkit
  /** What is journaled of the tools. */
  readonly records: Effect.Effect<{ readonly [name: string]: ToolRecord }>
  readonly limits: Limits.Limits
  readonly timeouts: Timeouts
  readonly concurrency: number
  readonly stream: boolean
  readonly window: Window.Window
  /** What a Run completes with, if it is more than text. */
  readonly output: AgentOutput.AgentOutput | undefined
  /** The first thing that is wrong with the definition; start and resume fail with it. */
  readonly invalid: string | undefined
  readonly "~types"?: { readonly tools: Tools; readonly output: Output; readonly requires: R }
}

/** A tool, or a toolkit for all of its tools. */
export type Item = Tool.Any | Toolkit.Any

type ToolsOf<I> = I extends { readonly tools: infer Tools extends Record<string, Tool.Any> }
  ? Tools[keyof Tools]
  : I extends Tool.Any
    ? I
    : never

export interface Options<
  Items extends ReadonlyArray<Item>,
  Requires extends ReadonlyArray<Context.Key<any, Plugin>>,
  Output
> {
  /** Said to the model before everything else. */
  readonly instructions: string
  /** Recorded with each Run; another version may go on with it. Default "0". */
  readonly version?: string
  readonly tools?: Items
  /** Plugins that a Run of this agent must not be without: forgetting the Layer does not compile. */
  readonly requires?: Requires
  readonly limits?: Limits.Options
  /** Per try of a model call. */
  readonly timeouts?: { readonly [Name in keyof Timeouts]?: Duration.Input }
  /** How many calls of one reply may run at once. Default 1, in call order. */
  readonly concurrency?: number
  /** Default true. */
  readonly stream?: boolean
  /** Default `Window.all`. */
  readonly window?: Window.Window
  /**
   * What a Run completes with. The model is told the JSON Schema; a last reply that does not match it is asked for again
   * twice, with the issues quoted, and then the Run fails with OutputInvalid. Default: the text of the last reply.
   */
  readonly output?: Schema.Codec<Output, unknown>
}

/** Defines an agent. Pure: what is wrong with it is said by start and resume, as `Fatal(ToolkitInvalid)`. */
export const make = <
  const Items extends ReadonlyArray<Item> = [],
  const Requires extends ReadonlyArray<Context.Key<any, Plugin>> = [],
  Output = string
>(
  name: string,
  options: Options<Items, Requires, Output>
): Agent<ToolsOf<Items[number]>, Output, Context.Service.Identifier<Requires[number]>> => {
  const items: ReadonlyArray<Item> = options.tools ?? []
  const tools = items.flatMap((item) => ("tools" in item ? Object.values(item.tools) : [item])).map(AgentTool.make)
  const limits = Limits.make(options.limits)
  const concurrency = options.concurrency ?? 1
  const output = Result.try(() => options.output && AgentOutput.make(options.output))
  const times = { ...timeouts, ...durations(options.timeouts ?? {}) }
  return {
    name,
    version: options.version ?? "0",
    instructions: options.instructions,
    tools,
    toolkit: AgentTool.wireToolkit(tools),
    records: AgentTool.records(tools),
    limits,
    timeouts: times,
    concurrency,
    stream: options.stream ?? true,
    window: options.window ?? Window.all,
    output: Result.getOrUndefined(output),
    invalid:
      firstInvalid({ name, tools, limits, concurrency, timeouts: times }) ??
      (Result.isFailure(output)
        ? `the output schema cannot be said as JSON Schema: ${AgentOutput.messageOf(output.failure)}`
        : undefined)
  }
}

const durations = (inputs: { readonly [Name in keyof Timeouts]?: Duration.Input }): Partial<Timeouts> =>
  Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, Limits.duration(input)]))

const firstInvalid = ({
  concurrency,
  limits,
  name,
  timeouts,
  tools
}: Pick<Agent, "name" | "tools" | "limits" | "concurrency" | "timeouts">): string | undefined => {
  if (name === "") return "the name is empty"
  if (!Number.isInteger(concurrency) || concurrency < 1) return `concurrency is ${concurrency}: a whole number from 1`
  const twice = duplicate(tools.map((tool) => tool.name)) ?? duplicate(tools.map((tool) => tool.wire))
  if (twice !== undefined) return `two tools are named ${twice}`
  const times = [
    ...Object.entries(timeouts).map(([name, time]) => [`timeouts.${name}`, time] as const),
    ...tools.map((tool) => [`the timeout of ${tool.name}`, tool.timeout] as const)
  ]
  const wrong = times.find(([, time]) => Duration.toMillis(time) <= 0)
  return wrong === undefined ? Limits.invalid(limits) : `${wrong[0]} must be a duration longer than 0`
}

const duplicate = (names: ReadonlyArray<string>): string | undefined =>
  names.find((name, index) => names.indexOf(name) !== index)

type HandlerOf<T extends Tool.Any> = T extends IsExternal
  ? never
  : T extends IsSubAgent<infer R>
    ? R
    : Tool.RequiresHandler<T> extends true
      ? Tool.Handler<T["name"]>
      : never

/** What driving a Run of an agent needs from its context. */
export type Services<A> =
  A extends Agent<infer Tools, infer _Output, infer R>
    ? LanguageModel.LanguageModel | CheckpointStore | HandlerOf<Tools> | Tool.HandlerServices<Tools> | R
    : never

/** What a Run of an agent completes with. */
export type Output<A> = A extends Agent<infer _Tools, infer O, infer _R> ? O : never
