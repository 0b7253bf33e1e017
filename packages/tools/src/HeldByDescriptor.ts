/**
 * Holds folders by their file descriptors, on Linux: the kernel then says where they are, and reaches files through them.
 *
 * `/proc/self/fd/<n>/<name>` is what `openat(n, name)` is elsewhere: whatever becomes of the path meanwhile, it stays in
 * the folder that was opened. Nothing else in Node can do that.
 *
 * Invariants
 *   H1  see `Held`; no window is left between the check and the use.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { constants } from "node:fs"
import { type FileHandle, readlink } from "node:fs/promises"
import * as Entries from "./Entries.ts"
import { attempt, type Fault, opened, refused } from "./Fault.ts"
import { type Held, isInside } from "./Held.ts"

const descriptor = ({ fd }: FileHandle): string => `/proc/self/fd/${fd}`

/** Holds the root by a descriptor; fails where there is no /proc. */
export const hold = (root: string): Effect.Effect<Held, Fault, Scope.Scope> => folder(root, root)

const folder = (root: string, path: string): Effect.Effect<Held, Fault, Scope.Scope> =>
  Effect.gen(function* () {
    const handle = yield* opened(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
    const self = descriptor(handle)
    const at = (name: string) => `${self}/${name}`
    const held: Held = {
      names: (max) => Entries.read(self, max),
      at,
      child: (name) => folder(root, at(name)),
      check: stays(root, handle),
      confirm: (file) => stays(root, file),
      // Some file systems cannot; the rename has happened all the same.
      sync: Effect.ignore(attempt(() => handle.sync()))
    }
    yield* held.check
    return held
  })

const stays = (root: string, handle: FileHandle): Effect.Effect<void, Fault> =>
  Effect.flatMap(
    attempt(() => readlink(descriptor(handle))),
    (where) =>
      isInside(root, where) ? Effect.void : Effect.fail(refused("outside", "the path leads out of the folder"))
  )
