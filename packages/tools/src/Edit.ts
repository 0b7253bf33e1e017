/**
 * Replaces a piece of a text that occurs exactly once, and says afterwards whether that has happened.
 *
 * Invariants
 *   E1  Nothing but that one occurrence changes; the new text is taken as it is.
 *   E2  Line ends stay what they are: where the text has CRLF, the LF of a model means CRLF.
 *   E3  `trace` never says "done" of a text that the edit could start from, nor "not begun" of one that it could leave.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import { isCrlf, toCrlf } from "./LineEnds.ts"
import * as Occurrences from "./Occurrences.ts"

export interface Edit {
  /** Not empty. */
  readonly oldText: string
  readonly newText: string
}

export interface Edited {
  readonly before: string
  readonly after: string
  /** The line that the edit begins in, from 1. */
  readonly line: number
}

/** Why an edit is not possible, in words for the model. */
export interface Refusal {
  readonly reason: "same" | "absent" | "several"
  readonly message: string
}

/** Performs the edit on a text. */
export const apply = (before: string, edit: Edit): Result.Result<Edited, Refusal> => {
  if (edit.oldText === edit.newText) return refuse("same", "old_text and new_text are equal: nothing would change")
  for (const { newText, oldText } of variants(before, edit)) {
    const [index, second] = Occurrences.find(before, oldText, 2)
    if (index === undefined) continue
    if (second !== undefined) return refuse("several", several(before, oldText))
    if (oldText === newText) return refuse("same", "old_text and new_text differ in line ends only, which are kept")
    const after = before.slice(0, index) + newText + before.slice(index + oldText.length)
    return Result.succeed({ before, after, line: Occurrences.lineAt(before, index) })
  }
  return refuse("absent", absent(before, edit.oldText))
}

/** What became of an edit of which only the text is known that is there now. */
export type Traced =
  /** `edited` where there is only one place that it can have been made at. */
  { readonly _tag: "Done"; readonly edited?: Edited } | { readonly _tag: "NeverStarted" } | { readonly _tag: "Unknown" }

/**
 * Whether `now` is the text before or after the edit. Where nobody but the edit changes the text, its answer is right;
 * an edit that would have been refused can look done, if the new text is there and the old one is not.
 */
export const trace = (now: string, edit: Edit): Traced => {
  const isStart = Result.isSuccess(apply(now, edit))
  const starts = startsOf(now, edit)
  const isResult = starts.found.length > 0
  if (starts.complete && isStart && !isResult) return { _tag: "NeverStarted" }
  if (!isResult || isStart) return { _tag: "Unknown" }
  const [only, ...others] = starts.found
  return only !== undefined && others.length === 0 && starts.complete
    ? { _tag: "Done", edited: only }
    : { _tag: "Done" }
}

/** In the order in which they are tried. One that has CRLF only has no LF that could be meant. */
const variants = (text: string, edit: Edit): ReadonlyArray<Edit> => {
  if (!text.includes("\r\n")) return [edit]
  const crlf = { oldText: toCrlf(edit.oldText), newText: toCrlf(edit.newText) }
  return isCrlf(text) ? [crlf] : [edit, crlf]
}

/** In UTF-16 units that may be searched to find what a text was before: less than a second. */
const maxWork = 10_000_000

/** Texts that the edit turns into `now`: none, one, or two of more. Not complete where that would take too long. */
const startsOf = (now: string, edit: Edit): { readonly found: ReadonlyArray<Edited>; readonly complete: boolean } => {
  const crlf = { oldText: toCrlf(edit.oldText), newText: toCrlf(edit.newText) }
  const found = new Map<number, Edited>()
  let work = maxWork
  for (const { newText, oldText } of now.includes("\r\n") ? [crlf, edit] : [edit, crlf]) {
    for (const index of placesOf(now, { newText, oldText })) {
      if (found.size === 2) return { found: [...found.values()], complete: false }
      if (found.has(index)) continue
      if (work <= 0) return { found: [...found.values()], complete: false }
      work -= now.length + oldText.length
      const edited = apply(now.slice(0, index) + oldText + now.slice(index + newText.length), edit)
      if (Result.isSuccess(edited) && edited.success.after === now) found.set(index, edited.success)
    }
  }
  return { found: [...found.values()], complete: true }
}

/** Where the new text stands and the old one may have stood: it occurs neither before nor after. */
const placesOf = (now: string, { newText, oldText }: Edit): ReadonlyArray<number> => {
  const olds = Occurrences.find(now, oldText)
  const least = (olds.at(-1) ?? -1) - newText.length
  const most = (olds[0] ?? now.length) + oldText.length
  const places =
    newText === "" ? Array.from({ length: now.length + 1 }, (_, index) => index) : Occurrences.find(now, newText)
  return places.filter((index) => index > least && index < most)
}

const refuse = (reason: Refusal["reason"], message: string): Result.Result<never, Refusal> =>
  Result.fail({ reason, message })

const several = (text: string, oldText: string): string => {
  const places = Occurrences.find(text, oldText)
  const lines = places.slice(0, 10).map((index) => Occurrences.lineAt(text, index))
  const more = places.length > lines.length ? ", …" : ""
  return `old_text occurs ${places.length} times, at lines ${lines.join(", ")}${more}; take in lines around the one that is meant`
}

const absent = (text: string, oldText: string): string => {
  const wanted = oldText.replace(/\s+/g, "")
  const [index] = wanted === "" ? [] : Occurrences.find(text.replace(/\s+/g, ""), wanted, 1)
  if (index === undefined) return "old_text does not occur in the file; read the file again"
  const line = Occurrences.lineAt(text, nthVisible(text, index))
  return `old_text occurs at line ${line} with other white space; copy it exactly as it is there`
}

/** The index of the character that has `count` others before it that are no white space. */
const nthVisible = (text: string, count: number): number => {
  let seen = 0
  for (const { index } of text.matchAll(/\S/g)) if (seen++ === count) return index
  return text.length
}
