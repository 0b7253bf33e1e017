/**
 * Does what `Folder` promises, and tells what failed in words about the path that was asked for.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { realpath } from "node:fs/promises"
import { resolve } from "node:path"
import { attempt, Fault } from "./Fault.ts"
import {
  AlreadyExists,
  type BadPattern,
  type ChangedMeanwhile,
  type FileError,
  FileNotFound,
  FileUnavailable,
  FolderUnavailable,
  NotText,
  OutsideFolder
} from "./FileError.ts"
import * as FileOperations from "./FileOperations.ts"
import * as Glob from "./Glob.ts"
import type { Hold } from "./Held.ts"
import * as HeldByDescriptor from "./HeldByDescriptor.ts"
import * as HeldByPath from "./HeldByPath.ts"
import * as Listing from "./Listing.ts"

export interface ListOptions {
  /** Only files whose path it matches; one without a slash is about names in every folder. At most 200 characters. */
  readonly glob?: string
  /** A whole number from 1, else `FileUnavailable`. Default and maximum 10,000 files. */
  readonly limit?: number
}

export interface Confined {
  /** The real path of the folder. */
  readonly root: string
  /** The path relative to the folder, with forward slashes, as its text says; links are not looked at. */
  readonly locate: (path: string) => Effect.Effect<string, OutsideFolder>
  /** The files in it. Bounded by 10 s, 100,000 entries and 32 levels: `truncated` says that there are more. */
  readonly list: (options?: ListOptions) => Effect.Effect<Listing.Listed, FileError | BadPattern>
  /** The text of a file, without a byte order mark. */
  readonly read: (path: string) => Effect.Effect<string, FileError>
  /** Writes a new file; makes the folders that it lies in. */
  readonly create: (path: string, text: string) => Effect.Effect<void, FileError | AlreadyExists>
  /**
   * Replaces the text of a file by what `change` makes of it. Changes wait for each other, so `change` must not change
   * files itself. An equal text is not written.
   */
  readonly update: <E, R>(
    path: string,
    change: (text: string) => Effect.Effect<string, E, R>
  ) => Effect.Effect<FileOperations.Updated, FileError | ChangedMeanwhile | E, R>
}

const maxFiles = 10_000

/** Confines to a folder. `hold` is for tests: how folders are held, by default the best that the system can. */
export const make = Effect.fnUntraced(function* (
  folder: string,
  hold?: Hold
): Effect.fn.Return<Confined, FolderUnavailable, Scope.Scope> {
  const unavailable = ({ message }: Fault) =>
    new FolderUnavailable({ path: folder, message: `the folder ${folder} cannot be used: ${message}` })
  const root = yield* Effect.mapError(
    attempt(() => realpath(folder)),
    unavailable
  )
  const held = yield* Effect.mapError((hold ?? best(HeldByDescriptor.hold))(root), unavailable)
  const place = { roots: [root, resolve(folder)], windows: process.platform === "win32" }
  return operations({ root, held, place }, yield* Semaphore.make(1))
})

/** By descriptor, or by path where that cannot be; on Linux that is worth a word, since it promises less. */
export const best =
  (precise: Hold): Hold =>
  (root) =>
    Effect.catch(precise(root), () =>
      Effect.tap(HeldByPath.hold(root), process.platform === "linux" ? warned : Effect.void)
    )

const warned = Effect.logWarning(
  "The folder of the file tools is held by its path: /proc/self/fd cannot be used here. Processes that swap folders " +
    "for links while tools work could make them read what lies outside (README of @waystone/tools)"
)

const operations = (site: FileOperations.Site, one: Semaphore.Semaphore): Confined => ({
  root: site.root,
  locate: (path) =>
    FileOperations.parse(site, path).pipe(
      Effect.map((parts) => parts.join("/")),
      Effect.mapError(({ message }) => new OutsideFolder({ path, message }))
    ),
  list: Effect.fnUntraced(function* ({ glob, limit = maxFiles } = {}) {
    if (!Number.isSafeInteger(limit) || limit < 1) return yield* badLimit
    const matches = glob === undefined ? () => true : yield* Glob.compile(glob)
    const options = { matches, limit: Math.min(limit, maxFiles) }
    return yield* Effect.mapError(Listing.list(site.held, options), told("."))
  }),
  read: (path) => Effect.mapError(FileOperations.read(site, path), told(path)),
  create: (path, text) =>
    FileOperations.create(site, path, text).pipe(
      one.withPermits(1),
      Effect.mapError((fault) => (fault.kind === "exists" ? taken(path) : told(path)(fault)))
    ),
  update: (path, change) =>
    FileOperations.update(site, path, change).pipe(
      one.withPermits(1),
      Effect.mapError((error) => (error instanceof Fault ? told(path)(error) : error))
    )
})

const badLimit = Effect.fail(
  new FileUnavailable({ path: ".", message: "the limit of a list must be a whole number from 1" })
)

const taken = (path: string): AlreadyExists => new AlreadyExists({ path, message: "it is there already" })

const told =
  (path: string) =>
  ({ kind, message }: Fault): FileError => {
    switch (kind) {
      case "outside":
        return new OutsideFolder({ path, message })
      case "missing":
        return new FileNotFound({ path, message })
      case "text":
        return new NotText({ path, message })
      default:
        return new FileUnavailable({ path, message })
    }
  }
