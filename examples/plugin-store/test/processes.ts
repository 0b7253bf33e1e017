import type { CheckpointStoreSuite } from "@waystone/core/testing"
import { Effect } from "effect"
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"

/** A process that is killed with its scope. */
export const started = (file: string, args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.sync(() => fork(new URL(file, import.meta.url), args)),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )

export const killed = (child: ChildProcess) =>
  Effect.promise(async () => {
    const gone = once(child, "exit")
    child.kill("SIGKILL")
    await gone
  })

const asked = async (child: ChildProcess, order: CheckpointStoreSuite.Order): Promise<CheckpointStoreSuite.Answer> => {
  const answer = once(child, "message")
  child.send(order)
  return (await answer)[0]
}

/** The suite's other process. */
export const peer = (folder: string) =>
  Effect.gen(function* () {
    const child = yield* started("peer.ts", [folder])
    yield* Effect.promise(() => once(child, "message"))
    return {
      ask: (order: CheckpointStoreSuite.Order) => Effect.promise(() => asked(child, order)),
      kill: killed(child)
    }
  })
