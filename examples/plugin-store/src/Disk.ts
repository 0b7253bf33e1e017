/** The few calls to the file system that the store is built on. What they promise is in the README. */
import { Data, Effect } from "effect"
import { constants } from "node:fs"
import * as fs from "node:fs/promises"

/** The system refused: `code` is "ENOENT" and the like. */
export class DiskError extends Data.TaggedError("DiskError")<{
  readonly code: string
  readonly message: string
  readonly cause: unknown
}> {}

const codeOf = (cause: unknown): string =>
  cause instanceof Error && "syscall" in cause && "code" in cause ? String(cause.code) : ""

/** What is thrown without a code of the system is a bug: a defect. */
const disk = <A>(work: () => Promise<A>): Effect.Effect<A, DiskError> =>
  Effect.tryPromise({
    try: work,
    catch: (cause) =>
      new DiskError({ code: codeOf(cause), message: cause instanceof Error ? cause.message : String(cause), cause })
  }).pipe(
    Effect.catchIf(
      ({ code }) => code === "",
      ({ cause }) => Effect.die(cause)
    )
  )

/** `otherwise`, where the system gives one of these codes. */
export const on =
  <const B>(codes: ReadonlyArray<string>, otherwise: () => B) =>
  <A, E, R>(effect: Effect.Effect<A, E | DiskError, R>): Effect.Effect<A | B, E | DiskError, R> =>
    Effect.catch(effect, (error) =>
      error instanceof DiskError && codes.includes(error.code) ? Effect.sync(otherwise) : Effect.fail(error)
    )

export const list = (folder: string) => disk(() => fs.readdir(folder, { withFileTypes: true }))
export const read = (file: string) => disk(() => fs.readFile(file, "utf8"))
export const makeFolder = (folder: string) => disk(() => fs.mkdir(folder, { recursive: true }))
export const changedAt = (path: string) =>
  Effect.map(
    disk(() => fs.stat(path)),
    ({ mtimeMs }) => mtimeMs
  )
export const writable = (folder: string) => disk(() => fs.access(folder, constants.R_OK | constants.W_OK))
export const link = (from: string, to: string) => disk(() => fs.link(from, to))
export const rename = (from: string, to: string) => disk(() => fs.rename(from, to))
export const removeEmpty = (folder: string) => disk(() => fs.rmdir(folder))
export const removeAll = (path: string) => disk(() => fs.rm(path, { force: true, recursive: true }))

/** A new file, on the disk with all its text when this returns. */
export const write = (file: string, text: string) =>
  disk(async () => {
    const handle = await fs.open(file, "wx")
    try {
      await handle.writeFile(text)
      await handle.sync()
    } finally {
      await handle.close()
    }
  })

/** The names in a folder are on the disk when this returns. */
export const sync = (folder: string) =>
  disk(async () => {
    const handle = await fs.open(folder, "r")
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
  })
