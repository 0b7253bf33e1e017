/**
 * Takes text of any length and keeps a bounded part of it: the head and the tail, which in logs matter most.
 *
 * Invariants
 *   B1  At most `limit` UTF-16 units are kept, however much is added and in whatever pieces; `cut` counts the others.
 *   B2  No cut splits a surrogate pair.
 *
 * @since 0.1.0
 */

export interface BoundedText {
  readonly head: string
  readonly tail: string
  /** UTF-16 units that were dropped between the two. */
  readonly cut: number
}

export const empty: BoundedText = { head: "", tail: "", cut: 0 }

/** Adds text, keeping at most `limit` units, half of them at either end. */
export const add =
  (limit: number) =>
  (kept: BoundedText, more: string): BoundedText => {
    const half = Math.floor(limit / 2)
    // While nothing is cut the head is still open: its last unit may be the first half of a pair.
    const all = kept.cut === 0 ? kept.head + kept.tail + more : kept.tail + more
    const start = kept.cut > 0 ? 0 : splitsPair(all, half) ? half - 1 : Math.min(half, all.length)
    const head = kept.cut === 0 ? all.slice(0, start) : kept.head
    const fits = kept.cut === 0 && all.length <= 2 * half
    const from = fits ? start : Math.max(start, all.length - half)
    const end = from > start && splitsPair(all, from) ? from + 1 : from
    return { head, tail: all.slice(end), cut: kept.cut + end - start }
  }

/** The text, with a marker where something was dropped. */
export const toText = ({ cut, head, tail }: BoundedText): string =>
  cut === 0 ? head + tail : `${head}\n[… ${cut} characters left out …]\n${tail}`

const splitsPair = (text: string, index: number): boolean =>
  index > 0 && /^[\uD800-\uDBFF][\uDC00-\uDFFF]$/.test(text.slice(index - 1, index + 1))
