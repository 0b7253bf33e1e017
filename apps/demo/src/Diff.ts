/**
 * Compares two versions of a file and prints what changed, as a unified diff with one hunk.
 */

const context = 3

/** A changed file; `undefined` where it did not exist. */
export interface Change {
  readonly path: string
  readonly before: string | undefined
  readonly after: string | undefined
}

/** The files that differ between two snapshots of a folder. */
export const changes = (
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>
): ReadonlyArray<Change> =>
  [...new Set([...before.keys(), ...after.keys()])]
    .toSorted()
    .filter((path) => before.get(path) !== after.get(path))
    .map((path) => ({ path, before: before.get(path), after: after.get(path) }))

/** The lines of a unified diff: everything between the first and the last line that differ is one hunk. */
export const unified = ({ after, before, path }: Change): ReadonlyArray<string> => {
  const old = linesOf(before)
  const now = linesOf(after)
  const same = common(old, now)
  const sameEnd = Math.min(common(old.toReversed(), now.toReversed()), old.length - same, now.length - same)
  const from = Math.max(0, same - context)
  const trailing = old.slice(old.length - sameEnd).slice(0, context)
  const removed = old.slice(same, old.length - sameEnd)
  const added = now.slice(same, now.length - sameEnd)
  const lead = old.slice(from, same)
  const around = lead.length + trailing.length
  return [
    `--- ${before === undefined ? "/dev/null" : `a/${path}`}`,
    `+++ ${after === undefined ? "/dev/null" : `b/${path}`}`,
    `@@ -${from + 1},${around + removed.length} +${from + 1},${around + added.length} @@`,
    ...lead.map((line) => ` ${line}`),
    ...removed.map((line) => `-${line}`),
    ...added.map((line) => `+${line}`),
    ...trailing.map((line) => ` ${line}`)
  ]
}

const linesOf = (text: string | undefined): ReadonlyArray<string> =>
  text === undefined || text === "" ? [] : text.replace(/\n$/, "").split("\n")

/** How many lines are equal from the start. */
const common = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): number => {
  const differs = a.findIndex((line, index) => line !== b[index])
  return differs === -1 ? a.length : differs
}
