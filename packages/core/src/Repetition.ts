/**
 * Notices that a model says the same over and over in one reply (RI-035).
 *
 * @since 0.1.0
 */

/** UTF-16 units of the end of a reply that are looked at often, and between two such looks: a look reads them all. */
const near = { window: 4096, every: 256 }
/** UTF-16 units of the longest thing whose repeats are found: a paragraph of some 200 words. */
export const longest = 1280
/** UTF-16 units of the end of a reply that are ever looked at: more would cost more than it finds. */
const most = 65_536
/** Looks at the wide end of a reply while it passes by once. */
const looks = 16
/** UTF-16 units that all repeats together must have: fewer are a rule of dashes or an empty table. */
const least = 200

/** How many times in a row the end of a text says the same; 1 if it does not. */
export const count = (text: string): number => {
  const reversed = Array.from({ length: text.length }, (_, i) => text.charCodeAt(text.length - 1 - i))
  // borders[i]: the longest proper prefix of the first i + 1 units that is also their suffix (Knuth, Morris, Pratt).
  const borders = [0]
  let times = 1
  for (let i = 1, border = 0; i < reversed.length; i++) {
    while (border > 0 && reversed[i] !== reversed[border]) border = borders[border - 1] ?? 0
    if (reversed[i] === reversed[border]) border++
    borders.push(border)
    const length = i + 1
    if (length >= least) times = Math.max(times, Math.floor(length / (length - border)))
  }
  return times
}

interface Look {
  readonly window: number
  readonly every: number
}

const looking = ({ every, window }: Look, atMost: number): ((delta: string) => boolean) => {
  let tail = ""
  let unseen = 0
  return (delta) => {
    tail += delta
    unseen += delta.length
    if (unseen < every) return false
    unseen = 0
    tail = tail.slice(-window)
    return count(tail) >= atMost
  }
}

/**
 * Takes a text piece by piece; true soon after its end repeats at least so many times. What repeats is found if it has at
 * most `longest` units and all repeats together at most 65,536.
 */
export const detector = (atMost: number): ((delta: string) => boolean) => {
  const wide = Math.min(most, atMost * longest)
  const all = [looking(near, atMost)]
  if (wide > near.window) all.push(looking({ window: wide, every: Math.ceil(wide / looks) }, atMost))
  return (delta) => all.map((look) => look(delta)).includes(true)
}
