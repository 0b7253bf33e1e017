/**
 * Measures how long a new process needs from its start to the next model call of a Run whose process was killed.
 *
 * It runs as an application would: the built packages, and JavaScript, since stripping types takes Node 45 ms.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { stripTypeScriptTypes } from "node:module"
import os from "node:os"
import { dirname, join } from "node:path"
import { createInterface } from "node:readline"
import type { Figures } from "./rounds.ts"

const main = "resume-child"
const sources = [main, "script", "subjects/agent", "subjects/model"]

/** Writes the application without types, where it finds the same packages. */
const build = (): string => {
  const folder = mkdtempSync(join(import.meta.dirname, "node_modules", ".resume-"))
  for (const name of sources) {
    const source = readFileSync(join(import.meta.dirname, `${name}.ts`), "utf8")
    const target = join(folder, `${name}.mjs`)
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(target, stripTypeScriptTypes(source).replaceAll(/(from "\.[^"]*)\.ts"/g, '$1.mjs"'))
  }
  return folder
}

/** Reads and parses all events with the raw driver: what no resume can do without. */
const raw = `
import { DatabaseSync } from "node:sqlite"
const rows = new DatabaseSync(process.argv[1]).prepare("SELECT body FROM journal ORDER BY seq").all()
let events = 0
for (const { body } of rows) for (const line of body.split("\\n")) if (JSON.parse('{"v":1,"_tag":"' + line)) events++
const { system, user } = process.cpuUsage()
const at = performance.timeOrigin + performance.now()
console.log(JSON.stringify({ at, cpuMs: (system + user) / 1000, events }))`

const now = (): number => performance.timeOrigin + performance.now()

/** Starts a process, waits for the one line that it prints, and kills it. */
const untilKilled = async (args: ReadonlyArray<string>): Promise<Figures> => {
  const start = now()
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] })
  const exited = once(child, "exit")
  for await (const line of createInterface({ input: child.stdout })) {
    child.kill("SIGKILL")
    await exited
    const { at, cpuMs }: { readonly at: number; readonly cpuMs: number } = JSON.parse(line)
    return { ms: at - start, cpuMs }
  }
  throw new Error(`${args.join(" ")} ended without a model call`)
}

/** A place for killed Runs of some lengths; each resume gets a copy, since it changes the file. */
export const prepare = () => {
  const application = build()
  const folder = mkdtempSync(join(os.tmpdir(), "waystone-bench-"))
  const killed = new Map<number, Promise<string>>()
  const app = (file: string, calls: number) => untilKilled([join(application, `${main}.mjs`), file, String(calls)])
  const kill = async (steps: number): Promise<string> => {
    const name = join(folder, String(steps))
    mkdirSync(name)
    await app(join(name, "runs.db"), steps)
    return name
  }
  const copied = async (steps: number, use: (file: string) => Promise<Figures>): Promise<Figures> => {
    const from = killed.get(steps) ?? kill(steps)
    killed.set(steps, from)
    const copy = join(folder, "copy")
    cpSync(await from, copy, { recursive: true })
    const figures = await use(join(copy, "runs.db"))
    rmSync(copy, { recursive: true })
    return figures
  }
  return {
    resume: (steps: number) => copied(steps, (file) => app(file, 0)),
    raw: (steps: number) => copied(steps, (file) => untilKilled(["--input-type=module", "--eval", raw, file])),
    remove: () => {
      for (const one of [application, folder]) rmSync(one, { recursive: true, force: true })
    }
  }
}
