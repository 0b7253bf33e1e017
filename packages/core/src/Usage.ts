/**
 * Counts the tokens of model calls in classes that never overlap, so that no token is paid twice (RI-166).
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import type * as Response from "effect/ai/Response"

const Tokens = Schema.Number

/** Token counts in disjoint classes. `estimated` is set if any part of them was not reported by the provider. */
export const Usage = Schema.Struct({
  /** Input tokens that were neither read from nor written to the provider's cache. */
  input: Tokens,
  cacheRead: Tokens,
  cacheWrite: Tokens,
  /** Output tokens without reasoning. */
  output: Tokens,
  reasoning: Tokens,
  estimated: Schema.optionalKey(Schema.Literal(true))
})
export type Usage = typeof Usage.Type

export const zero: Usage = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 }

export const add = (a: Usage, b: Usage): Usage => ({
  input: a.input + b.input,
  cacheRead: a.cacheRead + b.cacheRead,
  cacheWrite: a.cacheWrite + b.cacheWrite,
  output: a.output + b.output,
  reasoning: a.reasoning + b.reasoning,
  ...(a.estimated === true || b.estimated === true ? { estimated: true } : undefined)
})

/** All tokens of all classes. */
export const total = (u: Usage): number => u.input + u.cacheRead + u.cacheWrite + u.output + u.reasoning

/** A number that no counter can be says nothing; a negative one would give a budget back what was spent. */
const count = (reported: number | undefined): number | undefined =>
  reported !== undefined && reported >= 0 && reported <= Number.MAX_SAFE_INTEGER ? reported : undefined

/**
 * Reads effect/ai's usage, whose `uncached` and `text` are optional beside a `total`, into disjoint classes.
 * What is missing, or can be no counter, is derived from the totals; nothing becomes negative.
 */
export const fromResponse = ({ inputTokens, outputTokens }: Response.Usage): Usage => {
  const cacheRead = count(inputTokens.cacheRead) ?? 0
  const cacheWrite = count(inputTokens.cacheWrite) ?? 0
  const reasoning = count(outputTokens.reasoning) ?? 0
  return {
    input: count(inputTokens.uncached) ?? Math.max(0, (count(inputTokens.total) ?? 0) - cacheRead - cacheWrite),
    cacheRead,
    cacheWrite,
    output: count(outputTokens.text) ?? Math.max(0, (count(outputTokens.total) ?? 0) - reasoning),
    reasoning
  }
}

/**
 * What was reported; a side that was not reported at all is taken from the estimate (RI-101). Zeros alone report nothing:
 * nobody reads a request of no tokens.
 */
export const fromReport = (report: Response.Usage, guess: () => Usage): Usage => {
  const usage = fromResponse(report)
  if (total(usage) === 0) return guess()
  const input = count(report.inputTokens.total) ?? count(report.inputTokens.uncached)
  const output = count(report.outputTokens.total) ?? count(report.outputTokens.text)
  if (input !== undefined && output !== undefined) return usage
  const other = guess()
  const sides = {
    input: input === undefined ? other.input : usage.input,
    output: output === undefined ? other.output : usage.output
  }
  return { ...usage, ...sides, estimated: true }
}

/** Four characters a token: the usual rule of thumb for English text, used only where a provider said nothing. */
export const estimate = (inputChars: number, outputChars: number): Usage => ({
  ...zero,
  input: Math.ceil(inputChars / 4),
  output: Math.ceil(outputChars / 4),
  estimated: true
})
