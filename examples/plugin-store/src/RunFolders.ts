/**
 * Runs as folders of numbered files: the atomic step that the contract is built on.
 *
 *   runs/<name of the run id>/<life>/000001.json    one file a change, never changed again; the last is the Run as it is
 *   unfinished/<name>.<uuid>                        what is being written, and what is being deleted
 *
 * Compare-and-set is done by the file system. The change after number 6 is number 7: it is written and fsynced aside and
 * then linked, and a link fails if the name is taken. Whoever loses reads again and decides again. A Run begins as a whole
 * folder that is renamed into place, which fails if one with files is there. Each begins a new `life`, a uuid: a writer
 * that slept while its Run was removed and started anew holds a path that is no more.
 */
import { CheckpointStore, RunError } from "@waystone/core"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { join } from "node:path"
import type { Decision, Row } from "./Decision.ts"
import * as Disk from "./Disk.ts"
import { type Change, fileOf, idOf, type Kept, nameOf, parse, print, versionOf } from "./Format.ts"

type Store = CheckpointStore.CheckpointStore["Service"]

/** The last change of a Run, and where it is. */
interface Last {
  /** The folder of this life. */
  readonly life: string
  readonly version: number
  readonly kept: Kept
}

/** What is to be written; `now` is the store's clock. Called again if somebody else came first. */
export type Decide<Answer> = (row: Row | undefined, now: number) => Decision<Answer>

/** The life ended while it was read: look again. */
const Gone = "gone" as const

const corrupt = (runId: string, path: string, seq = 0) =>
  Effect.fail(new RunError.CheckpointCorrupt({ runId, seq, path }))

/** What the system refuses may pass: that is no damage. */
const refused = <A, E>(effect: Effect.Effect<A, E | Disk.DiskError>) =>
  Effect.mapError(effect, (error) =>
    error instanceof Disk.DiskError ? new RunError.StoreUnavailable({ detail: error.message }) : error
  )

/** Several steps that belong together: the caller's interruption waits for their end. */
const whole = <A, E>(effect: Effect.Effect<A, E | Disk.DiskError>) => Effect.uninterruptible(refused(effect))

/** Where a store is. */
export interface Place {
  readonly runs: string
  readonly unfinished: string
}

export const placeOf = (root: string): Place => ({ runs: join(root, "runs"), unfinished: join(root, "unfinished") })

const folderOf = (at: Place, runId: string) => join(at.runs, nameOf(runId))
const aside = (at: Place, runId: string) => join(at.unfinished, `${nameOf(runId)}.${randomUUID()}`)

/** The folder of the present life. A Run that is not there is unknown; a folder `runs` that is not there is an error. */
const lifeOf = Effect.fnUntraced(function* (at: Place, runId: string) {
  const names = yield* Disk.list(folderOf(at, runId)).pipe(Disk.on(["ENOENT"], () => undefined))
  if (names === undefined) return yield* Effect.as(Disk.changedAt(at.runs), undefined)
  const [life, more] = names.filter((entry) => entry.isDirectory())
  if (more !== undefined) return yield* corrupt(runId, "more than one folder")
  if (life !== undefined) return join(folderOf(at, runId), life.name)
  if (names.length > 0) return yield* corrupt(runId, "a folder with nothing of a Run")
  return yield* Disk.removeEmpty(folderOf(at, runId)).pipe(Disk.on(["ENOENT", "ENOTEMPTY", "EEXIST"], () => undefined))
})

const changeAt = Effect.fnUntraced(function* (runId: string, life: string, version: number) {
  const file = fileOf(version)
  const text = yield* Disk.read(join(life, file)).pipe(Disk.on(["ENOENT", "EISDIR"], () => undefined))
  if (text === undefined) {
    const there = yield* Effect.as(Disk.list(life), true).pipe(Disk.on(["ENOENT"], () => false))
    return there ? yield* corrupt(runId, `${file} is missing`) : Gone
  }
  const change = yield* Effect.catch(parse(text), () => corrupt(runId, file))
  return change.runId === runId ? change : yield* corrupt(runId, `${file}: runId`)
})

