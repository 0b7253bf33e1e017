/**
 * Starts worker processes.
 */
import * as Effect from "effect/Effect"
import { type ChildProcess, spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import * as Job from "./Job.ts"

export interface Life {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly output: string
  readonly errors: string
}

const entry = fileURLToPath(new URL("./main.ts", import.meta.url))
/** Hundreds of workers compile the same modules. */
const compiled = fileURLToPath(new URL("../node_modules/.cache/compiled", import.meta.url))

export const start = (job: Job.Job): ChildProcess =>
  spawn(process.execPath, ["--conditions=@waystone/source", entry, Job.encode(job)], {
    env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: compiled },
    stdio: ["ignore", "pipe", "pipe"]
  })

/** Until the process has ended, however it does; it dies with the effect. */
export const ended = (child: ChildProcess): Effect.Effect<Life> =>
  Effect.callback<Life>((resume) => {
    let output = ""
    let errors = ""
    child.stdout?.on("data", (chunk) => (output += String(chunk)))
    child.stderr?.on("data", (chunk) => (errors += String(chunk)))
    child.once("close", (code, signal) => resume(Effect.succeed({ code, signal, output, errors })))
    return Effect.sync(() => void child.kill("SIGKILL"))
  })

export const run = (job: Job.Job): Effect.Effect<Life> => Effect.suspend(() => ended(start(job)))
