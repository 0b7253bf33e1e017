import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import { linux, marked, sh, watched } from "./support/commands.ts"

const has = (...programs: ReadonlyArray<string>): boolean =>
  programs.every((program) => {
    try {
      execFileSync("/bin/sh", ["-c", `command -v ${program} && test -x "$(command -v ${program})"`], {
        stdio: "ignore"
      })
      return true
    } catch {
      return false
    }
  })

interface Escape {
  readonly name: string
  readonly script: string
  /** Default "exited". */
  readonly status?: "exited" | "timed-out"
  /** Programs that not every machine has. */
  readonly needs?: ReadonlyArray<string>
}

/** Goes on as a child with another pid for ever. */
const hopping = `setsid env -i /bin/sh -c "$1" h "$1" & exit`

const escapes: ReadonlyArray<Escape> = [
  { name: "a job", script: "sleep 300 &" },
  { name: "many jobs", script: "for i in 1 2 3 4 5 6 7 8 9; do sleep 300 & done" },
  { name: "nohup", script: "nohup sleep 300 >/dev/null 2>&1 &" },
  { name: "setsid", script: "setsid sleep 300 >/dev/null 2>&1 &" },
  { name: "the leader changes its session", script: "exec setsid --fork sleep 300" },
  { name: "everything closed and cleared", script: "nohup setsid env -i /bin/sleep 300 <&- >&- 2>&- & sleep 0.2" },
  { name: "double fork", script: "( (sleep 300 &) & )" },
  { name: "double fork in a new session", script: "(setsid sh -c 'sleep 300 & exit' &)" },
  {
    name: "double fork, cleared, closed, deaf",
    script: `(setsid env -i /bin/sh -c 'trap "" TERM HUP INT; (while :; do /bin/sleep 1; done) & exit' <&- >&- 2>&- &); sleep 0.2`
  },
  { name: "the variable is unset", script: "env -u WAYSTONE_COMMANDS setsid sleep 300 &" },
  { name: "the limit is lowered", script: "(ulimit -f 100; setsid sleep 300) >/dev/null 2>&1 &" },
  { name: "no mark, in the group", script: "(ulimit -f 100; exec env -i /bin/sleep 300) & sleep 0.2" },
  {
    name: "nothing marks it but its parent",
    script: `setsid sh -c '(ulimit -f 100; exec env -i setsid /bin/sleep 300) & wait' & sleep 0.2`
  },
  {
    // By then its environment, its limit and its parent tell nothing any more; it was seen before.
    name: "loses every mark on SIGTERM",
    script: `setsid sh -c 'trap "ulimit -f 100; exec env -i /bin/sh ./deaf" TERM; while :; do sleep 0.05; done' &
      printf 'trap : TERM\\nwhile :; do /bin/sleep 0.05; done\\n' >deaf; sleep 0.2`
  },
  {
    name: "deaf to SIGTERM",
    script: `setsid sh -c 'trap "" TERM HUP INT QUIT; while :; do sleep 1; done' & sleep 0.2`
  },
  {
    name: "starts another on SIGTERM",
    script: `setsid sh -c 'trap "setsid env -i /bin/sleep 300 &" TERM; while :; do sleep 0.05; done' & sleep 0.2`
  },
  { name: "stopped", script: "setsid env -i /bin/sh -c 'kill -STOP $$; sleep 300' & sleep 0.2" },
  {
    name: "stopped in front of a timeout",
    script: "setsid sleep 300 & kill -STOP $!; kill -STOP $$",
    status: "timed-out"
  },
  { name: "changes its pid all the time", script: `setsid env -i /bin/sh -c '${hopping}' h '${hopping}' & sleep 0.3` },
  {
    name: "execs all the time",
    script: `setsid env -i /bin/sh -c 'exec /bin/sh -c "$1" x "$1"' x 'exec /bin/sh -c "$1" x "$1"' & sleep 0.2`
  },
  { name: "forks until it is killed", script: "while :; do setsid env -i /bin/sleep 300 & done", status: "timed-out" },
  {
    name: "forks in the background, deaf",
    script: `setsid sh -c 'trap "" TERM; while :; do env -i /bin/sleep 300 & sleep 0.01; done' & sleep 0.1`
  },
  { name: "waits for a pipe that nobody opens", script: "mkfifo p && (cat p &)" },
  { name: "prints for ever", script: "yes & yes >&2 & exit 0" },
  { name: "is deleted", script: `cp "$(command -v sleep)" ./x && (setsid ./x 300 &); sleep 0.1; rm x` },
  {
    name: "has a name like a row of the table",
    script: `cp "$(command -v sleep)" './) S 1 1 1 (' && (setsid env -i './) S 1 1 1 (' 300 &); sleep 0.1`
  },
  { name: "works in a folder that is gone", script: "mkdir d && cd d && (setsid sleep 300 &); rmdir ../d" },
  { name: "calls itself otherwise", needs: ["perl"], script: `perl -e '$0="[kworker/0:1]"; sleep 300' & sleep 0.2` },
  {
    name: "a daemon by the book",
    needs: ["perl"],
    script: `perl -MPOSIX -e 'fork and exit; setsid; fork and exit; chdir "/"; umask 0; POSIX::close($_) for 0..255; %ENV=(); exec "/bin/sleep", 300' ; sleep 0.2`
  },
  {
    name: "its first thread has ended",
    needs: ["perl"],
    script: `perl -Mthreads -MPOSIX -e 'setsid; threads->create(sub { sleep 300 }); syscall((uname)[4] eq "x86_64" ? 60 : 93, 0)' & sleep 0.3`
  },
  { name: "disowned", needs: ["bash"], script: "bash -c 'sleep 300 & disown; setsid sleep 300 & disown'" },
  { name: "a coprocess", needs: ["bash"], script: "bash -c 'coproc sleep 300'" },
  {
    name: "in a terminal of its own",
    needs: ["script"],
    script: "setsid script -qc 'sleep 300' /dev/null >/dev/null 2>&1 & sleep 0.2"
  },
  {
    name: "in namespaces of its own",
    needs: ["unshare"],
    script: "unshare -Urpf --mount-proc env -i /bin/sh -c 'setsid /bin/sleep 300 & /bin/sleep 300' & sleep 0.2"
  },
  { name: "a timer that starts it later", script: "(setsid sh -c 'sleep 1; sleep 300' &)" }
]

describe.skipIf(!linux)("Every process that a command left is dead", () => {
  watched()

  it.live.each(escapes.filter(({ needs = [] }) => has(...needs)))("C2 P1 $name", ({ script, status = "exited" }) =>
    Effect.gen(function* () {
      const result = yield* sh(script, { timeout: status === "exited" ? "10 minutes" : "1 second" })
      expect(marked()).toEqual([])
      expect(result.status).toBe(status)
      expect(result.leftRunning).toEqual([])
      expect(result.killed.length).toBeGreaterThan(0)
      expect(result.killed.length).toBeLessThanOrEqual(32)
      // Nothing comes back.
      yield* Effect.sleep("100 millis")
      expect(marked()).toEqual([])
    })
  )

  it.live("C2 what a Waystone inside of a command runs is found from outside", () =>
    Effect.gen(function* () {
      const inner = new URL("./support/inner.ts", import.meta.url).pathname
      const node = `"${process.execPath}" --conditions=@waystone/source ${inner}`
      const result = yield* sh(`${node} & until [ -e up ]; do sleep 0.05; done`, { timeout: "10 minutes" })
      expect(result.output).toContain("inner runs\n")
      expect(result.killed.map(({ command }) => command)).toContain("sleep 301")
      expect(marked()).toEqual([])
    })
  )
})
