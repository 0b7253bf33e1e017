/** Real processes that share a file with the test: `child` starts one, `ask` sends it a word and waits for its answer. */
import { type ChildProcess, fork } from "node:child_process"
import { join } from "node:path"
import type { CheckpointStoreSuite } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Job } from "../child.ts"

export interface Child {
  readonly process: ChildProcess
  /** Its next answer to this. */
  readonly ask: <Said = Answer>(word: string | CheckpointStoreSuite.Order) => Effect.Effect<Said>
}

export interface Answer {
  readonly [field: string]: unknown
}

/** `../child.ts`, as scripts/bundle.setup.ts bundles it. */
const program = join(import.meta.dirname, "../../node_modules/.cache/child/child.mjs")

/** A process that has loaded everything and waits; it is killed with the scope. */
export const child = (
  job: Job,
  args: ReadonlyArray<string>,
  { unprivileged = false }: { readonly unprivileged?: boolean } = {}
): Effect.Effect<Child, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() =>
      fork(program, [job, ...args], {
        execArgv: ["--no-warnings"],
        // Only root can and must become somebody else: it may read and write everything.
        ...(unprivileged && process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined)
      })
    ),
    (started) => Effect.sync(() => started.kill("SIGKILL"))
  ).pipe(
    Effect.tap((started) => heard(started)),
    Effect.map((started) => ({
      process: started,
      ask: <Said>(word: string | CheckpointStoreSuite.Order) =>
        Effect.andThen(
          Effect.sync(() => started.send(word)),
          heard<Said>(started)
        )
    }))
  )

/** A process that obeys the orders of the store suite. */
export const peer = (file: string): Effect.Effect<CheckpointStoreSuite.Peer, never, Scope.Scope> =>
  Effect.map(child("obey", [file]), ({ ask, process }) => ({
    ask: (order) => ask<CheckpointStoreSuite.Answer>(order),
    kill: Effect.callback((resume) => {
      process.once("exit", () => resume(Effect.void))
      process.kill("SIGKILL")
    })
  }))

/** The next message of a process; dies if it ends first. */
const heard = <Said = Answer>(started: ChildProcess): Effect.Effect<Said> =>
  Effect.callback((resume) => {
    const onMessage = (answer: Said) => {
      started.off("exit", onExit)
      resume(Effect.succeed(answer))
    }
    const onExit = (code: number | null, signal: string | null) => {
      started.off("message", onMessage)
      resume(Effect.die(new Error(`the process ended with ${signal ?? code}`)))
    }
    started.once("message", onMessage)
    started.once("exit", onExit)
  })
