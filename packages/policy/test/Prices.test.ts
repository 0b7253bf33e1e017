import { describe, expect, it } from "@effect/vitest"
import { calcPrice, findProvider } from "@pydantic/genai-prices"
import { ModelInfo, Usage } from "@waystone/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { find } from "../src/MaintainedPrices.ts"
import * as Prices from "../src/Prices.ts"
import * as Rates from "../src/Rates.ts"

const used = (usage: Partial<Usage.Usage>): Usage.Usage => ({ ...Usage.zero, ...usage })
const sonnet = { provider: "anthropic", model: "claude-sonnet-4-5" }
const pricesOf = (options?: Prices.Options) => Effect.provide(ModelInfo.Prices, Prices.layer(options))

describe("Prices", () => {
  it.effect("knows list prices of models by default, under the names that adapters give", () =>
    Effect.gen(function* () {
      const { cost } = yield* pricesOf()
      expect(cost(sonnet, used({ input: 1000, output: 100 }))).toBe(4_500_000)
      expect(cost(sonnet, used({ cacheRead: 1000, cacheWrite: 1000 }))).toBe(300_000 + 3_750_000)
      // From 200,000 input tokens on everything is dearer.
      expect(cost(sonnet, used({ input: 300_000, output: 1000 }))).toBe(1_800_000_000 + 22_500_000)
      for (const provider of ["openai", "google", "mistral", "groq", "xai", "deepseek", "azure", "amazon-bedrock"]) {
        expect(findProvider({ providerId: provider }), provider).toBeDefined()
      }
    })
  )

  it.effect("PR1 PR2 what is not known has no price: never 0", () =>
    Effect.gen(function* () {
      const { cost } = yield* pricesOf()
      const usage = used({ input: 10, output: 5 })
      for (const info of [
        { provider: "anthropic", model: "no-such-model" },
        { provider: "my-own-server", model: "claude-sonnet-4-5" },
        { model: "claude-sonnet-4-5" },
        { provider: "anthropic" },
        {},
        { provider: "openai", model: "whisper-1" },
        { provider: "openai", model: "text-embedding-3-small" }
      ]) {
        expect(cost(info, usage), JSON.stringify(info)).toBeUndefined()
      }
      expect(cost(sonnet, used({ input: Number.NaN }))).toBeUndefined()
      expect(cost(sonnet, used({ input: -1, output: 9 }))).toBeUndefined()
    })
  )

  it.effect("a table goes before the maintained one, which can be left out", () =>
    Effect.gen(function* () {
      const table = { "anthropic/claude-sonnet-4-5": { input: 1, output: 2 }, "mine/m": { input: 0, output: 0 } }
      const { cost } = yield* pricesOf({ table })
      expect(cost(sonnet, used({ input: 10, cacheRead: 5, output: 1, reasoning: 1 }))).toBe(15_000 + 4000)
      expect(cost({ provider: "mine", model: "m" }, used({ input: 10 }))).toBe(0)
      expect(cost({ provider: "openai", model: "gpt-5" }, used({ input: 10 }))).toBe(12_500)
      const alone = yield* pricesOf({ table, maintained: false })
      expect(alone.cost({ provider: "openai", model: "gpt-5" }, used({ input: 10 }))).toBeUndefined()
    })
  )

  it.effect("the table is empty by default: of all models none has a price but from the maintained one", () =>
    Effect.gen(function* () {
      const usage = used({ input: 1000, output: 1000 })
      const bare = yield* pricesOf({ maintained: false })
      const listed = yield* pricesOf()
      const at = new Date(0)
      expect(listed.cost({ provider: "p", model: "m" }, usage)).toBeUndefined()
      for (const provider of ["anthropic", "openai", "google", "mistral", "deepseek", "x-ai"]) {
        for (const { id: model } of findProvider({ providerId: provider })?.models ?? []) {
          const rates = find({ provider, model, at })
          const price = rates === undefined ? undefined : Rates.cost(rates, usage)
          expect(bare.cost({ provider, model }, usage), model).toBeUndefined()
          expect(listed.cost({ provider, model }, usage), model).toBe(price)
        }
      }
    })
  )

  it.effect("wrong options are named", () =>
    Effect.gen(function* () {
      const wrong = { table: { "a/b": { input: "1", output: 2 } } }
      const error = yield* Effect.flip(Layer.build(Prices.layer(wrong as never)))
      expect(error).toMatchObject({ _tag: "OptionsInvalid", policy: "Prices", field: "table.a/b.input" })
    }).pipe(Effect.scoped)
  )

  it.effect.each(["gpt-5", "/gpt-5", "openai/"])("a price of %s is refused: it names no model of a provider", (name) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Layer.build(Prices.layer({ table: { [name]: { input: 1, output: 2 } } })))
      expect(error).toMatchObject({ _tag: "OptionsInvalid", policy: "Prices", field: `table.${name}` })
    }).pipe(Effect.scoped)
  )

  it("prices every model of the maintained table as the package itself does", () => {
    const at = new Date("2026-09-01T12:00:00Z")
    let compared = 0
    for (const id of ["anthropic", "openai", "google", "mistral", "deepseek", "x-ai"]) {
      for (const { id: model } of findProvider({ providerId: id })?.models ?? []) {
        const rates = find({ provider: id, model, at })
        for (const [usage, tokens] of [
          [
            used({ input: 1000, cacheRead: 500, cacheWrite: 250, output: 100, reasoning: 50 }),
            [1750, 500, 250, 150, 50]
          ],
          [used({ input: 300_000, output: 7 }), [300_000, 0, 0, 7, 0]]
        ] as const) {
          const [input_tokens, cache_read_tokens, cache_write_tokens, output_tokens] = tokens
          const theirs = (() => {
            try {
              return calcPrice({ input_tokens, cache_read_tokens, cache_write_tokens, output_tokens }, model, {
                providerId: id,
                timestamp: at
              })?.total_price
            } catch {
              return undefined
            }
          })()
          const ours = rates === undefined ? undefined : Rates.cost(rates, usage)
          if (ours === undefined || theirs === undefined) continue
          expect(Math.abs(ours - theirs * 1e9), `${id}/${model}`).toBeLessThanOrEqual(1)
          compared++
        }
      }
    }
    expect(compared).toBeGreaterThan(200)
  })
})
