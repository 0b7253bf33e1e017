/** A CheckpointStore that keeps Runs in a folder of JSON files. */
import { CheckpointStore } from "@waystone/core"
import { Effect, Layer, Schema } from "effect"
import { randomUUID } from "node:crypto"
import { dirname, join } from "node:path"
import * as Decision from "./Decision.ts"
import * as Disk from "./Disk.ts"
import * as RunFolders from "./RunFolders.ts"

/** The folder cannot hold Runs. `detail` is what the system said. */
export class FolderUnusable extends Schema.TaggedError<FolderUnusable>()("FolderUnusable", {
  folder: Schema.String,
  detail: Schema.String
}) {
  override readonly message = `${this.folder} cannot hold Runs (${this.detail}). Give a folder of a local file system that has hard links, and that this process may write.`
}

const AnHour = 3_600_000

/** What processes left that were killed in the middle. Half written or half deleted, it never was part of a Run. */
const sweep = Effect.fnUntraced(function* (unfinished: string) {
  for (const { name } of yield* Disk.list(unfinished)) {
    const path = join(unfinished, name)
    const since = yield* Disk.changedAt(path).pipe(Disk.on(["ENOENT"], () => Infinity))
    if (/\.[0-9a-f-]{36}$/.test(name) && since < Date.now() - AnHour) yield* Disk.removeAll(path)
  }
})

/** Does all that a Run will do: make, write, link, fsync, delete. */
const prepare = Effect.fnUntraced(function* (folder: string) {
  const { runs, unfinished } = RunFolders.placeOf(folder)
  yield* Disk.makeFolder(runs)
  yield* Disk.makeFolder(unfinished)
  yield* Disk.sync(folder)
  // The name of a new folder; a parent that may not be read keeps nobody from using it.
  yield* Effect.ignore(Disk.sync(dirname(folder)))
  yield* Disk.writable(runs)
  const probe = join(unfinished, `probe.${randomUUID()}`)
  const second = join(unfinished, `probe.${randomUUID()}`)
  yield* Effect.ensuring(
    Effect.andThen(Disk.write(probe, ""), Disk.link(probe, second)),
    Effect.ignore(Effect.andThen(Disk.removeAll(probe), Disk.removeAll(second)))
  )
  yield* sweep(unfinished)
})

/** Opens the folder, or makes it. There is nothing to close: no file stays open between two operations. */
export const make = Effect.fnUntraced(function* (folder: string) {
  yield* Effect.mapError(prepare(folder), ({ message }) => new FolderUnusable({ folder, detail: message }))
  const at = RunFolders.placeOf(folder)
  const change = <Answer>(runId: string, decide: RunFolders.Decide<Answer>) => RunFolders.change(at, runId, decide)
  return CheckpointStore.CheckpointStore.of({
    append: (request) => change(request.runId, (row, now) => Decision.append(row, request, now)),
    read: (runId, range) => RunFolders.events(at, runId, range),
    head: (runId) => change(runId, (row, now) => ({ answer: row && Decision.entryOf(runId, row, now) })),
    claim: (request) => change(request.runId, (row, now) => Decision.claim(row, request, now)),
    renew: (request) =>
      change(
        request.runId,
        Decision.held(request, (row, now) => ({ ...row, until: now + request.ttlMillis }))
      ),
    release: (request) => Effect.asVoid(change(request.runId, Decision.held(request, Decision.unowned))),
    list: (filter, page) =>
      Effect.map(RunFolders.rows(at), ({ now, rows }) => {
        const entries = rows.map((row) => Decision.entryOf(row.runId, row, now))
        return CheckpointStore.pageOf(entries, { filter, page, now })
      }),
    remove: (runId, expectedSeq) => RunFolders.remove(at, runId, expectedSeq)
  })
})

export const layer = (folder: string): Layer.Layer<CheckpointStore.CheckpointStore, FolderUnusable> =>
  Layer.effect(CheckpointStore.CheckpointStore, make(folder))
