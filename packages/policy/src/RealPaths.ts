/**
 * Finds out where the paths in a call's arguments really lead, for rules that are about places.
 *
 * Invariants
 *   P1  Links are followed; what does not exist yet lies where its deepest existing folder really is.
 *   P2  A path that cannot be looked up for any other reason, or is a link that leads nowhere, has no place: the rule
 *       fails, and a rule that fails denies.
 *   P3  Where `..` follows a link, both readings count, that of the kernel and that of a program that strips `..` first.
 *
 * A look-up is true when it is made. A tool that must not be raced confines itself (`Folder` of `@waystone/tools`).
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { FileSystem } from "effect/FileSystem"
import type { Path } from "effect/Path"

/** A place: the real absolute path. Two where `..` after a link can be read in two ways. */
export type Places = ReadonlyArray<string>

export interface RealPaths {
  /** Undefined if it has no place. Relative paths are relative to `root`. */
  readonly lookup: (path: string) => Effect.Effect<Places | undefined>
}

/** Follows links from a root, which is itself a real path. */
export const make = (fs: FileSystem, path: Path, root: string): RealPaths => {
  /** Below a real folder, part after part: `realPath` itself may strip `..` before it looks at links. */
  const real = Effect.fnUntraced(function* (
    start: string,
    parts: ReadonlyArray<string>
  ): Effect.fn.Return<string | undefined> {
    let place = start
    for (const [index, part] of parts.entries()) {
      if (part === "" || part === ".") continue
      if (part === "..") {
        place = path.dirname(place)
        continue
      }
      const next = path.join(place, part)
      const found = yield* Effect.result(fs.realPath(next))
      if (found._tag === "Success") {
        place = found.success
        continue
      }
      if (found.failure.reason._tag !== "NotFound") return undefined
      // What is there and yet has no real path is a link that leads nowhere.
      if ((yield* Effect.result(fs.readLink(next)))._tag === "Success") return undefined
      const missing = parts.slice(index)
      return missing.includes("..") ? undefined : path.join(place, ...missing)
    }
    return place
  })
  return {
    lookup: Effect.fnUntraced(function* (given): Effect.fn.Return<Places | undefined> {
      if (given === "" || given.includes("\0")) return undefined
      const raw = path.isAbsolute(given) ? given : `${root}${path.sep}${given}`
      const places = new Set<string>()
      for (const reading of new Set([raw, path.normalize(raw)])) {
        const start = path.parse(reading).root
        const place = yield* real(start, reading.slice(start.length).split(separators(path)))
        if (place === undefined) return undefined
        places.add(place)
      }
      return [...places]
    })
  }
}

const separators = (path: Path): RegExp => (path.sep === "/" ? /\// : /[\\/]/)

/** True if a place is a folder or lies below it; both are real absolute paths. */
export const isInside = (path: Path, folder: string, place: string): boolean =>
  place === folder || place.startsWith(folder.endsWith(path.sep) ? folder : folder + path.sep)
