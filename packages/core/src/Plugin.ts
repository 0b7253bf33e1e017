/**
 * Switches guards, interceptors and observers on by a Layer.
 *
 * A plugin is a service whose value carries them under `PluginId`. A Run collects every plugin of its context and sorts
 * by stage, then name: Layers in any order, merged or nested, give the same Run. Its name is journaled when the Run
 * starts, and a resume without it fails with PluginMissing: a policy cannot vanish in another process.
 *
 * @since 0.1.0
 */
import type * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import { type Guard, stages as guardStages } from "./Guard.ts"
import { type Interceptor, stages as interceptorStages } from "./Interceptor.ts"
import type { Observer } from "./Observer.ts"
import type { Answer, Principal, Wait } from "./RunEvent.ts"

export const PluginId: unique symbol = Symbol.for("@waystone/core/Plugin")

/** What somebody wants to answer, and how. */
export interface Request {
  readonly runId: string
  readonly callId: string
  readonly kind: Wait["kind"]
  /** The agent's name. */
  readonly agent: string
  /** The tool's; empty for a Step. */
  readonly name: string
  /** Encoded, as the model wrote them; undefined for a Step. */
  readonly arguments: unknown
  /** Who asked, and why. */
  readonly guard?: string
  readonly reason?: string
  readonly principal?: Principal
  readonly session?: string
  readonly answer: Answer
}

export interface Parts {
  /** Unique among the plugins of a Run. */
  readonly name: string
  readonly guards?: ReadonlyArray<Guard>
  readonly interceptors?: ReadonlyArray<Interceptor>
  readonly observers?: ReadonlyArray<Observer>
  /** Nothing of a Run depends on it, so a resume may go without: it only watches, as traces do. Default false. */
  readonly optional?: boolean
  /**
   * Decides who may answer, in whatever process `Run.answer` is called: one that lacks this plugin is PluginMissing. Every
   * plugin that has it must agree; one that breaks refuses.
   */
  readonly mayAnswer?: (by: string, request: Request) => Effect.Effect<boolean>
}

/** What a service must have to be a plugin. */
export interface Plugin {
  readonly [PluginId]: Parts
}

export interface Collected {
  /** The plugins that a resume needs: those that guard, intercept, or say who may answer, but not the optional ones. */
  readonly names: ReadonlyArray<string>
  /** Those that say who may answer, by name. */
  readonly answering: ReadonlyMap<string, NonNullable<Parts["mayAnswer"]>>
  readonly guards: ReadonlyArray<Guard>
  readonly interceptors: ReadonlyArray<Interceptor>
  readonly observers: ReadonlyArray<Observer>
}

const isPlugin = (service: unknown): service is Plugin =>
  typeof service === "object" && service !== null && PluginId in service

/** All plugins of a context, ordered. */
export const collect = (context: Context.Context<never>): Collected => {
  const plugins: Array<Parts> = []
  for (const service of context.mapUnsafe.values()) if (isPlugin(service)) plugins.push(service[PluginId])
  const acts = plugins.filter(
    ({ guards, interceptors, mayAnswer, optional }) =>
      optional !== true && (guards !== undefined || interceptors !== undefined || mayAnswer !== undefined)
  )
  const answering = plugins.flatMap(({ mayAnswer, name }) =>
    mayAnswer === undefined ? [] : [[name, mayAnswer] as const]
  )
  return {
    names: acts.map((plugin) => plugin.name).toSorted(),
    answering: new Map(answering.toSorted(([a], [b]) => order(a, b))),
    guards: sorted(
      plugins.flatMap((plugin) => plugin.guards ?? []),
      guardStages
    ),
    interceptors: sorted(
      plugins.flatMap((plugin) => plugin.interceptors ?? []),
      interceptorStages
    ),
    observers: plugins.flatMap((plugin) => plugin.observers ?? []).toSorted((a, b) => order(a.name, b.name))
  }
}

const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const sorted = <Stage extends string, A extends { readonly stage: Stage; readonly name: string }>(
  parts: ReadonlyArray<A>,
  stages: ReadonlyArray<Stage>
): ReadonlyArray<A> =>
  parts.toSorted((a, b) => stages.indexOf(a.stage) - stages.indexOf(b.stage) || order(a.name, b.name))
