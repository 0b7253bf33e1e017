/**
 * Holds on to a folder, so that its files are reached through what was checked and not through a path that may change.
 *
 * `node:fs/promises` is used, here and around, because the `open` of effect's FileSystem knows flags as words only: it
 * can say neither O_NOFOLLOW nor O_DIRECTORY.
 *
 * Invariants
 *   H1  A held folder is no symbolic link and lies in the root; so does every file that was confirmed.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { FileHandle } from "node:fs/promises"
import { sep } from "node:path"
import type { Fault } from "./Fault.ts"

export interface Held {
  /** The files and folders in it, at most `max`, in no order; names of folders end with a slash. */
  readonly names: (max: number) => Effect.Effect<ReadonlyArray<string>, Fault>
  /** A system path that names a file in it. */
  readonly at: (name: string) => string
  /** Holds a folder in it; a link is refused. */
  readonly child: (name: string) => Effect.Effect<Held, Fault, Scope.Scope>
  /** The folder lies in the root now. */
  readonly check: Effect.Effect<void, Fault>
  /** The file that was opened at `name` is that one, and lies in the root. */
  readonly confirm: (file: FileHandle, name: string) => Effect.Effect<void, Fault>
  /** Makes what was renamed in it outlast a power cut, where the file system can. */
  readonly sync: Effect.Effect<void>
}

/** Holds the root, a real path. */
export type Hold = (root: string) => Effect.Effect<Held, Fault, Scope.Scope>

/** True for the root itself and what lies in it; both are absolute. `/root-evil` does not lie in `/root`. */
export const isInside = (root: string, path: string): boolean =>
  path === root || path.startsWith(root.endsWith(sep) ? root : root + sep)
