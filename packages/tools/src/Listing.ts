/**
 * Walks a held folder and names its files.
 *
 * Left out are `.git` and `node_modules`, what `.gitignore` files say, links, and names that no path could name again
 * (with a `\`). Files come in the order of their paths, so that a list that is cut is the beginning of the whole one.
 *
 * Invariants
 *   L1  Links are never followed; every folder is reached through the one that holds it.
 *   L2  It is bounded: files, entries looked at, depth, time. What is left out for that is said.
 *   L3  Other fibers run meanwhile: between two entries, after at most `turn` of work.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as AtomicWrite from "./AtomicWrite.ts"
import type { Fault } from "./Fault.ts"
import * as FileText from "./FileText.ts"
import type { Held } from "./Held.ts"
import * as Ignored from "./Ignored.ts"
import * as Snapshot from "./Snapshot.ts"

export interface Listed {
  /** Relative to the root, with forward slashes, sorted by code units. */
  readonly files: ReadonlyArray<string>
  /** There are more, or folders that could not be read. */
  readonly truncated: boolean
}

export interface Options {
  readonly limit: number
  readonly matches: (path: string) => boolean
}

/** A folder of a large project, without what is ignored, has some ten thousand. */
const maxEntries = 100_000
/** Deeper than any project; a handle is held for each level. */
const maxDepth = 32
/** Well within the 30 s that a tool call has. */
const maxTime = Duration.seconds(10)
/** How long others wait at most, and the time for one entry. */
const turn = Duration.millis(25)
const skipped = new Set([".git/", "node_modules/"])

interface Walk extends Options {
  readonly files: Array<string>
  readonly until: number
  /** When others had their turn. */
  turnedAt: number
  entries: number
  truncated: boolean
}

/** The files of a folder. */
export const list = Effect.fnUntraced(function* (root: Held, options: Options): Effect.fn.Return<Listed, Fault> {
  const now = yield* Clock.currentTimeMillis
  const until = now + Duration.toMillis(maxTime)
  const walk: Walk = { ...options, files: [], until, turnedAt: now, entries: 0, truncated: false }
  yield* visit(walk, { held: root, path: "", rules: [], depth: 0 })
  const { files, truncated } = walk
  return files.length > options.limit ? { files: files.slice(0, options.limit), truncated: true } : { files, truncated }
})

interface Place {
  readonly held: Held
  /** `""` or ends with a slash. */
  readonly path: string
  readonly rules: ReadonlyArray<Ignored.Rules>
  readonly depth: number
}

const visit = (walk: Walk, { depth, held, path, rules }: Place): Effect.Effect<void, Fault> =>
  Effect.gen(function* () {
    const names = yield* held.names(maxEntries - walk.entries)
    walk.entries += names.length
    const all = names.includes(".gitignore") ? [...rules, ...(yield* rulesIn(held, path, rules))] : rules
    for (const name of names.filter(isListed).toSorted(byCodeUnits)) {
      if (yield* isOver(walk)) return
      const entry = path + name
      if (Ignored.isIgnored(entry, all)) continue
      if (!name.endsWith("/")) {
        if (walk.matches(entry)) walk.files.push(entry)
      } else if (depth === maxDepth) walk.truncated = true
      else {
        const child = Effect.flatMap(held.child(name.slice(0, -1)), (held) =>
          visit(walk, { held, path: entry, rules: all, depth: depth + 1 })
        )
        yield* Effect.catch(Effect.scoped(child), () => Effect.sync(() => void (walk.truncated = true)))
      }
    }
  })

/** A cut is certain only with one file more than asked for. */
const isOver = Effect.fnUntraced(function* (walk: Walk) {
  const now = yield* Clock.currentTimeMillis
  if (now - walk.turnedAt >= Duration.toMillis(turn)) {
    yield* Effect.yieldNow
    walk.turnedAt = yield* Clock.currentTimeMillis
  }
  if (walk.entries >= maxEntries || now >= walk.until) walk.truncated = true
  return walk.files.length > walk.limit || now >= walk.until
})

/** So that `a.ts` comes before `a/b.ts`, as their paths do. */
const byCodeUnits = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** `.git`, `node_modules`, what a killed write left, and what no path could name again. */
const isListed = (name: string): boolean => !name.includes("\\") && !skipped.has(name) && !AtomicWrite.isTemporary(name)

/** One that cannot be read has no rules. */
const rulesIn = (
  held: Held,
  path: string,
  above: ReadonlyArray<Ignored.Rules>
): Effect.Effect<ReadonlyArray<Ignored.Rules>> =>
  Snapshot.take(held, ".gitignore", "read").pipe(
    Effect.flatMap(({ bytes }) => FileText.decode(bytes)),
    Effect.map(({ text }) => {
      const room = above.reduce((left, { weight }) => left - weight, Ignored.maxWeight)
      return [Ignored.parse(path, text, room)]
    }),
    Effect.orElseSucceed(() => [])
  )
