/**
 * Says which model answers, how it is set, and what it costs. Adapters and policy fill these; users can.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type { Json } from "effect/Schema"
import type { Usage } from "./Usage.ts"

export interface ModelInfo {
  readonly provider?: string
  readonly model?: string
  /** Where it is asked, as host or host:port. */
  readonly server?: string
  /**
   * `provider` names a kind of server, not one vendor: what another server of that name wrote is foreign to this one.
   * Default false: then a provider reads what it wrote, whatever server it is asked at.
   */
  readonly family?: boolean
  /** Tokens that fit into one request. */
  readonly window?: number
  /** Tokens that it can answer at most. */
  readonly maxOutput?: number
}

/** The model behind `LanguageModel`. Nothing is known by default. */
export const ModelInfo: Context.Reference<ModelInfo> = Context.Reference("@waystone/core/ModelInfo", {
  defaultValue: (): ModelInfo => ({})
})

export interface ModelSettings {
  readonly maxOutputTokens?: number
  readonly temperature?: number
  readonly topP?: number
  readonly seed?: number
  /** Whatever else the adapter knows. */
  readonly [setting: string]: Json | undefined
}

/** What an adapter reads while it makes a request; a guard's `maxOutputTokens` lowers the one given here. */
export const ModelSettings: Context.Reference<ModelSettings> = Context.Reference("@waystone/core/ModelSettings", {
  defaultValue: (): ModelSettings => ({})
})

export interface Prices {
  /** Whole nano-USD for that usage; undefined if the price is not known, never 0. */
  readonly cost: (model: ModelInfo, usage: Usage) => number | undefined
}

/** What tokens cost. Unknown by default. */
export const Prices: Context.Reference<Prices> = Context.Reference("@waystone/core/Prices", {
  defaultValue: (): Prices => ({ cost: () => undefined })
})
