/**
 * Matches names and words in which `*` stands for any characters, in linear time and without a pattern language.
 *
 * @since 0.1.0
 */

/** A test for whole texts. `*` is the only special character: none, one or more characters of any kind. */
export const compile = (pattern: string): ((text: string) => boolean) => {
  const [first = "", ...rest] = pattern.split("*")
  const last = rest.pop()
  if (last === undefined) return (text) => text === pattern
  return (text) => {
    if (!text.startsWith(first)) return false
    let from = first.length
    for (const piece of rest) {
      const at = text.indexOf(piece, from)
      if (at === -1) return false
      from = at + piece.length
    }
    return text.length - from >= last.length && text.endsWith(last)
  }
}
