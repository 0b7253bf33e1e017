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
import { type Guard, stages as guardStages } from "./Guard.ts"
import { type Interceptor, stages as interceptorStages } from "./Interceptor.ts"
import type { Observer } from "./Observer.ts"

export const PluginId: unique symbol = Symbol.for("@waystone/core/Plugin")

export interface Parts {
  /** Unique among the plugins of a Run. */
  readonly name: string
  readonly guards?: ReadonlyArray<Guard>
  readonly interceptors?: ReadonlyArray<Interceptor>
  readonly observers?: ReadonlyArray<Observer>
}

/** What a service must have to be a plugin. */
export interface Plugin {
  readonly [PluginId]: Parts
}

export interface Collected {
  /** The plugins that a resume needs: those that guard or intercept. */
  readonly names: ReadonlyArray<string>
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
  const acts = plugins.filter((plugin) => plugin.guards !== undefined || plugin.interceptors !== undefined)
  return {
    names: acts.map((plugin) => plugin.name).toSorted(),
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
