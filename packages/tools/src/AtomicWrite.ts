/**
 * Writes a file of a held folder whole or not at all.
 *
 * The text goes to a new file beside the old one, is synced, and takes its place. So a process that is killed leaves
 * the old or the new file (and may leave the one beside it, named `.waystone-….tmp`), and a hard link elsewhere keeps
 * the old text.
 *
 * Invariants
 *   A1  Nobody sees a part of a file.
 *   A2  Nothing is left beside it after a failure or an interruption, no folder that was made for it either.
 *   A3  `create` never replaces a file.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { randomUUID } from "node:crypto"
import { constants } from "node:fs"
import { link, mkdir, rename, rmdir, unlink } from "node:fs/promises"
import type * as Scope from "effect/Scope"
import { attempt, type Fault, opened } from "./Fault.ts"
import type { Held } from "./Held.ts"

const prefix = ".waystone-"
const suffix = ".tmp"

/** True for a file that a killed process may have left: exactly one of our own. */
export const isTemporary = (name: string): boolean =>
  isReserved(name) && uuid.test(name.slice(prefix.length, -suffix.length))

/** True for names that are ours to give: what they name may be deleted, so nobody shall put anything there. */
export const isReserved = (name: string): boolean => name.startsWith(prefix) && name.endsWith(suffix)

/** As `randomUUID` makes them. */
const uuid = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/

/** Writes a new file; fails with kind `exists` if there is one. */
export const create = (held: Held, name: string, bytes: Uint8Array): Effect.Effect<void, Fault> =>
  written(held, bytes, undefined, (temporary) =>
    attempt(() => link(held.at(temporary), held.at(name))).pipe(
      Effect.catchIf(
        ({ code }) => withoutLinks.has(code),
        () => reserved(held, temporary, name)
      )
    )
  )

/** Replaces a file, whose permission bits it keeps. */
export const replace = (
  held: Held,
  name: string,
  { bytes, mode }: { readonly bytes: Uint8Array; readonly mode: number }
): Effect.Effect<void, Fault> =>
  written(held, bytes, mode, (temporary) => attempt(() => rename(held.at(temporary), held.at(name))))

/** Holds a folder in a held one, made if it is not there. One that was made goes again if the scope ends in a failure. */
export const folder = (held: Held, name: string): Effect.Effect<Held, Fault, Scope.Scope> =>
  held.check.pipe(
    Effect.andThen(
      Effect.acquireRelease(made(held, name), (isNew, exit) =>
        isNew && Exit.isFailure(exit) ? unmade(held, name) : Effect.void
      )
    ),
    Effect.andThen(held.child(name))
  )

/** True if it was not there. */
const made = (held: Held, name: string): Effect.Effect<boolean, Fault> =>
  attempt(() => mkdir(held.at(name))).pipe(
    Effect.as(true),
    Effect.catchIf(
      ({ kind }) => kind === "exists",
      () => Effect.succeed(false)
    )
  )

/** Only an empty one goes: what somebody else put there meanwhile stays. */
const unmade = (held: Held, name: string): Effect.Effect<void> =>
  held.check.pipe(Effect.andThen(attempt(() => rmdir(held.at(name)))), Effect.ignore)

const written = (
  held: Held,
  bytes: Uint8Array,
  mode: number | undefined,
  place: (temporary: string) => Effect.Effect<void, Fault>
): Effect.Effect<void, Fault> =>
  Effect.uninterruptible(
    Effect.scoped(
      Effect.gen(function* () {
        const temporary = `${prefix}${randomUUID()}${suffix}`
        // Nobody else may read it before it has the mode of the old one.
        const file = yield* opened(held.at(temporary), flags, mode === undefined ? 0o666 : 0o600)
        yield* Effect.addFinalizer(() => Effect.ignore(attempt(() => unlink(held.at(temporary)))))
        yield* held.confirm(file, temporary)
        yield* attempt(() => file.writeFile(bytes))
        if (mode !== undefined) yield* attempt(() => file.chmod(mode))
        yield* attempt(() => file.sync())
        yield* held.check
        yield* place(temporary)
        yield* held.sync
      })
    )
  )

const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

/** What file systems without hard links answer. */
const withoutLinks = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"])

/** Takes the name first, with an empty file: there, a process that is killed in between leaves that. */
const reserved = (held: Held, temporary: string, name: string): Effect.Effect<void, Fault> =>
  Effect.scoped(opened(held.at(name), flags)).pipe(
    Effect.andThen(attempt(() => rename(held.at(temporary), held.at(name)))),
    Effect.asVoid
  )
