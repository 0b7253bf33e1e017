/**
 * Notices that a model says the same over and over in one reply (RI-035).
 *
 * @since 0.1.0
 */

/** UTF-16 units of the end of a reply that are looked at: what repeats may be a paragraph of some 200 words. */
const window = 4096
/** UTF-16 units between two looks: one look costs about as much as reading the window. */
const every = 256
/** UTF-16 units that all repeats together must have: fewer are a rule of dashes or an empty table. */
const least = 200

/** How many times in a row the end of a text says the same; 1 if it does not. */
export const count = (text: string): number => {
  const reversed = Array.from({ length: text.length }, (_, i) => text.charCodeAt(text.length - 1 - i))
  // borders[i]: the longest proper prefix of the first i + 1 units that is also their suffix (Knuth, Morris, Pratt).
  const borders = [0]
  let most = 1
  for (let i = 1, border = 0; i < reversed.length; i++) {
    while (border > 0 && reversed[i] !== reversed[border]) border = borders[border - 1] ?? 0
    if (reversed[i] === reversed[border]) border++
    borders.push(border)
    const length = i + 1
    if (length >= least) most = Math.max(most, Math.floor(length / (length - border)))
  }
  return most
}

/** Takes a text piece by piece; true as soon as its end repeats at least so many times. */
export const detector = (atMost: number): ((delta: string) => boolean) => {
  let tail = ""
  let unseen = 0
  return (delta) => {
    tail = (tail + delta).slice(-window)
    unseen += delta.length
    if (unseen < every) return false
    unseen = 0
    return count(tail) >= atMost
  }
}
