/**
 * Says which files the `.gitignore` files of a folder leave out, as git would.
 *
 * A rule of a deeper file wins. Rules that could take long (`ignore` makes regular expressions of them, and a model may
 * have written the file) are left out, so that more files are shown rather than none.
 *
 * @since 0.1.0
 */
import ignore from "ignore"

/** The rules of one `.gitignore`, and the folder that it lies in (`""` or `src/`). */
export interface Rules {
  readonly folder: string
  readonly rules: ignore.Ignore
  readonly weight: number
}

/**
 * What all rules that are asked about one path may weigh together: some five hundred usual ones. They are asked in one
 * go, which takes at most 30 ms for the longest paths and the worst rules (measured).
 */
export const maxWeight = 30_000
/** Per rule: more wildcards than people write. */
const maxWildcards = 8
const maxGlobstars = 2
/** In UTF-16 units; what is longer is no list of rules. */
const maxText = 100_000

/** The rules in the text of a `.gitignore`, the first ones that weigh at most `room`. */
export const parse = (folder: string, text: string, room = maxWeight): Rules => {
  const taken: Array<string> = []
  let weight = 0
  for (const rule of text.slice(0, maxText).split(/\r?\n/)) {
    if (/^(?:#|\s*$)/.test(rule)) continue
    const more = weightOf(rule)
    if (weight + more > room) continue
    weight += more
    taken.push(rule)
  }
  return { folder, rules: ignore({ ignorecase: false }).add(taken), weight }
}

/** Grows as the time for the worst path does: with the length, the square of the wildcards, a second `**` far more. */
const weightOf = (rule: string): number => {
  const wildcards = rule.match(/[*?]/g)?.length ?? 0
  const globstars = rule.match(/\*\*/g)?.length ?? 0
  if (wildcards > maxWildcards || globstars > maxGlobstars) return Number.POSITIVE_INFINITY
  return (rule.length + 20 + 20 * wildcards ** 2) * (globstars > 1 ? 8 : 1)
}

/** `path` is relative to the root; a folder's ends with a slash. The rules come outermost first. */
export const isIgnored = (path: string, all: ReadonlyArray<Rules>): boolean => {
  const deciding = all.findLast(({ folder, rules }) => {
    const { ignored, unignored } = rules.test(path.slice(folder.length))
    return ignored || unignored
  })
  return deciding !== undefined && deciding.rules.ignores(path.slice(deciding.folder.length))
}