/** Takes a life that is over out of its Run's folder; true if it was there. Any process may do so, several may at once. */
const bury = Effect.fnUntraced(function* (at: Place, runId: string, life: string) {
  const grave = aside(at, runId)
  yield* Disk.sync(life).pipe(Disk.on(["ENOENT"], () => undefined))
  const there = yield* Effect.as(Disk.rename(life, grave), true).pipe(Disk.on(["ENOENT"], () => false))
  yield* Disk.sync(folderOf(at, runId)).pipe(Disk.on(["ENOENT"], () => undefined))
  yield* Disk.removeEmpty(folderOf(at, runId)).pipe(Disk.on(["ENOENT", "ENOTEMPTY", "EEXIST"], () => undefined))
  yield* Disk.removeAll(grave)
  return there
})

/** Undefined for an unknown Run. */
const load = (at: Place, runId: string): Effect.Effect<Last | undefined, CheckpointStore.StoreError | Disk.DiskError> =>
  Effect.gen(function* () {
    const life = yield* lifeOf(at, runId)
    if (life === undefined) return undefined
    const files = yield* Disk.list(life).pipe(Disk.on(["ENOENT"], () => Gone))
    if (files === Gone) return yield* load(at, runId)
    const version = files.reduce((last, { name }) => Math.max(last, versionOf(name)), 0)
    if (version === 0) return yield* corrupt(runId, "a folder without files")
    const kept = yield* changeAt(runId, life, version)
    if (kept === Gone) return yield* load(at, runId)
    if (kept._tag === "Kept") return { life, version, kept }
    return yield* Effect.as(bury(at, runId, life), undefined)
  })

/** The first change of a Run. False if it is there already. */
const create = (at: Place, change: Change) => {
  const draft = aside(at, change.runId)
  const life = join(draft, randomUUID())
  return Effect.gen(function* () {
    yield* Disk.makeFolder(life)
    yield* Disk.write(join(life, fileOf(1)), print(change))
    yield* Disk.sync(life)
    yield* Disk.sync(draft)
    const done = yield* Effect.as(Disk.rename(draft, folderOf(at, change.runId)), true).pipe(
      Disk.on(["ENOTEMPTY", "EEXIST"], () => false)
    )
    if (done) yield* Disk.sync(at.runs)
    return done
  }).pipe(Effect.ensuring(Effect.ignore(Disk.removeAll(draft))))
}

/** The next change of a Run. False if somebody else made it, or the life is over. */
const follow = (at: Place, { life, version }: Last, change: Change) => {
  const draft = aside(at, change.runId)
  return Effect.gen(function* () {
    yield* Disk.write(draft, print(change))
    // Whoever created the Run may not have come so far: what is built on it must not be on the disk without it.
    if (version === 1) yield* Disk.sync(at.runs)
    const done = yield* Effect.as(Disk.link(draft, join(life, fileOf(version + 1))), true).pipe(
      Disk.on(["EEXIST", "ENOENT"], () => false)
    )
    // If it is gone, a removal came after this change, or is this change: `bury` fsyncs before it takes the folder away.
    if (done) yield* Disk.sync(life).pipe(Disk.on(["ENOENT"], () => undefined))
    return done
  }).pipe(Effect.ensuring(Effect.ignore(Disk.removeAll(draft))))
}

/** Read, decide, write what was decided if nobody came in between; else again. */
export const change = <Answer>(at: Place, runId: string, decide: Decide<Answer>) =>
  whole(
    Effect.gen(function* () {
      while (true) {
        const last = yield* load(at, runId)
        const { answer, events = [], row } = decide(last?.kept, Date.now())
        if (row === undefined) return answer
        const next: Kept = { ...row, _tag: "Kept", runId, events }
        if (yield* last === undefined ? create(at, next) : follow(at, last, next)) return answer
      }
    })
  )

