/**
 * Starts worker processes, from the bundle that scripts/bundle.setup.ts makes.
 */
import * as Effect from "effect/Effect"
import { type ChildProcess, spawn } from "node:child_process"
import { join } from "node:path"
import * as Job from "./Job.ts"

export interface Life {
  readonly pid: number | undefined
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly output: string
  readonly errors: string
}

/** The bundle of the worker, and what Node has compiled of it. */
export const folder = join(import.meta.dirname, "../node_modules/.cache/worker")

export const start = (job: Job.Job): ChildProcess =>
  spawn(process.execPath, [join(folder, "main.mjs"), Job.encode(job)], {
    env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: join(folder, "compiled"), PARENT: String(process.pid) },
    stdio: ["ignore", "pipe", "pipe"]
  })

/** Until the process has ended, however it does; it dies with the effect. */
export const ended = (child: ChildProcess): Effect.Effect<Life> =>
  Effect.callback<Life>((resume) => {
    let output = ""
    let errors = ""
    child.stdout?.on("data", (chunk) => (output += String(chunk)))
    child.stderr?.on("data", (chunk) => (errors += String(chunk)))
    child.once("close", (code, signal) => resume(Effect.succeed({ pid: child.pid, code, signal, output, errors })))
    return Effect.sync(() => void child.kill("SIGKILL"))
  })

export const run = (job: Job.Job): Effect.Effect<Life> => Effect.suspend(() => ended(start(job)))
