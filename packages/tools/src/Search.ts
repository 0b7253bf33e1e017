/**
 * Searches the files of a folder line by line.
 *
 * Invariants
 *   Q1  It is bounded: matches, length of a shown line, size of the result, time; a part of a result says so.
 *   Q2  Other fibers run meanwhile, and it can be interrupted between any two lines that take long.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Confined } from "./Confined.ts"
import { cut, sizeInJson } from "./Cut.ts"
import { maxTotal } from "./Excerpts.ts"
import type { BadPattern, FileError } from "./FileError.ts"
import * as Pattern from "./Pattern.ts"

export const maxMatches = 100
/** Of a line, around its match. In UTF-16 units. */
export const maxShown = 200
/** Longer lines are data or minified code; only their beginning is searched, and less for a large pattern. In UTF-16 units. */
export const maxLine = 5_000
/** Well within the 30 s that a tool call has. */
const maxTime = Duration.seconds(10)
/** What is searched before others have their turn, be it one line: UTF-16 units times size: 10 to 80 ms (measured). */
const share = 500_000
/** And how long at most, where the machine is slow; in ms. */
const turn = 25
/** Files that are read ahead while one is searched; they come in order all the same. */
const ahead = 8

export interface Match {
  readonly path: string
  /** From 1. */
  readonly line: number
  readonly text: string
}

export interface Options {
  /** RE2 syntax. */
  readonly pattern: string
  readonly glob?: string
  /** Default false. */
  readonly ignoreCase?: boolean
}

export interface Found {
  readonly matches: ReadonlyArray<Match>
  /** There may be more. */
  readonly truncated: boolean
}

interface Search {
  readonly pattern: Pattern.Pattern
  readonly until: number
  readonly matches: Array<Match>
  room: number
  truncated: boolean
}

/** The lines that match, in the order of files and lines. What is no text, or too large, is left out. */
export const search = Effect.fnUntraced(function* (
  folder: Pick<Confined, "list" | "read">,
  { glob, ignoreCase = false, pattern }: Options
): Effect.fn.Return<Found, FileError | BadPattern> {
  const compiled = yield* Pattern.compile(pattern, { ignoreCase })
  const until = (yield* Clock.currentTimeMillis) + Duration.toMillis(maxTime)
  const { files, truncated } = yield* folder.list(glob === undefined ? {} : { glob })
  const found: Search = { pattern: compiled, until, matches: [], room: maxTotal, truncated }
  for (let at = 0; at < files.length; at += ahead) {
    const some = files.slice(at, at + ahead)
    const texts = yield* Effect.forEach(some, (path) => Effect.result(folder.read(path)), { concurrency: ahead })
    for (const [index, text] of texts.entries()) {
      const path = some[index]
      if (path === undefined || text._tag === "Failure") continue
      if (yield* within(found, path, text.success)) return { matches: found.matches, truncated: true }
    }
  }
  return { matches: found.matches, truncated: found.truncated }
})

/** True if the search is over. */
const within = (found: Search, path: string, text: string): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const most = Math.min(maxLine, Math.floor(share / found.pattern.size))
    let number = 0
    let searched = 0
    let turnedAt = clock.currentTimeMillisUnsafe()
    for (let start = 0; start < text.length;) {
      const newline = text.indexOf("\n", start)
      const end = newline === -1 ? text.length : newline
      const line = text.slice(start, Math.min(end, start + most)).replace(/\r$/, "")
      number++
      // Something for each line, so that empty ones count too.
      searched += (line.length + 10) * found.pattern.size
      if (searched > share || clock.currentTimeMillisUnsafe() - turnedAt >= turn) {
        yield* Effect.yieldNow
        turnedAt = clock.currentTimeMillisUnsafe()
        searched = line.length * found.pattern.size
        if (turnedAt >= found.until) return true
      }
      const at = found.pattern.find(line)
      if (at !== -1 && !take(found, { path, line: number, text: around(line, at) })) return true
      start = end + 1
    }
    return (yield* Clock.currentTimeMillis) >= found.until
  })

/** False if it has no room. */
const take = (found: Search, match: Match): boolean => {
  found.room -= sizeInJson(match.path) + sizeInJson(match.text) + 40 // names and numbers of one match
  if (found.matches.length === maxMatches || found.room < 0) return false
  found.matches.push(match)
  return true
}

const around = (line: string, at: number): string => {
  if (line.length <= maxShown) return line
  const start = Math.max(0, Math.min(at - 50, line.length - maxShown))
  const first = line.charCodeAt(start)
  const from = first >= 0xdc00 && first <= 0xdfff ? start + 1 : start
  const text = cut(line.slice(from), maxShown)
  return `${from > 0 ? "…" : ""}${text}${from + text.length < line.length ? "…" : ""}`
}
