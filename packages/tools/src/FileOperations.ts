/**
 * Reads, creates and changes a file: from a path to its real place, through held folders, to the file.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as AtomicWrite from "./AtomicWrite.ts"
import { type Fault, refused } from "./Fault.ts"
import { ChangedMeanwhile } from "./FileError.ts"
import * as FileText from "./FileText.ts"
import * as FolderPath from "./FolderPath.ts"
import type { Held } from "./Held.ts"
import * as RealPath from "./RealPath.ts"
import * as Snapshot from "./Snapshot.ts"

/** A folder to confine to. */
export interface Site {
  /** Its real path. */
  readonly root: string
  readonly held: Held
  readonly place: FolderPath.Place
}

export interface Updated {
  readonly before: string
  readonly after: string
}

/** The parts of a path, by its text alone. */
export const parse = (site: Site, path: string): Effect.Effect<ReadonlyArray<string>, Fault> =>
  Result.match(FolderPath.parse(path, site.place), {
    onFailure: (message) => Effect.fail(refused("outside", message)),
    onSuccess: Effect.succeed
  })

export const read = Effect.fnUntraced(function* (site: Site, path: string) {
  const { folder, name } = yield* found(site, path)
  const { bytes } = yield* Snapshot.take(folder, name, "read")
  return (yield* FileText.decode(bytes)).text
}, Effect.scoped)

export const create = Effect.fnUntraced(function* (site: Site, path: string, text: string) {
  const bytes = yield* FileText.encode({ text, marked: false })
  const { missing, there } = yield* resolved(site, path)
  if (missing.some(AtomicWrite.isReserved)) return yield* reserved
  const name = missing.at(-1)
  if (name === undefined) return yield* refused("exists", "it is there")
  let folder = yield* into(site.held, there)
  for (const part of missing.slice(0, -1)) folder = yield* AtomicWrite.folder(folder, part)
  yield* AtomicWrite.create(folder, name, bytes)
}, Effect.scoped)

export const update = <E, R>(
  site: Site,
  path: string,
  change: (text: string) => Effect.Effect<string, E, R>
): Effect.Effect<Updated, Fault | ChangedMeanwhile | E, R> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { folder, name } = yield* found(site, path)
      if (AtomicWrite.isReserved(name)) return yield* reserved
      const snapshot = yield* Snapshot.take(folder, name, "write")
      const { marked, text: before } = yield* FileText.decode(snapshot.bytes)
      const after = yield* change(before)
      if (after === before) return { before, after }
      const bytes = yield* FileText.encode({ text: after, marked })
      const now = yield* Effect.result(Snapshot.take(folder, name, "write"))
      if (now._tag === "Failure" || !Snapshot.equal(snapshot, now.success)) return yield* changed(path)
      yield* AtomicWrite.replace(folder, name, { bytes, mode: snapshot.mode })
      return { before, after }
    })
  )

const resolved = (site: Site, path: string): Effect.Effect<RealPath.RealPath, Fault> =>
  Effect.flatMap(parse(site, path), (parts) => RealPath.resolve(site.root, parts))

/** The folder that holds a file which is there. */
const found = Effect.fnUntraced(function* (site: Site, path: string) {
  const { missing, there } = yield* resolved(site, path)
  if (missing.length > 0) return yield* refused("missing", "there is no such file")
  const name = there.at(-1)
  if (name === undefined) return yield* refused("unavailable", "it is a folder")
  return { folder: yield* into(site.held, there.slice(0, -1)), name }
})

/** Goes down through held folders; all of them stay held. */
const into = Effect.fnUntraced(function* (
  held: Held,
  names: ReadonlyArray<string>
): Effect.fn.Return<Held, Fault, Scope.Scope> {
  let folder = held
  for (const name of names) folder = yield* folder.child(name)
  return folder
})

const reserved = Effect.fail(refused("unavailable", "names such as .waystone-….tmp are kept for unfinished writes"))

const changed = (path: string): ChangedMeanwhile =>
  new ChangedMeanwhile({ path, message: "somebody else changed the file meanwhile; read it again" })
