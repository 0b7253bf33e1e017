/**
 * Takes text of any length and keeps a bounded part of it: the head and the tail, which in logs matter most.
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
    const room = half - kept.head.length
    const tail = kept.tail + more.slice(room)
    const over = Math.max(0, tail.length - half)
    return { head: kept.head + more.slice(0, room), tail: tail.slice(over), cut: kept.cut + over }
  }

/** The text, with a marker where something was dropped. */
export const toText = ({ cut, head, tail }: BoundedText): string =>
  cut === 0 ? head + tail : `${head}\n[… ${cut} characters left out …]\n${tail}`
