/**
 * Says what models cost, to core's `Prices`: from a table of yours, then from one that is maintained.
 *
 * The maintained table is the one in `@pydantic/genai-prices`: it comes with the package, so nothing is fetched, and it is
 * as new as the package. It is loaded where the Layer is built, which takes some tens of milliseconds, and asked once a
 * minute for each model, since a few prices depend on the hour of the day.
 *
 * Invariants
 *   PR1  A model that neither table knows has no price; it never costs 0.
 *   PR2  A model without a provider has no price: its name alone does not say who charges for it.
 *
 * @since 0.1.0
 */
import { ModelInfo } from "@waystone/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Rates from "./Rates.ts"
import type { OptionsInvalid } from "./OptionsInvalid.ts"
import * as Settings from "./Settings.ts"

const Usd = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))

/** What one model charges, in USD for a million tokens. */
export const ModelRates = Schema.Struct({
  input: Usd,
  output: Usd,
  /** Input that the provider read from its cache. Default: as `input`. */
  cacheRead: Schema.optionalKey(Usd),
  /** Input that the provider wrote to its cache. Default: as `input`, but some providers charge more. */
  cacheWrite: Schema.optionalKey(Usd),
  /** Default: as `output`. */
  reasoning: Schema.optionalKey(Usd)
})

/** Rates by `<provider>/<model>`, as ModelInfo names them. */
export const Table = Schema.Record(Schema.String, ModelRates).check(
  Schema.makeFilter((table) =>
    Object.keys(table)
      .filter((name) => !/^[^/]+\/./.test(name))
      .map((name) => ({ path: [name], issue: "is no <provider>/<model>, so it is the price of nothing" }))
  )
)
export type Table = typeof Table.Type

/** Fields may come from a file: what is wrong is said with its path. */
export const Options = Schema.Struct({
  /** Yours; it goes before the maintained one. Default: empty. */
  table: Schema.optionalKey(Table),
  /** Whether to ask the maintained table where yours knows nothing. Default true: nearly everybody pays list prices. */
  maintained: Schema.optionalKey(Schema.Boolean)
})
export type Options = typeof Options.Type

type Lookup = (provider: string, model: string) => Rates.Rates | undefined

/** Fills core's `Prices`. Fails with an OptionsInvalid that names the field if the options are not what they should be. */
export const layer = (options: Options = {}): Layer.Layer<never, OptionsInvalid> =>
  Layer.effect(
    ModelInfo.Prices,
    Effect.gen(function* () {
      const { maintained = true, table = {} } = yield* Settings.decode("Prices", Options, options)
      const clock = yield* Clock.Clock
      const listed: Lookup = maintained ? yield* remembering(clock) : () => undefined
      return {
        cost: ({ model, provider }, usage) => {
          if (provider === undefined || model === undefined) return undefined
          const name = `${provider}/${model}`
          const rates = Object.hasOwn(table, name) ? table[name] : listed(provider, model)
          return rates === undefined ? undefined : Rates.cost(rates, usage)
        }
      } satisfies ModelInfo.Prices
    })
  )

/** A look-up takes a third of a millisecond. */
const remembering = (clock: Clock.Clock): Effect.Effect<Lookup> =>
  Effect.map(
    Effect.promise(() => import("./MaintainedPrices.ts")),
    ({ find }) => {
      let minute = Number.NaN
      let known = new Map<string, Rates.Rates | undefined>()
      return (provider, model) => {
        const now = clock.currentTimeMillisUnsafe()
        if (Math.floor(now / 60_000) !== minute) {
          minute = Math.floor(now / 60_000)
          known = new Map()
        }
        const name = `${provider}/${model}`
        if (!known.has(name)) known.set(name, find({ provider, model, at: new Date(now) }))
        return known.get(name)
      }
    }
  )
