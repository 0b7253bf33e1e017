/** The store of docs/write-a-store.md over one JSON file a Run, for one process at a time: its steps are synchronous. */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { CheckpointStore, RunError } from "@waystone/core"
import { Effect } from "effect"
import * as Guide from "./guide.ts"

interface Kept {
  readonly row: Guide.Row
  readonly events: ReadonlyArray<CheckpointStore.StoredEvent>
}

const over = (folder: string): Guide.Backend => {
  const fileOf = (runId: string) => join(folder, `${runId}.json`)
  /** Does it with what is kept of the Run. */
  const withKept = <A>(runId: string, work: (kept: Kept | undefined) => A) =>
    Effect.suspend(() => {
      const file = fileOf(runId)
      if (!existsSync(file)) return Effect.succeed(work(undefined))
      let kept: Kept
      try {
        kept = JSON.parse(readFileSync(file, "utf8"))
      } catch {
        return Effect.fail(new RunError.CheckpointCorrupt({ runId, seq: 0, path: file }))
      }
      return Effect.succeed(work(kept))
    })
  return {
    change: (runId, decide) =>
      withKept(runId, (kept) => {
        const { answer, events = [], row } = decide(kept?.row, Date.now())
        const next = { row, events: [...(kept?.events ?? []), ...events] }
        if (row !== undefined) writeFileSync(fileOf(runId), JSON.stringify(next))
        return answer
      }),
    events: (runId, { after, limit }) => withKept(runId, (kept) => kept?.events.slice(after, after + limit) ?? []),
    rows: Effect.suspend(() =>
      Effect.partition(readdirSync(folder), (name) => {
        const runId = name.replace(/\.json$/, "")
        return withKept(runId, (kept) => (kept === undefined ? [] : [[runId, kept.row] as const]))
      })
    ).pipe(
      Effect.tap(([, damaged]) => CheckpointStore.leftOut(damaged)),
      Effect.map(([rows]) => ({ now: Date.now(), rows: rows.flat() }))
    ),
    remove: (runId, expectedSeq) =>
      withKept(runId, (kept) => {
        if (kept?.row.seq !== expectedSeq) return false
        rmSync(fileOf(runId))
        return true
      }).pipe(
        Effect.catchTag("CheckpointCorrupt", (error) =>
          expectedSeq === "damaged"
            ? Effect.as(
                Effect.sync(() => rmSync(fileOf(runId))),
                true
              )
            : Effect.fail(error)
        )
      )
  }
}

export const make = (folder: string) => Effect.sync(() => Guide.make(over(folder)))
export const layer = (folder: string) => Guide.layer(Effect.sync(() => over(folder)))
