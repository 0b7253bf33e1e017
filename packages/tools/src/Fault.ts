/**
 * Runs one operation of the file system and says in our own words why it failed.
 *
 * The words of the system name real paths, so only its code is read. What failed where is added by `Folder`.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { type FileHandle, open } from "node:fs/promises"

/** What went wrong, without the path that was asked for. */
export class Fault extends Schema.TaggedError<Fault>()("Fault", {
  kind: Schema.Literals(["outside", "missing", "exists", "unavailable", "text"]),
  message: Schema.String,
  /** The system's code, such as `ENOENT`; empty for a refusal of ours. */
  code: Schema.String
}) {}

export const refused = (kind: Fault["kind"], message: string): Fault => new Fault({ kind, message, code: "" })

/** Where a folder was a moment ago there is none, or a link. */
const notFolder = "a part of the path is not a folder, or it changed while it was opened"

const words: { readonly [code: string]: string } = {
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "the file system is read-only",
  EISDIR: "it is a folder",
  ENOTDIR: notFolder,
  ELOOP: notFolder,
  ENAMETOOLONG: "the name is too long",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  EMFILE: "too many files are open",
  ENFILE: "too many files are open",
  EBUSY: "it is in use",
  ETXTBSY: "it is a program that runs",
  ENXIO: "it is no regular file"
}

const faultOf = (error: unknown): Fault => {
  const code = Predicate.hasProperty(error, "code") && typeof error.code === "string" ? error.code : ""
  if (code === "ENOENT") return new Fault({ kind: "missing", message: "there is no such file", code })
  if (code === "EEXIST") return new Fault({ kind: "exists", message: "there is such a file", code })
  return new Fault({
    kind: "unavailable",
    message: words[code] ?? `the system refused it (${code || "no code"})`,
    code
  })
}

/** One operation. It cannot be taken back once it has begun, so an interruption waits for its end. */
export const attempt = <A>(operation: () => Promise<A>): Effect.Effect<A, Fault> =>
  Effect.uninterruptible(Effect.tryPromise({ try: operation, catch: faultOf }))

/** An open file or folder, closed with the scope. */
export const opened = (path: string, flags: number, mode?: number): Effect.Effect<FileHandle, Fault, Scope.Scope> =>
  Effect.acquireRelease(
    attempt(() => open(path, flags, mode)),
    // What was written is synced before; an error here says nothing about it.
    (handle) => Effect.ignore(attempt(() => handle.close()))
  )
