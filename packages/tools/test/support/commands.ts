/**
 * Set-up of the tests that run real commands: a folder of their own, and a check after each that no process is left.
 *
 * The check has its own way of looking: it records the marks that every command was started with.
 */
import { NodeServices } from "@effect/platform-node"
import { expect } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ChildProcessSpawner, make as makeSpawner } from "effect/process/ChildProcessSpawner"
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach } from "vitest"
import { type Command, CommandRunner, type Finished, type Options } from "../../src/CommandRunner.ts"

export const linux = process.platform === "linux"

interface Started {
  readonly pid: number
  readonly id: string
  readonly limits: ReadonlyArray<string>
}
const started: Array<Started> = []
let folder = ""

/** The folder of the test that runs. */
export const cwd = (): string => folder

/** Real processes; what they are marked with is kept. */
export const spawner: Layer.Layer<ChildProcessSpawner> = Layer.effect(
  ChildProcessSpawner,
  Effect.map(ChildProcessSpawner, ({ spawn }) =>
    makeSpawner((command) =>
      Effect.tap(spawn(command), ({ pid }) =>
        Effect.sync(() => {
          if (command._tag !== "StandardCommand") return
          const blocks = Number(command.args.find((word) => /^\d{13}$/.test(String(word))))
          const id = String(command.options.env?.["WAYSTONE_COMMANDS"]).split(":").at(-1) ?? ""
          started.push({ pid, id, limits: [String(blocks * 512), String(blocks * 1024)] })
        })
      )
    )
  )
).pipe(Layer.provide(NodeServices.layer))

const read = (pid: string, file: string): string => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "latin1")
  } catch {
    return ""
  }
}

const workingFolder = (pid: string): string => {
  try {
    return readlinkSync(`/proc/${pid}/cwd`)
  } catch {
    return ""
  }
}

/** The processes, zombies apart, that carry a mark of a command of this file, are in its group or work in the folder. */
export const marked = (): ReadonlyArray<{ readonly pid: number; readonly line: string }> =>
  readdirSync("/proc")
    .filter((pid) => /^\d+$/.test(pid) && Number(pid) !== process.pid)
    .flatMap((pid) => {
      const stat = read(pid, "stat")
        .replace(/^.*\) /s, "")
        .split(" ")
      if (stat[0] === "" || (stat[0] === "Z" && stat[17] === "1")) return []
      const limits = read(pid, "limits")
      const environ = read(pid, "environ")
      const ours = started.some(
        (one) =>
          environ.includes(one.id) ||
          Number(stat[2]) === one.pid ||
          one.limits.some((limit) => limits.includes(`Max file size             ${limit} `))
      )
      const here = folder !== "" && workingFolder(pid).startsWith(folder)
      return ours || here ? [{ pid: Number(pid), line: read(pid, "cmdline").replaceAll("\0", " ").slice(0, 200) }] : []
    })

/** Every test gets a new folder; after it nothing may be left, which is killed so that the next one can tell. */
export const watched = (): void => {
  beforeEach(() => {
    started.length = 0
    folder = mkdtempSync(join(tmpdir(), "waystone-tools-"))
  })
  afterEach(() => {
    const left = linux ? marked() : []
    for (const { pid } of left) process.kill(pid, "SIGKILL")
    rmSync(folder, { recursive: true, force: true })
    expect(left).toEqual([])
  })
}

/** Time that passes ten times as slowly, for a command whose own sleeps must be shorter than a wait of the runner. */
export const slowly = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.clockWith((clock) => {
    const slow: Clock.Clock = {
      ...clock,
      sleep: (duration) => clock.sleep(Duration.times(duration, 10)),
      currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() / 10,
      currentTimeMillis: Effect.map(clock.currentTimeMillis, (now) => now / 10)
    }
    return Effect.provideService(effect, Clock.Clock, slow)
  })

/** A runner on recorded processes. */
export const runner = (options: Options = {}): Layer.Layer<CommandRunner> =>
  Layer.orDie(CommandRunner.layer(options)).pipe(Layer.provide(spawner))

export interface Ask extends Partial<Omit<Command, "argv">> {
  readonly options?: Options
}

/** Runs a shell command in the test's folder. Ten minutes are longer than a test may take: who waits for that has failed. */
export const sh = (script: string, { options, ...ask }: Ask = {}): Effect.Effect<Finished> =>
  CommandRunner.use(({ run }) =>
    run({ argv: ["/bin/sh", "-c", script], cwd: folder, timeout: "10 minutes", ...ask })
  ).pipe(Effect.orDie, Effect.provide(runner(options)))
