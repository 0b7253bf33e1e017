/**
 * Chooses which part of the history the model is shown. It never cuts inside a turn, so every call keeps its result.
 *
 * @since 0.1.0
 */
import type * as Prompt from "effect/ai/Prompt"
import type { History } from "./History.ts"

/** The messages to show, in order; the instructions come before them. It must keep calls and results together. */
export type Window = (history: History) => ReadonlyArray<Prompt.Message>

/** The whole history. */
export const all: Window = (history) => history.slice()

/**
 * The task and the last `count` messages or a few less: the cut is moved forward to where a turn begins, but the last
 * turn is always whole. A request stays the same size however long the Run is.
 */
export const lastMessages =
  (count: number): Window =>
  (history) => {
    const first = history.at(0)
    const asked = Number.isFinite(count) ? Math.floor(count) : history.length
    const start = border(history, Math.max(1, history.length - asked))
    return first === undefined || start === 1 ? history.slice() : [first].concat(history.slice(start))
  }

/** Where a turn begins: at `from` or after it, else before it. A tool message never stands without its calls. */
const border = (history: History, from: number): number => {
  let start = from
  while (start < history.length && history.at(start)?.role === "tool") start++
  if (start < history.length) return start
  while (start > 1 && history.at(start)?.role !== "assistant") start--
  return start
}
