/**
 * The text of all files of the project at one moment, so that the demo can say afterwards what was changed, whoever did
 * it.
 */
import { FileDiff, type FileError, Folder } from "@waystone/tools"
import * as Effect from "effect/Effect"

/** More files than a person looks at in one diff; beyond them the demo says that it did not look. */
const maxFiles = 2_000

export interface Snapshot {
  readonly texts: ReadonlyMap<string, string>
  /** There were more files than `maxFiles`. */
  readonly truncated: boolean
}

/** A changed file; `undefined` where it did not exist. */
export interface Change {
  readonly path: string
  readonly before: string | undefined
  readonly after: string | undefined
}

/** What is no text, or too large for the tools to change, is left out. */
export const take: Effect.Effect<Snapshot, FileError.FileError | FileError.BadPattern, Folder.Folder> = Effect.gen(
  function* () {
    const { list, read } = yield* Folder.Folder
    const { files, truncated } = yield* list({ limit: maxFiles })
    const texts = new Map<string, string>()
    yield* Effect.forEach(
      files,
      (path) => Effect.map(Effect.option(read(path)), (text) => text._tag === "Some" && texts.set(path, text.value)),
      { concurrency: 8, discard: true }
    )
    const snapshot: Snapshot = { texts, truncated }
    return snapshot
  }
)

/** The same of another folder. */
export const of = (folder: string) => Effect.provide(take, Folder.layer(folder))

/** The files that differ, sorted. */
export const changes = ({ texts: before }: Snapshot, { texts: after }: Snapshot): ReadonlyArray<Change> =>
  [...new Set([...before.keys(), ...after.keys()])]
    .toSorted()
    .filter((path) => before.get(path) !== after.get(path))
    .map((path) => ({ path, before: before.get(path), after: after.get(path) }))

export const diff = ({ after, before, path }: Change): ReadonlyArray<string> =>
  FileDiff.unified(path, before, after).trimEnd().split("\n")
