/**
 * The folder that the tools work in, and the only way from a path that a model wrote to a file.
 *
 * Invariants
 *   W1  What `locate` gives is a real path (no symbolic link in it) inside of the real folder.
 *   W2  Symbolic links are never followed when listing.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as ProjectPath from "./ProjectPath.ts"
import { type FileError, FileUnavailable, OutsideProject } from "./ToolErrors.ts"

/** Larger files are no source code. In bytes. */
const maxFile = 1_000_000
const skipped = new Set(["node_modules", ".git"])

export class Workspace extends Context.Service<
  Workspace,
  {
    /** The real path of the folder. */
    readonly root: string
    /** The paths of all files, relative to the folder, with forward slashes, sorted. */
    readonly list: Effect.Effect<ReadonlyArray<string>, PlatformError>
    /** The text of a file. */
    readonly read: (path: string) => Effect.Effect<string, FileError>
    /** Writes a file that exists. */
    readonly write: (path: string, text: string) => Effect.Effect<void, FileError>
  }
>()("demo/Workspace") {
  /** A temporary copy of a folder; it is removed with the layer. */
  static readonly copyOf = (folder: string): Layer.Layer<Workspace, PlatformError, FileSystem.FileSystem | Path.Path> =>
    Layer.effect(Workspace, Effect.flatMap(copied(folder), make))
}

const copied = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const temporary = yield* fs.makeTempDirectoryScoped({ prefix: "waystone-demo-" })
  const copy = paths.join(temporary, paths.basename(folder))
  yield* fs.copy(folder, copy)
  return copy
})

const make = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const root = yield* fs.realPath(folder)

  const locate = Effect.fnUntraced(function* (path: string): Effect.fn.Return<string, FileError> {
    const refused = ProjectPath.refusal(path)
    if (refused !== undefined) return yield* new OutsideProject({ path, message: refused })
    const real = yield* Effect.mapError(fs.realPath(paths.join(root, path)), unavailable(path))
    if (!real.startsWith(root + paths.sep)) {
      return yield* new OutsideProject({ path, message: "the path leads out of the project folder" })
    }
    const info = yield* Effect.mapError(fs.stat(real), unavailable(path))
    if (info.type !== "File") return yield* new FileUnavailable({ path, message: "not a file" })
    if (info.size > maxFile) return yield* new FileUnavailable({ path, message: `larger than ${maxFile} bytes` })
    return real
  })

  const within = (folder: string): Effect.Effect<ReadonlyArray<string>, PlatformError> =>
    Effect.gen(function* () {
      const found: Array<string> = []
      for (const { name, type } of yield* fs.readDirectoryEntries(paths.join(root, folder))) {
        const path = folder === "" ? name : `${folder}/${name}`
        if (type === "Directory" && !skipped.has(name)) found.push(...(yield* within(path)))
        if (type === "File") found.push(path)
      }
      return found
    })

  return Workspace.of({
    root,
    list: Effect.map(within(""), (found) => found.toSorted()),
    read: (path) => Effect.flatMap(locate(path), (real) => Effect.mapError(fs.readFileString(real), unavailable(path))),
    write: (path, text) =>
      Effect.flatMap(locate(path), (real) => Effect.mapError(fs.writeFileString(real, text), unavailable(path)))
  })
})

/** Without the system's own words: they name real paths. */
const unavailable =
  (path: string) =>
  ({ reason }: PlatformError): FileUnavailable =>
    new FileUnavailable({ path, message: reason._tag === "NotFound" ? "no such file" : reason._tag })
