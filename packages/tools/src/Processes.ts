/**
 * Names and ends the processes that one command left.
 *
 * On Linux these are all that `ProcessTable` finds. Elsewhere on POSIX they are the command's process group, known by its
 * leader only; on Windows the tree of a command that still runs (taskkill), and nothing once it has exited.
 *
 * Invariants
 *   P1  After `end` each of them is dead or in `leftRunning`.
 *   P2  SIGTERM comes first; SIGKILL to those that live after `grace`.
 *   P3  `end` takes at most `grace` and 1 second. Only what is reported is named, after the signals: a process chooses
 *       its name.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { ChildProcessHandle } from "effect/process/ChildProcessSpawner"
import type { Process } from "./Command.ts"
import * as CommandName from "./CommandName.ts"
import * as ProcessTable from "./ProcessTable.ts"

export interface Ended {
  readonly killed: ReadonlyArray<Process>
  readonly leftRunning: ReadonlyArray<Process>
}

export interface Processes {
  /** Those that live now, without the command itself. */
  readonly alive: Effect.Effect<ReadonlyArray<Process>>
  /** Kills them, and the command itself if it runs. */
  readonly end: (grace: Duration.Duration) => Effect.Effect<Ended>
}

/** Sees the processes, sends each of them the signal that it is to get, and reports them. */
type Look = (signalOf: (key: string) => Signal) => Seen
/** 0 only asks whether it is there. */
type Signal = "SIGTERM" | "SIGKILL" | 0
interface Seen {
  /** By identity. */
  readonly alive: ReadonlyMap<string, Process>
  /** False if some may have been missed. */
  readonly sure: boolean
}

/** How long SIGKILL may take, forks meanwhile included; in ms. A process that cannot die waits for a device. */
const killing = 1000
/** In ms; a scan takes a few. */
const pause = 20
/** A report is read by a model. */
const maxKilled = 32
/** Looks in a row, of a few ms each, before one that may have missed something is believed: machines are busy. */
const maxUnsure = 25

/** Those of the command with that handle. Call it as soon as the command has started. */
export const of = (handle: ChildProcessHandle, program: string, marks: ProcessTable.Marks): Processes => {
  if (process.platform === "win32") return tree(handle)
  const own = ProcessTable.exists() ? ProcessTable.entry(process.pid) : undefined
  if (own === undefined) return ended(group(handle.pid, program), "")
  // A leader that is gone already is at least as old as its children, and younger than we.
  const leader = ProcessTable.entry(handle.pid) ?? { pid: handle.pid, start: own.start }
  return ended(table(leader, marks), identity(leader))
}

const identity = ({ pid, start }: Pick<ProcessTable.Entry, "pid" | "start">): string => `${pid}/${start}`

const table = (leader: Pick<ProcessTable.Entry, "pid" | "start">, marks: ProcessTable.Marks): Look => {
  const known = new Map<string, Process>()
  const dead = new Set<string>()
  return (signalOf) => {
    const alive = new Map<string, Process>()
    const sure = ProcessTable.scan({
      leader,
      marks,
      isKnown: (entry) => known.has(identity(entry)),
      isNewlyDead: (entry) => dead.size !== dead.add(identity(entry)).size,
      found: (entry) => {
        const key = identity(entry)
        const one = known.get(key) ?? named(entry.pid, known.size)
        send(entry.pid, signalOf(key))
        known.set(key, one)
        alive.set(key, one)
      }
    })
    return { alive, sure }
  }
}

/** Most of what is reported are the first 32; this many command lines are kept. Of others only the living have one. */
const maxKept = 256

/** A dead process has no command line, so it is read before the signal; a name is made of it when somebody asks. */
const named = (pid: number, index: number): Process => {
  const kept = index < maxKept ? ProcessTable.commandLine(pid) : undefined
  let command: string | undefined
  return {
    pid,
    get command() {
      return (command ??= CommandName.of((kept || ProcessTable.commandLine(pid) || "[unknown]").split("\0")))
    }
  }
}

const reported = (all: ReadonlyArray<Process>): ReadonlyArray<Process> =>
  all.map(({ command, pid }) => ({ pid, command }))

/** The process group as a whole, where there is no table. Exported for its test. */
export const group = (leader: number, program: string): Look => {
  const key = `group ${leader}`
  const one = { pid: leader, command: `the process group of ${CommandName.of([program])}` }
  return (signalOf) => ({ alive: new Map(send(-leader, signalOf(key)) ? [[key, one]] : []), sure: true })
}

/** True if there was somebody to send it to; it may not be ours to kill. */
const send = (pid: number, signal: Signal): boolean => {
  try {
    return process.kill(pid, signal)
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM"
  }
}

/** Exported for its test. */
export const ended = (look: Look, leader: string): Processes => {
  const others = (seen: ReadonlyMap<string, Process>) =>
    [...seen].flatMap(([key, one]) => (key === leader ? [] : [one]))
  return {
    alive: Effect.map(
      until(() => look(() => 0), 0),
      (alive) => reported(others(alive))
    ),
    end: Effect.fnUntraced(function* (grace) {
      const seen = new Map<string, Process>()
      const told = new Set<string>()
      const noted = (signalOf: (key: string) => Signal) => {
        const now = look(signalOf)
        for (const [key, one] of now.alive) seen.set(key, one)
        return now
      }
      const term = (key: string) => (told.has(key) ? 0 : (told.add(key), "SIGTERM"))
      yield* until(() => noted(term), Duration.toMillis(grace))
      const left = yield* until(() => noted(() => "SIGKILL"), killing)
      for (const key of left.keys()) seen.delete(key)
      return { killed: reported(others(seen).slice(0, maxKilled)), leftRunning: reported([...left.values()]) }
    })
  }
}

/** Looks again and again until nothing is seen, at most for so many ms; what is seen last. */
const until = Effect.fnUntraced(function* (look: () => Seen, millis: number) {
  const deadline = (yield* Clock.currentTimeMillis) + millis
  for (let unsure = 0; ;) {
    const { alive, sure } = look()
    if (alive.size === 0 && (sure || ++unsure >= maxUnsure)) return alive
    if (alive.size > 0) unsure = 0
    if (alive.size > 0 && (yield* Clock.currentTimeMillis) >= deadline) return alive
    yield* alive.size === 0 ? Effect.yieldNow : Effect.sleep(Math.min(pause, millis))
  }
})

const tree = (handle: ChildProcessHandle): Processes => ({
  alive: Effect.succeed([]),
  end: (grace) =>
    handle
      .kill({ forceKillAfter: grace })
      .pipe(
        Effect.timeoutOption(Duration.sum(grace, Duration.millis(killing))),
        Effect.ignore,
        Effect.as({ killed: [], leftRunning: [] })
      )
})
