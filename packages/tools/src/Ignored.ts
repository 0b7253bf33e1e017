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
}

/** Real files have a few dozen. */
const maxRules = 1_000
/** Per rule: more wildcards than people write, fewer than take long: 0.1 ms at worst for a path (measured). */
const maxWildcards = 8
const maxGlobstars = 3

/** The rules in the text of a `.gitignore`. */
export const parse = (folder: string, text: string): Rules => ({
  folder,
  rules: ignore({ ignorecase: false }).add(text.split(/\r?\n/).filter(isQuick).slice(0, maxRules))
})

const isQuick = (rule: string): boolean =>
  (rule.match(/[*?]/g)?.length ?? 0) <= maxWildcards && (rule.match(/\*\*/g)?.length ?? 0) <= maxGlobstars

/** `path` is relative to the root; a folder's ends with a slash. The rules come outermost first. */
export const isIgnored = (path: string, all: ReadonlyArray<Rules>): boolean => {
  const deciding = all.findLast(({ folder, rules }) => {
    const { ignored, unignored } = rules.test(path.slice(folder.length))
    return ignored || unignored
  })
  return deciding !== undefined && deciding.rules.ignores(path.slice(deciding.folder.length))
}
