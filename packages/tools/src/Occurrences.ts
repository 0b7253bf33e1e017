/**
 * Finds a text in another one in linear time, whatever a model wrote.
 *
 * JavaScript's own `indexOf` is quadratic for a long text that nearly occurs everywhere, so this is Knuth, Morris and
 * Pratt's search. Occurrences may overlap: a text that could be replaced in two ways does not occur once.
 *
 * @since 0.1.0
 */

/** Where `part`, which is not empty, begins in `text`: the first `limit` places. */
export const find = (text: string, part: string, limit = Number.POSITIVE_INFINITY): ReadonlyArray<number> => {
  const found: Array<number> = []
  const borders = bordersOf(part)
  let matched = 0
  for (let index = 0; index < text.length && found.length < limit; index++) {
    const unit = text.charCodeAt(index)
    while (matched > 0 && (matched === part.length || part.charCodeAt(matched) !== unit))
      matched = borders[matched - 1] ?? 0
    if (part.charCodeAt(matched) === unit) matched++
    if (matched === part.length) found.push(index - matched + 1)
  }
  return found
}

/** For each beginning of `part`: the length of its longest proper beginning that is also its end. */
const bordersOf = (part: string): Uint32Array => {
  const borders = new Uint32Array(part.length)
  let length = 0
  for (let index = 1; index < part.length; index++) {
    const unit = part.charCodeAt(index)
    while (length > 0 && part.charCodeAt(length) !== unit) length = borders[length - 1] ?? 0
    if (part.charCodeAt(length) === unit) length++
    borders[index] = length
  }
  return borders
}

/** The line that an index lies in, counted from 1. */
export const lineAt = (text: string, index: number): number => {
  let line = 1
  for (let at = text.indexOf("\n"); at !== -1 && at < index; at = text.indexOf("\n", at + 1)) line++
  return line
}
