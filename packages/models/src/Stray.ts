/**
 * Finds a call that a model ended its reply with, but did not write as a call.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import * as Calls from "./Calls.ts"

/** Tags that some models were trained to write, at the end of a text. */
const tagged = /<(tool_call|function_call|tool)>([^<]*(?:<(?!\/?\1>)[^<]*)*)<\/\1>$/
/** A block of any language at the end of a text. */
const fenced = /(?:^|\n)(```|~~~)[^\n]*\n((?:(?!```|~~~)[\s\S])*)\1$/

/** UTF-16 units of the end of a reply that are looked at. */
export const looked = 20_000

/** What was written, if it reads as a call of one of these tools. */
export const find = (said: string, tools: ReadonlySet<string>): string | undefined => {
  const text = said.trim()
  const found = [text, tagged.exec(text)?.[2], fenced.exec(text)?.[2]]
  return found.find((body) => body !== undefined && /^\s*[[{]/.test(body) && isCall(body, tools))
}

const isCall = (body: string, tools: ReadonlySet<string>): boolean => areCalls(Calls.read(body), tools)

/** It reads as calls, all of tools that there are. */
export const areCalls = (calls: ReturnType<typeof Calls.read>, tools: ReadonlySet<string>): boolean =>
  Result.isSuccess(calls) && calls.success.every(({ name }) => tools.has(name))
