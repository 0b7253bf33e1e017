/**
 * Reads the rates of a model from the table in `@pydantic/genai-prices`.
 *
 * @since 0.1.0
 */
import { calcPrice, type ModelPrice } from "@pydantic/genai-prices"
import type { Rates } from "./Rates.ts"

export interface Asked {
  readonly provider: string
  readonly model: string
  /** Some prices depend on the day and the hour. */
  readonly at: Date
}

/** What that model charges; undefined if the table does not know it, or not for text. */
export const find = ({ at, model, provider }: Asked): Rates | undefined => {
  const price = priced({ at, model, provider })
  if (price === undefined) return undefined
  return {
    input: price["input_mtok"],
    cacheRead: price["cache_read_mtok"],
    cacheWrite: price["cache_write_mtok"],
    output: price["output_mtok"],
    reasoning: price["output_reasoning_mtok"]
  }
}

/** The package throws on what it cannot price. */
const priced = ({ at, model, provider }: Asked): ModelPrice | undefined => {
  try {
    return calcPrice({ input_tokens: 0 }, model, { providerId: provider, timestamp: at })?.model_price
  } catch {
    return undefined
  }
}
