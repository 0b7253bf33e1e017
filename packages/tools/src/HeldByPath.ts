/**
 * Holds folders by path and identity, where the system cannot reach files through an open folder (macOS, Windows).
 *
 * Real path and identity (device and inode) are compared again after each open and before each rename. Every look-up
 * can be raced by itself, so a file or a list of names counts only if several rounds of looking agree: whoever swaps a
 * folder for a link and back would have to hit each of them. That makes it unlikely and not impossible. A folder that is
 * swapped in the moment of a creation can make an empty file or folder appear where it leads.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { BigIntStats } from "node:fs"
import { lstat, realpath } from "node:fs/promises"
import { join } from "node:path"
import * as Entries from "./Entries.ts"
import { attempt, type Fault, refused } from "./Fault.ts"
import type { Held } from "./Held.ts"

/** A swap in a tight loop passes one round in ten (estimated from what it is swapped how long), all of them in 10,000. */
const rounds = 4

/** Holds the root, a real path. */
export const hold = (root: string): Effect.Effect<Held, Fault> => folder(root)

const folder = (path: string): Effect.Effect<Held, Fault> =>
  Effect.gen(function* () {
    const first = yield* identity(path)
    if (!first.isDirectory()) return yield* moved
    const at = (name: string) => join(path, name)
    const check = Effect.gen(function* () {
      if ((yield* attempt(() => realpath(path))) !== path) return yield* moved
      if (!equal(yield* identity(path), first)) return yield* moved
    })
    const held: Held = {
      names: Effect.fnUntraced(function* (max) {
        let names = yield* Entries.read(path, max)
        for (let round = 1; round < rounds; round++) {
          yield* check
          const again = new Set(yield* Entries.read(path, max))
          names = names.filter((name) => again.has(name))
        }
        yield* check
        return names
      }),
      at,
      child: (name) => folder(at(name)),
      check,
      confirm: Effect.fnUntraced(function* (file, name) {
        const is = yield* attempt(() => file.stat({ bigint: true }))
        for (let round = 0; round < rounds; round++) {
          yield* check
          if (!equal(yield* identity(at(name)), is)) return yield* moved
        }
        yield* check
      }),
      // A folder cannot be opened on every system, so it is not synced.
      sync: Effect.void
    }
    yield* check
    return held
  })

const identity = (path: string): Effect.Effect<BigIntStats, Fault> => attempt(() => lstat(path, { bigint: true }))

const equal = (a: BigIntStats, b: BigIntStats): boolean => a.dev === b.dev && a.ino === b.ino

const moved = Effect.fail(refused("outside", "a part of the path is a link, or changed while it was opened"))