/** False if it can be read or is unknown. What is taken away was there before it was found damaged: no life that began since. */
const removeDamaged = Effect.fnUntraced(function* (at: Place, runId: string) {
  const folder = folderOf(at, runId)
  while (true) {
    const parts = yield* Disk.list(folder).pipe(Disk.on(["ENOENT"], () => []))
    const sound = Effect.as(load(at, runId), true)
    if (yield* Effect.catchTag(sound, "CheckpointCorrupt", () => Effect.succeed(false))) return false
    const buried = yield* Effect.forEach(parts, ({ name }) => bury(at, runId, join(folder, name)))
    if (buried.includes(true)) return true
  }
})

const removeAt = Effect.fnUntraced(function* (at: Place, runId: string, expectedSeq: number) {
  while (true) {
    const last = yield* load(at, runId)
    if (last === undefined || last.kept.seq !== expectedSeq) return false
    if (yield* follow(at, last, { _tag: "Removed", runId })) {
      yield* bury(at, runId, last.life)
      return true
    }
  }
})

export const remove = (at: Place, runId: string, expectedSeq: number | "damaged") =>
  whole(expectedSeq === "damaged" ? removeDamaged(at, runId) : removeAt(at, runId, expectedSeq))

/** Seq never falls from one change to the next: where to begin is found by halving. */
const firstAfter = Effect.fnUntraced(function* (runId: string, { life, version }: Last, after: number) {
  let [low, high] = [1, version]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const change = yield* changeAt(runId, life, middle)
    if (change === Gone) return Gone
    if (change._tag === "Kept" && change.seq > after) high = middle
    else low = middle + 1
  }
  return low
})

const eventsOf = (
  at: Place,
  runId: string,
  range: { readonly after: number; readonly limit: number }
): Effect.Effect<ReadonlyArray<CheckpointStore.StoredEvent>, CheckpointStore.StoreError | Disk.DiskError> =>
  Effect.gen(function* () {
    const last = yield* load(at, runId)
    const wanted = Math.min(range.limit, (last?.kept.seq ?? 0) - range.after)
    if (last === undefined || wanted <= 0) return []
    const first = yield* firstAfter(runId, last, range.after)
    if (first === Gone) return yield* eventsOf(at, runId, range)
    const found: Array<CheckpointStore.StoredEvent> = []
    for (let version = first; version <= last.version && found.length < wanted; version++) {
      const change = yield* changeAt(runId, last.life, version)
      if (change === Gone) return yield* eventsOf(at, runId, range)
      if (change._tag === "Kept") found.push(...change.events.filter(({ seq }) => seq > range.after))
    }
    const gap = Array.from({ length: wanted }, (_, i) => range.after + 1 + i).find((seq, i) => found[i]?.seq !== seq)
    return gap === undefined ? found.slice(0, wanted) : yield* corrupt(runId, "not where it should be", gap)
  })

export const rows = (at: Place) =>
  refused(
    Effect.gen(function* () {
      const ids = (yield* Disk.list(at.runs)).flatMap((entry) => (entry.isDirectory() ? (idOf(entry.name) ?? []) : []))
      const damaged: Array<RunError.CheckpointCorrupt> = []
      // One damaged Run must not keep the others from being found.
      const sound = (runId: string) =>
        Effect.catchTag(load(at, runId), "CheckpointCorrupt", (error) => Effect.sync(() => void damaged.push(error)))
      const lasts = yield* Effect.forEach(ids, sound, { concurrency: 16 })
      yield* CheckpointStore.leftOut(damaged)
      return { now: Date.now(), rows: lasts.flatMap((last) => last?.kept ?? []) }
    })
  )

export const events = (at: Place, ...request: Parameters<Store["read"]>) => refused(eventsOf(at, ...request))
