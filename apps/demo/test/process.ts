/**
 * The command itself, in a process of its own with folders of its own: for temporary files, and for the user's data.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach } from "vitest"
import { bundle, main } from "./paths.ts"

/** The folders of the test that runs. */
export const own = { temporary: "", home: "" }

beforeEach(() => {
  own.temporary = mkdtempSync(join(tmpdir(), "waystone-demo-test-"))
  own.home = mkdtempSync(join(tmpdir(), "waystone-demo-home-"))
})
afterEach(() => {
  rmSync(own.temporary, { recursive: true })
  rmSync(own.home, { recursive: true })
})

/** Where it keeps its Runs by default. */
export const standardFile = () => join(own.home, "data/waystone/runs.db")

const run = (program: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}): ChildProcess =>
  spawn(process.execPath, program, {
    env: {
      PATH: process.env["PATH"],
      HOME: own.home,
      XDG_DATA_HOME: join(own.home, "data"),
      TMPDIR: own.temporary,
      NODE_COMPILE_CACHE: join(bundle, "compiled"),
      ...env
    },
    stdio: ["ignore", "pipe", "pipe"]
  })

export const start = (...args: ReadonlyArray<string>) => run([join(bundle, "main.mjs"), ...args])
/** As `start`, with more variables. */
export const startWith = (env: Readonly<Record<string, string>>, ...args: ReadonlyArray<string>) =>
  run([join(bundle, "main.mjs"), ...args], env)
/** From its sources, as `npm run demo` does. */
export const startSources = (...args: ReadonlyArray<string>) => run(["--conditions=@waystone/source", main, ...args])

export const finished = async (child: ChildProcess, onOutput?: (out: string) => void) => {
  let out = ""
  let err = ""
  child.stdout?.on("data", (chunk) => {
    out += String(chunk)
    onOutput?.(out)
  })
  child.stderr?.on("data", (chunk) => (err += String(chunk)))
  await once(child, "close")
  return { code: child.exitCode, signal: child.signalCode, out, err }
}
