/**
 * Follows the links on a path, and finds out where it really leads before anything is opened.
 *
 * Its answer may be out of date at once: `Held` opens what it names without following a link, so that a change becomes
 * a refusal.
 *
 * Invariants
 *   R1  A path that leads out is refused alike whether or not something lies there; so is a link that leads nowhere.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { lstat, realpath } from "node:fs/promises"
import { join, sep } from "node:path"
import { attempt, type Fault, refused } from "./Fault.ts"
import { isInside } from "./Held.ts"

export interface RealPath {
  /** The parts that exist, free of links. */
  readonly there: ReadonlyArray<string>
  /** Those after them that do not. */
  readonly missing: ReadonlyArray<string>
}

/** Resolves parts (of `FolderPath`) below the root, a real path. */
export const resolve = Effect.fnUntraced(function* (
  root: string,
  parts: ReadonlyArray<string>
): Effect.fn.Return<RealPath, Fault> {
  for (let count = parts.length; count >= 0; count--) {
    // Whatever is wrong with a longer path may be a secret of the place that it leads to: first see where that is.
    const real = yield* Effect.result(attempt(() => realpath(join(root, ...parts.slice(0, count)))))
    if (real._tag === "Failure") continue
    if (!isInside(root, real.success)) return yield* leadsOut
    const there = real.success
      .slice(root.length)
      .split(sep)
      .filter((part) => part !== "")
    const [next, ...rest] = parts.slice(count)
    if (next === undefined) return { there, missing: [] }
    yield* absent(join(real.success, next))
    return { there, missing: [next, ...rest] }
  }
  return yield* refused("unavailable", "the folder itself is gone")
})

/** One answer for what lies outside and for what does not exist there: else it would tell which of both. */
const leadsOut = Effect.fail(refused("outside", "the path contains a link that leads out of the folder, or nowhere"))

/** What has no real path is missing, or a link without an end, or cannot be looked at. */
const absent = (path: string): Effect.Effect<void, Fault> =>
  attempt(() => lstat(path)).pipe(
    Effect.flatMap((info) =>
      info.isSymbolicLink() ? leadsOut : Effect.fail(refused("unavailable", "it cannot be opened"))
    ),
    Effect.catchIf(
      ({ kind }) => kind === "missing",
      () => Effect.void
    )
  )
