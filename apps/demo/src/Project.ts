/**
 * The folder that the agent works on: a temporary copy of the bundled project, or a folder of the user's, in place or
 * copied.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import type * as Scope from "effect/Scope"
import * as Schema from "effect/Schema"
import { cp, lstat } from "node:fs/promises"
import { tmpdir } from "node:os"
import { basename } from "node:path"
import { fileURLToPath } from "node:url"
import * as Bugs from "./Bugs.ts"

/** The project that comes with the demo. */
export const bundled = fileURLToPath(new URL("../project", import.meta.url))

export type Source =
  /** A temporary copy, which is removed afterwards; `bug` takes the place of the one that it comes with. */
  | { readonly _tag: "Bundled"; readonly bug?: Bugs.Bug }
  | { readonly _tag: "InPlace"; readonly folder: string }
  /** A copy that is kept, so that the work can be looked at. */
  | { readonly _tag: "Copy"; readonly folder: string }

/** The folder cannot be worked on. */
export class ProjectUnusable extends Schema.TaggedError<ProjectUnusable>()("ProjectUnusable", {
  message: Schema.String
}) {}

export class Project extends Context.Service<Project, { readonly source: Source; readonly folder: string }>()(
  "demo/Project"
) {
  static readonly layer = (
    source: Source
  ): Layer.Layer<Project, PlatformError | ProjectUnusable, FileSystem.FileSystem | Path.Path> =>
    Layer.effect(
      Project,
      Effect.map(placed(source), (folder) => ({ source, folder }))
    )
}

type Files = FileSystem.FileSystem | Path.Path

const placed = (source: Source): Effect.Effect<string, PlatformError | ProjectUnusable, Files | Scope.Scope> => {
  switch (source._tag) {
    case "InPlace":
      return realFolder(source.folder)
    case "Copy":
      return copied(source.folder)
    case "Bundled":
      return source.bug === undefined ? scratch : Effect.tap(scratch, planted(source.bug))
  }
}

const prefix = "waystone-demo-"

const scratch = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const folder = paths.join(yield* fs.makeTempDirectoryScoped({ prefix }), "cart")
  yield* fs.copy(bundled, folder)
  return folder
})

const planted = (bug: Bugs.Bug) => (folder: string) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const paths = yield* Path.Path
    const source = paths.join(folder, Bugs.file)
    yield* fs.writeFileString(source, Bugs.plant(yield* fs.readFileString(source), bug))
  })

/** Without history; installed packages are linked, not copied: they can be huge, and tests need them. */
const copied = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const from = yield* realFolder(folder)
  const temporary = yield* fs.realPath(tmpdir())
  if (`${temporary}${paths.sep}`.startsWith(`${from}${paths.sep}`)) {
    return yield* new ProjectUnusable({
      message: `${folder} holds the folder for temporary files, so it cannot be copied there.`
    })
  }
  const base = yield* fs.makeTempDirectory({ prefix })
  const to = paths.join(base, paths.basename(from))
  const made = Effect.gen(function* () {
    // effect's copy takes no filter.
    yield* Effect.tryPromise({
      try: () => cp(from, to, { recursive: true, verbatimSymlinks: true, filter: (path) => isWanted(from, path) }),
      catch: (error) =>
        new ProjectUnusable({
          message: `${folder} cannot be copied: ${error instanceof Error ? error.message : "unknown"}`
        })
    })
    const packages = paths.join(from, "node_modules")
    if (yield* fs.exists(packages)) yield* fs.symlink(packages, paths.join(to, "node_modules"))
    return to
  })
  return yield* Effect.onError(made, () => Effect.ignore(fs.remove(base, { recursive: true })))
})

/** Neither pipes nor devices: nothing of them can be copied. */
const isWanted = async (from: string, path: string): Promise<boolean> => {
  if (path !== from && left.has(basename(path))) return false
  const info = await lstat(path)
  return info.isFile() || info.isDirectory() || info.isSymbolicLink()
}

const left = new Set(["node_modules", ".git"])

/** The real path of a folder of the user's. */
const realFolder = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const absent = new ProjectUnusable({ message: `There is no folder ${folder}.` })
  const real = yield* Effect.mapError(fs.realPath(folder), () => absent)
  const { type } = yield* fs.stat(real)
  return type === "Directory" ? real : yield* new ProjectUnusable({ message: `${folder} is not a folder.` })
})
