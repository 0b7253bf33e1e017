/**
 * Gives, renews and takes leases, and removes Runs.
 *
 * Time is SQLite's own (`unixepoch`): that of the machine, on which all processes of one file are (C4).
 *
 * @since 0.1.0
 */
import type { CheckpointStore } from "@waystone/core"
import type { StatementSync } from "node:sqlite"
import type { Connection } from "./Connection.ts"
import { failureOf } from "./Failure.ts"
import type { Find } from "./Find.ts"
import { entry, entryColumns, now, number } from "./Row.ts"

type Store = CheckpointStore.CheckpointStore["Service"]
type Claim = Parameters<Store["claim"]>[0]

export const make = (
  connection: Connection,
  find: Find
): Pick<Store, "head" | "claim" | "renew" | "release" | "remove"> => {
  const { db } = connection
  const head = db.prepare(`SELECT ${entryColumns}, ${now} AS now FROM runs WHERE run_id = ?`)
  const take = db.prepare(`UPDATE runs SET epoch = ?, owner = ?, until = ${now} + ? WHERE rid = ?`)
  const renew = db.prepare(`UPDATE runs SET until = ${now} + ? WHERE run_id = ? AND epoch = ? AND owner = ?`)
  const release = db.prepare("UPDATE runs SET owner = NULL WHERE run_id = ? AND epoch = ? AND owner = ?")
  const remove = removing(connection, find, head)

  const claim = ({ owner, runId, takeover, ttlMillis }: Claim): CheckpointStore.ClaimResult => {
    const held = find.run(runId)
    if (held === undefined) return { _tag: "Claimed", epoch: 1, seq: 0 }
    const { epoch, owner: previous } = held
    if (previous !== undefined && held.live && takeover !== epoch) {
      return { _tag: "Busy", epoch, owner: previous }
    }
    take.run(epoch + 1, owner, ttlMillis, held.rid)
    const taken = { _tag: "Claimed" as const, epoch: epoch + 1, seq: held.seq }
    return previous === undefined ? taken : { ...taken, previous }
  }

  return {
    head: (runId) =>
      connection.attempt(runId, () => {
        const row = head.get(runId)
        return row === undefined ? find.unknown(runId) : { ...entry(row), now: number(row, "now") }
      }),
    claim: (request) => connection.transaction(request.runId, () => claim(request)),
    renew: ({ epoch, owner, runId, ttlMillis }) =>
      connection.attempt(runId, () => renew.run(ttlMillis, runId, epoch, owner).changes === 1),
    release: ({ epoch, owner, runId }) => connection.attempt(runId, () => void release.run(runId, epoch, owner)),
    remove: (runId, expectedSeq) => connection.transaction(runId, () => remove(runId, expectedSeq))
  }
}

/** Takes away everything of a Run, in the caller's transaction. */
const removing = (
  { db }: Connection,
  find: Find,
  head: StatementSync
): ((runId: string, expectedSeq: number | "damaged") => boolean) => {
  const events = db.prepare("DELETE FROM journal WHERE rid = ?")
  const run = db.prepare("DELETE FROM runs WHERE rid = ?")
  // Rows of a Run whose row in `runs` is missing are found by its first one, unless they are another's by now.
  const eventsOf = db.prepare(
    `DELETE FROM journal WHERE rid IN (
       SELECT rid FROM runs WHERE run_id = $id UNION
       SELECT rid FROM journal WHERE run_id = $id AND rid NOT IN (SELECT rid FROM runs))`
  )
  const runOf = db.prepare("DELETE FROM runs WHERE run_id = ?")

  /** Whether `head` and `claim` can read it; an unknown Run is. */
  const isSound = (runId: string): boolean => {
    try {
      const row = head.get(runId)
      if (row !== undefined) entry(row)
      find.run(runId)
      return true
    } catch (cause) {
      if (failureOf(cause, { file: "", runId })?._tag === "CheckpointCorrupt") return false
      throw cause
    }
  }

  return (runId, expectedSeq) => {
    if (expectedSeq === "damaged") {
      if (isSound(runId)) return false
      eventsOf.run({ $id: runId })
      runOf.run(runId)
      return true
    }
    const held = find.run(runId)
    if (held === undefined || held.seq !== expectedSeq) return false
    events.run(held.rid)
    run.run(held.rid)
    return true
  }
}
