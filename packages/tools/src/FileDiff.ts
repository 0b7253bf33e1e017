/**
 * Shows what a change did to a file, as a unified diff of bounded size that takes bounded time.
 *
 * @since 0.1.0
 */
import { createTwoFilesPatch, FILE_HEADERS_ONLY } from "diff"
import { cut } from "./Cut.ts"

/** A third of what a model is shown of a result (16,000). In UTF-16 units. */
export const maxLength = 5_000
/** More changed lines are no edit that somebody reads; the time grows with its square. */
const maxEditLength = 2_000
const maxMillis = 250

/**
 * The diff from `before` to `after`, with three lines around each change; `undefined` where there is no file. Empty if
 * they are equal. A long one is cut and says so; texts that differ too much are only counted.
 */
export const unified = (path: string, before: string | undefined, after: string | undefined): string => {
  if (before === after) return ""
  const names = [
    before === undefined ? "/dev/null" : `a/${named(path)}`,
    after === undefined ? "/dev/null" : `b/${named(path)}`
  ] as const
  const options = { context: 3, headerOptions: FILE_HEADERS_ONLY, maxEditLength, timeout: maxMillis }
  const patch = createTwoFilesPatch(...names, before ?? "", after ?? "", undefined, undefined, options)
  return bounded(
    patch ??
      `--- ${names[0]}\n+++ ${names[1]}\n(${linesOf(before)} lines became ${linesOf(after)}: too different to show)\n`
  )
}

/** A line break in a name would look like a line of the diff. */
const named = (path: string): string => path.replace(/\p{Cc}/gu, "?")

const linesOf = (text = ""): number => text.split("\n").length - (text === "" || text.endsWith("\n") ? 1 : 0)

const bounded = (patch: string): string => {
  if (patch.length <= maxLength) return patch
  const kept = cut(patch, maxLength)
  const whole = kept.slice(0, kept.lastIndexOf("\n") + 1)
  return `${whole}(… ${linesOf(patch.slice(whole.length))} more lines of the diff left out)\n`
}
