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
import { cp } from "node:fs/promises"
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

export class Project extends Context.Service<Project, { readonly source: Source; readonly folder: string }>()(
  "demo/Project"
) {
  static readonly layer = (source: Source): Layer.Layer<Project, PlatformError, FileSystem.FileSystem | Path.Path> =>
    Layer.effect(
      Project,
      Effect.map(placed(source), (folder) => ({ source, folder }))
    )
}

type Files = FileSystem.FileSystem | Path.Path

const placed = (source: Source): Effect.Effect<string, PlatformError, Files | Scope.Scope> => {
  switch (source._tag) {
    case "InPlace":
      return FileSystem.FileSystem.use((fs) => fs.realPath(source.folder))
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
  const from = yield* fs.realPath(folder)
  const to = paths.join(yield* fs.makeTempDirectory({ prefix }), paths.basename(from))
  const wanted = (path: string): boolean => !left.has(paths.basename(path)) || path === from
  // effect's copy takes no filter.
  yield* Effect.promise(() => cp(from, to, { recursive: true, verbatimSymlinks: true, filter: wanted }))
  const packages = paths.join(from, "node_modules")
  if (yield* fs.exists(packages)) yield* fs.symlink(packages, paths.join(to, "node_modules"))
  return to
})

const left = new Set(["node_modules", ".git"])
