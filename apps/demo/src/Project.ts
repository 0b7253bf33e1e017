/**
 * The folder that the agent works on: a temporary copy of the bundled project, or a folder of the user's, in place or
 * copied.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import { cp, lstat } from "node:fs/promises"
import { tmpdir } from "node:os"
import { basename } from "node:path"
import { fileURLToPath } from "node:url"
import * as Bugs from "./Bugs.ts"

/** The project that comes with the demo. */
export const bundled = fileURLToPath(new URL("../project", import.meta.url))
/** What is laid over it where a team works: a second module, with a bug of its own. */
const forTeams = fileURLToPath(new URL("../team", import.meta.url))

export type Source =
  /**
   * A temporary copy, which is removed when its Run has ended; `bug` takes the place of the one that it comes with, and
   * for a `team` it has a second one, in another file.
   */
  | { readonly _tag: "Bundled"; readonly bug?: Bugs.Bug; readonly team?: true }
  | { readonly _tag: "InPlace"; readonly folder: string }
  /** A copy that is kept, so that the work can be looked at. */
  | { readonly _tag: "Copy"; readonly folder: string }

  /** It was there once, and nothing can be done in it. */
  | { readonly _tag: "Gone"; readonly folder: string }

/** What a new Run may work on. */
export type Begun = Exclude<Source, { readonly _tag: "Gone" }>

/** The folder cannot be worked on. */
export class ProjectUnusable extends Schema.TaggedError<ProjectUnusable>()("ProjectUnusable", {
  message: Schema.String
}) {}

export class Project extends Context.Service<
  Project,
  {
    readonly source: Source
    /** Its real path. */
    readonly folder: string
    /** The folder as it was before the Run, if somebody kept it. */
    readonly original?: string
    /** Whether the temporary copy stays for another process, or is removed with the scope. A copy that was there before stays. */
    readonly keep: (kept: boolean) => Effect.Effect<void>
  }
>()("demo/Project") {
  /** What a new Run works on. */
  static readonly layer = (source: Begun, runId: string): Layer.Layer<Project, ProjectError, Files> =>
    Layer.effect(Project, source._tag === "Bundled" ? scratch(source, runId) : placed(source))

  /** What a Run worked on that can only come to an end. */
  static readonly gone = (folder: string): Layer.Layer<Project> =>
    Layer.succeed(Project, { source: { _tag: "Gone", folder }, folder, keep: () => Effect.void })

  /** What the Run worked on before. */
  static readonly again = (folder: string, runId: string): Layer.Layer<Project, ProjectError, Files> =>
    Layer.effect(
      Project,
      Effect.gen(function* () {
        const base = yield* baseOf(folder, runId)
        return base === undefined
          ? yield* placed({ _tag: "InPlace", folder })
          : yield* temporary({ _tag: "Bundled" }, base, true)
      })
    )
}

export type ProjectError = PlatformError | ProjectUnusable

type Files = FileSystem.FileSystem | Path.Path

const placed = (source: Extract<Source, { readonly _tag: "InPlace" | "Copy" }>) =>
  Effect.map(source._tag === "InPlace" ? realFolder(source.folder) : copied(source.folder), (folder) =>
    Project.of({ source, folder, keep: () => Effect.void })
  )

/** Only temporary copies of the bundled project have this prefix, and they are the only folders that are ever removed. */
const prefix = "waystone-demo-"
/** In such a folder: what the agent works on, how it was before, and the Run that it belongs to. */
const work = "cart"
const before = "original"
const mark = "run"

const scratch = Effect.fnUntraced(function* (source: Extract<Source, { readonly _tag: "Bundled" }>, runId: string) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const base = yield* newFolder(prefix)
  const project = yield* temporary(source, base, false)
  yield* fs.writeFileString(paths.join(base, mark), runId)
  yield* fs.copy(bundled, project.original)
  if (source.team === true) yield* fs.copy(forTeams, project.original, { overwrite: true })
  if (source.bug !== undefined) yield* planted(source.bug)(project.original)
  yield* fs.copy(project.original, project.folder)
  return project
})

