/**
 * Finds the processes of one command in Linux's /proc, whatever they did to get away.
 *
 * A process belongs to the command if it carries one of the command's two marks, is in the group or session of its
 * leader, or descends from a process that belongs. The marks are inherited: an environment variable with a random id,
 * and a limit on the size of files that is a huge number of the command's own. Daemons reset neither session, nor
 * descriptors, nor environment without leaving the limit, and without privileges it cannot be raised again.
 *
 * Not found: an orphan in a session of its own that cleared its environment *and* lowered the limit further or, with
 * CAP_SYS_RESOURCE, raised it; and what a daemon started on the command's behalf (docker, systemd-run, at, cron).
 *
 * Invariants
 *   F1  A process is a pid and its start time: a pid that was given away again is somebody else.
 *   F2  Processes older than the leader, zombies (and whoever is about to be one) and we ourselves never belong.
 *
 * @since 0.1.0
 */
import { closeSync, openSync, readdirSync, readFileSync, readSync } from "node:fs"

export interface Entry {
  readonly pid: number
  readonly parent: number
  readonly group: number
  readonly session: number
  /** In ticks since the machine started. */
  readonly start: number
  readonly zombie: boolean
}

export interface Marks {
  /** Stands in the value of a variable. */
  readonly id: string
  /** In bytes: shells count blocks of 512 (dash, and all that follow POSIX) or of 1,024 bytes (bash and others). */
  readonly limits: ReadonlyArray<string>
}

/** The variable that holds the ids of all commands that a process belongs to. */
export const variable = "WAYSTONE_COMMANDS"

/** The number for `ulimit -f`. Exact in JavaScript also as bytes (at most 2^53), and no file has 2 PiB. */
export const blocks = (random: number): number => 2 ** 42 + Math.floor(random * 2 ** 42)

export const marks = (id: string, blocks: number): Marks => ({
  id,
  limits: [String(blocks * 512), String(blocks * 1024)]
})

/** There is such a table here. */
export const exists = (): boolean => process.platform === "linux" && entry(process.pid) !== undefined

/** This process may set the second mark: nobody limited it, another Waystone that runs us included. */
export const isUnlimited = (): boolean => /^unlimited\s+unlimited\b/.test(limitOf(process.pid) ?? "")

/** One process; undefined if there is none. */
export const entry = (pid: number): Entry | undefined => {
  const text = beginning(pid, "stat")
  // The name in parentheses may itself hold blanks and parentheses (proc_pid_stat(5)).
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ")
  if (fields.length < 21) return undefined
  const at = (index: number): number => Number(fields[index - 3])
  // Whose memory (23) is gone is on its way out: it runs nothing any more. A process whose first thread has ended is shown
  // as a zombie too, but has other threads (20).
  const zombie = fields[0] === "X" || ((fields[0] === "Z" || at(23) === 0) && at(20) <= 1)
  return { pid, zombie, parent: at(4), group: at(5), session: at(6), start: at(22) }
}

/** The beginning of its command line as the system has it; empty if it is gone. Quick: nothing is made of it yet. */
export const commandLine = (pid: number): string => {
  const line = beginning(pid, "cmdline")
  if (line !== "") return line
  const name = beginning(pid, "comm").trim()
  return name === "" ? "" : `[${name}]`
}

/** What is asked of each process that belongs. */
export interface Query {
  readonly leader: Pick<Entry, "pid" | "start">
  readonly marks: Marks
  /** Belonged when it was seen before. */
  readonly isKnown: (entry: Entry) => boolean
  /** Is called at once, so that a process that is about to fork and go has little time for it. */
  readonly found: (entry: Entry) => void
  /** Is told of a zombie that belonged. True if it is a new one: it may have forked after the list was made. */
  readonly isNewlyDead: (entry: Entry) => boolean
}

/** Calls `found` for each process that belongs. False if one went meanwhile: its children may be missing. */
export const scan = ({ found, isKnown, isNewlyDead, leader, marks }: Query): boolean => {
  const current = entry(leader.pid)
  // While the group has members its number is not given away, so a new process of that number means: it is empty.
  const grouped = current === undefined || current.start === leader.start
  const belongs = (one: Entry): boolean =>
    isKnown(one) || (grouped && (one.group === leader.pid || one.session === leader.pid)) || isMarked(one.pid, marks)
  const family = new Set<number>()
  const strangers: Array<Entry> = []
  let sure = true
  for (const pid of pids()) {
    const one = entry(pid)
    if (one === undefined) sure = false
    if (one === undefined || one.start < leader.start || pid === process.pid) continue
    if (!belongs(one)) {
      strangers.push(one)
      // It may have gone before its marks were read.
      if (!one.zombie && entry(pid)?.zombie !== false) sure = false
    } else if (one.zombie) {
      if (isNewlyDead(one)) sure = false
    } else {
      family.add(pid)
      found(one)
    }
  }
  for (let more = true; more;) {
    more = false
    for (const one of strangers) {
      if (one.zombie || family.has(one.pid) || !family.has(one.parent)) continue
      more = true
      family.add(one.pid)
      found(one)
    }
  }
  return sure
}

/** The youngest first: those that fork and go are among them. */
const pids = (): ReadonlyArray<number> =>
  readdirSync("/proc")
    .flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []))
    .toSorted((one, other) => other - one)

const isMarked = (pid: number, { id, limits }: Marks): boolean =>
  limits.includes(limitOf(pid)?.split(/\s/)[0] ?? "") || environment(pid).includes(id)

/** Soft and hard limit of the size of files. */
const limitOf = (pid: number): string | undefined => /^Max file size\s+(.*)$/m.exec(beginning(pid, "limits"))?.[1]

/** Empty if the process is gone or not ours to read. Synchronous: /proc is memory, and a scan must be quick. */
const environment = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1")
  } catch {
    return ""
  }
}

/** In bytes; a command line may have 2 MB, and one path in it 4,096. All of `stat` (under 1,000) and `limits` (1,300). */
const maxBeginning = 5_000

/**
 * Empty as `environment`. One read: it takes half the time of `readFileSync`, which finds no size in /proc and so takes 64 KiB
 * and asks for more.
 */
const beginning = (pid: number, file: string): string => {
  try {
    const descriptor = openSync(`/proc/${pid}/${file}`, "r")
    try {
      const buffer = Buffer.allocUnsafe(maxBeginning)
      return buffer.toString("utf8", 0, readSync(descriptor, buffer, 0, maxBeginning, 0))
    } finally {
      closeSync(descriptor)
    }
  } catch {
    return ""
  }
}
