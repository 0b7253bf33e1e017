/** Processes of fixtures, killed with SIGKILL at the latest when the scope closes. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"

/** Ends when the process has. */
export const kill = (child: ChildProcess): Effect.Effect<void> =>
  Effect.promise(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exit = once(child, "exit")
    child.kill("SIGKILL")
    await exit
  })

/** Starts `test/fixtures/<name>.ts` and waits for its first word. */
export const started = (
  name: string,
  ...parameters: ReadonlyArray<string>
): Effect.Effect<ChildProcess, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const file = fileURLToPath(new URL(`../fixtures/${name}.ts`, import.meta.url))
      const child = spawn(process.execPath, ["--conditions=@waystone/source", file, ...parameters], {
        stdio: ["ignore", "pipe", "inherit"]
      })
      await once(child.stdout, "data")
      return child
    }),
    kill
  )
