/**
 * Reads JSON that a model wrote by hand, repairing how it is written and never what it says.
 *
 * Invariants
 *   W1  What was cut off is never completed: a text that ends inside of a string or of brackets is an error (RI-104).
 *   W2  The repaired JSON has the same values in the same order; nothing is added, dropped or guessed.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import { jsonrepair } from "jsonrepair"

/** The value, else what is wrong with the text, for the model. */
export const parse = (text: string): Result.Result<unknown, string> => {
  const strict = attempt(() => JSON.parse(text))
  if (Result.isSuccess(strict)) return strict
  const before = scan(text)
  if (!before.whole) return Result.fail(`the JSON is not complete (${strict.failure})`)
  const repaired = attempt(() => jsonrepair(text))
  if (Result.isFailure(repaired)) return repaired
  const after = scan(repaired.success)
  if (!after.whole || before.values.join("\n") !== after.values.join("\n")) return Result.fail(strict.failure)
  return attempt(() => JSON.parse(repaired.success))
}

const attempt = <A>(f: () => A): Result.Result<A, string> => {
  try {
    return Result.succeed(f())
  } catch (error) {
    return Result.fail(error instanceof Error ? error.message : String(error))
  }
}

interface Scanned {
  /** Every string and bracket that was opened was closed. */
  readonly whole: boolean
  /** Keys and values, in one spelling. */
  readonly values: ReadonlyArray<string>
}

/** Comments, strings in either quote, brackets, and everything else between separators. */
const token = /\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:[^"\\]|\\[\s\S])*"|'(?:[^'\\]|\\[\s\S])*'|[{}[\]]|[^\s,:{}[\]"']+|["']/g

const scan = (text: string): Scanned => {
  const open: Array<string> = []
  const values: Array<string> = []
  let whole = true
  for (const [found] of text.matchAll(token)) {
    if (found === "{" || found === "[") open.push(found)
    else if (found === "}" || found === "]") whole = open.pop() === (found === "}" ? "{" : "[") && whole
    // Nothing behind what does not end is read: each quote there would look for its end again.
    else if (found === '"' || found === "'" || isCut(found)) return { whole: false, values }
    else if (!/^\/[/*]/.test(found)) values.push(spelled(found))
  }
  return { whole: whole && open.length === 0, values }
}

/** A comment that does not end is read as a word. */
const isCut = (found: string): boolean => found.startsWith("/*") && !(found.length > 3 && found.endsWith("*/"))

const words: { readonly [word: string]: string } = { True: "true", False: "false", None: "null" }

const spelled = (found: string): string => {
  if (!/^["']/.test(found)) return Object.hasOwn(words, found) ? (words[found] ?? found) : found
  const inner = found.slice(1, -1).replaceAll("\\'", "'").replace(/\\?"/g, '\\"')
  const escaped = inner.replace(/[^ -\uffff]/g, (char) => JSON.stringify(char).slice(1, -1))
  const text = attempt(() => String(JSON.parse(`"${escaped}"`)))
  return Result.isSuccess(text) ? JSON.stringify(text.success).slice(1, -1) : inner
}
