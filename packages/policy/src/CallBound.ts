/**
 * Says the most that the next model call can come to, and how much of it a room of tokens and money can take.
 *
 * Invariants
 *   CB1  Input is bounded by bytes or the model's window, output by what the request allows; of several models, and of
 *        the classes of tokens, the dearest counts.
 *   CB2  What has no bound or no price is reported as such: it is never 0.
 *
 * @since 0.1.0
 */
import { type Guard, Usage } from "@waystone/core"

/** What is left. Infinity: no limit. */
export interface Room {
  readonly tokens: number
  readonly costNanoUsd: number
}

export interface Wanted {
  readonly room: Room
  readonly tools: boolean
  /** Tokens that adapters and providers add to a request unseen. */
  readonly hiddenTokens: number
  /** Output tokens where neither settings nor ModelInfo say how many there can be. */
  readonly maxOutputTokens: number
  /** With fewer output tokens a call is not worth making. */
  readonly minOutputTokens: number
  /** Tries that may cost something. */
  readonly tries: number
}

/** What to set aside, and what the request must be held to. */
export interface Fits {
  readonly _tag: "Fits"
  readonly tokens: number
  readonly costNanoUsd: number
  readonly tries: number
  readonly maxOutputTokens?: number
}
export type Bound =
  | Fits
  /** It may need so much, and there is less. */
  | { readonly _tag: "TooMuch"; readonly unit: "tokens" | "costNanoUsd"; readonly needed: number }
  | { readonly _tag: "NoPrice"; readonly model: string }
  | { readonly _tag: "NoBound"; readonly model: string }

interface One {
  readonly input: number
  /** At most so many output tokens; undefined if nobody says. */
  readonly output: number | undefined
  readonly cost: (output: number) => number | undefined
  readonly name: string
}

/** As many tries as fit, the whole output if it fits, else as much of it as does. */
export const of = (request: Guard.ModelRequest, wanted: Wanted): Bound => {
  const bytes = request.inputBytes({ tools: wanted.tools }) + wanted.hiddenTokens
  const priced = wanted.room.costNanoUsd !== Infinity
  const models = request.models.map(({ info, settings }): One => {
    const limit = Math.min(settings.maxOutputTokens ?? Infinity, info.maxOutput ?? Infinity)
    const input = Math.min(bytes, info.window ?? Infinity)
    return {
      input,
      output: limit === Infinity ? undefined : limit,
      cost: (output) => (priced ? dearest(request, { info, input, output }) : 0),
      name: `${info.provider ?? "unknown provider"}/${info.model ?? "unknown model"}`
    }
  })
  const unbounded = models.find(({ input }) => input === Infinity)
  if (unbounded !== undefined) return { _tag: "NoBound", model: unbounded.name }
  const unpriced = models.find(({ cost }) => cost(1) === undefined)
  if (unpriced !== undefined) return { _tag: "NoPrice", model: unpriced.name }
  return fitted(models, wanted)
}

const fitted = (models: ReadonlyArray<One>, { maxOutputTokens, minOutputTokens, room, tries }: Wanted): Bound => {
  const most = Math.max(...models.map(({ output }) => output ?? maxOutputTokens))
  const need = (output: number): Room => ({
    tokens: Math.max(...models.map((one) => one.input + Math.min(output, one.output ?? output))),
    costNanoUsd: Math.max(...models.map((one) => one.cost(Math.min(output, one.output ?? output)) ?? Infinity))
  })
  const takes = ({ costNanoUsd, tokens }: Room, times: number) =>
    tokens * times <= room.tokens && costNanoUsd * times <= room.costNanoUsd
  const isSaid = models.every(({ output }) => output !== undefined)
  const whole = need(most)
  for (let times = tries; times >= 1; times--) {
    if (takes(whole, times)) return fits(whole, times, isSaid ? undefined : most)
  }
  const least = Math.min(minOutputTokens, most)
  const smallest = need(least)
  if (!takes(smallest, 1)) {
    const { costNanoUsd, tokens } = smallest
    return tokens > room.tokens
      ? { _tag: "TooMuch", unit: "tokens", needed: tokens }
      : { _tag: "TooMuch", unit: "costNanoUsd", needed: costNanoUsd }
  }
  const output = largest(least, most, (some) => takes(need(some), 1))
  return fits(need(output), 1, output)
}

const fits = ({ costNanoUsd, tokens }: Room, tries: number, maxOutputTokens: number | undefined): Fits => ({
  _tag: "Fits",
  tokens: tokens * tries,
  costNanoUsd: costNanoUsd * tries,
  tries,
  ...(maxOutputTokens === undefined ? undefined : { maxOutputTokens })
})

/** The greatest number from `low`, which is right, to below `high`, which is not. */
const largest = (low: number, high: number, isRight: (value: number) => boolean): number => {
  let [right, wrong] = [low, high]
  while (wrong - right > 1) {
    const middle = Math.floor((right + wrong) / 2)
    if (isRight(middle)) right = middle
    else wrong = middle
  }
  return right
}

/** Nobody knows before which classes its tokens will be of. */
const dearest = (
  { cost }: Guard.ModelRequest,
  {
    info,
    input,
    output
  }: { readonly info: Guard.ModelRequest["models"][number]["info"]; readonly input: number; readonly output: number }
): number | undefined => {
  let most = 0
  for (const read of ["input", "cacheRead", "cacheWrite"] as const) {
    for (const written of ["output", "reasoning"] as const) {
      const price = cost(info, { ...Usage.zero, [read]: input, [written]: output })
      if (price === undefined || !(price >= 0)) return undefined
      most = Math.max(most, price)
    }
  }
  return most
}
