/** A file of its own for each measurement: the store, the raw driver with the same statements, and bytes. */
import { SqliteStore } from "@waystone/checkpoint-sqlite"
import type { CheckpointStore } from "@waystone/core"
import * as Effect from "effect/Effect"
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs"
import os from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import type { Figures } from "../rounds.ts"

export type Durability = "process" | "power-loss"

export const store = (file: string, durability: Durability) => SqliteStore.make({ file, durability })

const io = "/proc/self/io"

/** Bytes passed to write calls so far: WAL and write-back. Linux only. */
const written = (): number => Number(/wchar: (\d+)/.exec(readFileSync(io, "utf8"))?.[1])

/** The figures of `work` and bytes per step; kept is the closed file. */
export const measured = async (
  durability: Durability,
  steps: number,
  work: (file: string) => Promise<Figures>
): Promise<Figures> => {
  const folder = mkdtempSync(join(os.tmpdir(), "waystone-bench-"))
  const file = join(folder, "runs.db")
  try {
    await Effect.runPromise(Effect.scoped(store(file, durability)))
    const before = existsSync(io) ? written() : undefined
    const figures = await work(file)
    return {
      ...figures,
      keptKbPerStep: statSync(file).size / 1024 / steps,
      ...(before === undefined ? undefined : { writtenKbPerStep: (written() - before) / 1024 / steps })
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The statements of the store without the store: no Effect, no types, no checks of what comes back. */
export const withDriver = async (
  file: string,
  durability: Durability,
  work: (append: (one: CheckpointStore.Append) => void) => Promise<Figures>
): Promise<Figures> => {
  const db = new DatabaseSync(file)
  db.exec(`PRAGMA synchronous = ${durability === "process" ? "NORMAL" : "FULL"}`)
  const begin = db.prepare("BEGIN IMMEDIATE")
  const commit = db.prepare("COMMIT")
  const find = db.prepare("SELECT rid, seq, epoch FROM runs WHERE run_id = ?")
  const create = db.prepare(
    "INSERT INTO runs (run_id, seq, epoch, until, status, agent, waiting, updated_at, head) VALUES (?, 0, ?, 0, 'running', 'a', '[]', 0, '')"
  )
  const add = db.prepare("INSERT INTO journal (rid, seq, epoch, body) VALUES (?, ?, ?, ?)")
  const touch = db.prepare("UPDATE runs SET seq = ?, updated_at = ?, head = ? WHERE rid = ?")
  try {
    return await work(({ epoch, events, head, runId }) => {
      begin.run()
      if (find.get(runId) === undefined) create.run(runId, epoch)
      const run = find.get(runId)
      const rid = Number(run?.["rid"])
      const seq = Number(run?.["seq"]) + events.length
      add.run(rid, seq, epoch, events.join("\n"))
      touch.run(seq, head.updatedAt, head.body, rid)
      commit.run()
    })
  } finally {
    db.close()
  }
}