/** The real path of a new folder among the temporary ones. */
const newFolder = (prefix: string) =>
  FileSystem.FileSystem.use((fs) =>
    Effect.flatMap(fs.makeTempDirectory({ prefix }), (folder) => fs.realPath(folder))
  ).pipe(
    Effect.mapError(
      () =>
        new ProjectUnusable({
          message: `No folder can be made in ${tmpdir()}: TMPDIR names the place for temporary files.`
        })
    )
  )

/** The copy in `base`, which is removed with the scope unless it is kept. */
const temporary = Effect.fnUntraced(function* (source: Source, base: string, keep: boolean) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const kept = yield* Ref.make(keep)
  const remove = Effect.ignore(fs.remove(base, { recursive: true }))
  yield* Effect.addFinalizer(() => Effect.flatMap(Ref.get(kept), (kept) => (kept ? Effect.void : remove)))
  const [folder, original] = [paths.join(base, work), paths.join(base, before)]
  return { source, folder, original, keep: (now: boolean) => Ref.set(kept, now) }
})

/** The temporary folder that was made for this Run and holds `folder`; undefined if there is none. */
const baseOf = Effect.fnUntraced(function* (folder: string, runId: string) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const base = paths.dirname(folder)
  if (paths.basename(folder) !== work || !paths.basename(base).startsWith(prefix)) return undefined
  const owner = yield* Effect.option(fs.readFileString(paths.join(base, mark)))
  const above = yield* fs.realPath(tmpdir())
  return Option.contains(owner, runId) && paths.dirname(base) === above ? base : undefined
})

/**
 * A copy of the folder of a Run for a fork of it. That of the bundled project is temporary as well, and the fork's own; of
 * the user's folders it is kept. `remove` is for a fork that did not come to be.
 */
export const copyFor = Effect.fnUntraced(function* (
  fork: string,
  original: { readonly runId: string; readonly folder: string }
) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const base = yield* baseOf(original.folder, original.runId)
  if (base === undefined) {
    const folder = yield* copied(original.folder)
    return { folder, remove: Effect.ignore(fs.remove(paths.dirname(folder), { recursive: true })) }
  }
  const own = yield* newFolder(prefix)
  const remove = Effect.ignore(fs.remove(own, { recursive: true }))
  const made = Effect.andThen(
    Effect.forEach([work, before], (name) => fs.copy(paths.join(base, name), paths.join(own, name))),
    fs.writeFileString(paths.join(own, mark), fork)
  )
  yield* Effect.onError(made, () => remove)
  return { folder: paths.join(own, work), remove }
})

/** Removes the temporary copy of a Run that has ended; true if there was one. */
export const discard = Effect.fnUntraced(function* (folder: string, runId: string) {
  const fs = yield* FileSystem.FileSystem
  const base = yield* baseOf(folder, runId)
  if (base !== undefined) yield* fs.remove(base, { recursive: true })
  return base !== undefined
})

const planted = (bug: Bugs.Bug) => (folder: string) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const paths = yield* Path.Path
    const source = paths.join(folder, Bugs.file)
    yield* fs.writeFileString(source, Bugs.plant(yield* fs.readFileString(source), bug))
  })

/** Copies of the user's folders are kept. */
const copyPrefix = "waystone-copy-"

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
  const base = yield* newFolder(copyPrefix)
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

/** True if the folder of a Run is still there. */
export const isThere = (folder: string) =>
  FileSystem.FileSystem.use((fs) => Effect.orElseSucceed(fs.exists(folder), () => false))

/** The real path of a folder of the user's. */
const realFolder = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const absent = new ProjectUnusable({ message: `There is no folder ${folder}.` })
  const real = yield* Effect.mapError(fs.realPath(folder), () => absent)
  const { type } = yield* fs.stat(real)
  return type === "Directory" ? real : yield* new ProjectUnusable({ message: `${folder} is not a folder.` })
})
