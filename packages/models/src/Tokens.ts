/**
 * Reads how many tokens a reply cost. An odd number does not cost the reply.
 *
 * Invariants
 *   U1  A side (input or output) with a number that no counter can be (negative, endless, above 2^53 - 1) is left out.
 *   U2  A total that the provider did not tell is left out, also where its package says 0 in its place: core estimates it.
 *
 * @since 0.1.0
 */
import type { LanguageModelV4Usage } from "@ai-sdk/provider"
import type * as Response from "effect/ai/Response"
import { isObject } from "./Json.ts"

type Given = { readonly [count: string]: number | undefined }
type Counts = { readonly [count: string]: number }

/** Where the APIs write how many tokens went in, and how many came out. */
const counters = {
  input: ["prompt_tokens", "input_tokens", "promptTokenCount", "total_input_tokens"],
  output: ["completion_tokens", "output_tokens", "candidatesTokenCount", "thoughtsTokenCount", "total_output_tokens"]
}

/** The classes do not overlap: `uncached` has no cached tokens in it, `text` no reasoning. */
export const read = (usage: LanguageModelV4Usage | undefined): Response.FinishPartEncoded["usage"] => {
  const { cacheRead, cacheWrite, noCache, total } = usage?.inputTokens ?? nothing
  const output = usage?.outputTokens ?? nothing
  const isTold = (names: ReadonlyArray<string>) => told(usage?.raw, names)
  return {
    inputTokens: side({ total, uncached: noCache, cacheRead, cacheWrite }, isTold(counters.input)),
    outputTokens: side({ total: output.total, text: output.text, reasoning: output.reasoning }, isTold(counters.output))
  }
}

const nothing: Given = {}

/** The packages add parts to totals, or subtract them: of a side with one wrong number nothing can be believed. */
const side = (given: Given, isTold: boolean): Counts => {
  const found = Object.entries(given).filter(([, value]) => isGiven(value))
  if (!found.every(([, value]) => isCount(value)) || (given["total"] === 0 && !isTold)) return {}
  return Object.fromEntries(found.map(([name, value]) => [name, Math.round(Number(value))]))
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null

const isCount = (value: unknown): value is number =>
  typeof value === "number" && value >= 0 && Number.isSafeInteger(Math.round(value))

/** By what the provider wrote; without it its package is believed. */
const told = (raw: unknown, names: ReadonlyArray<string>): boolean =>
  !isObject(raw) || names.some((name) => typeof raw[name] === "number")
