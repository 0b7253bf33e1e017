import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Fiber from "effect/Fiber"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { type Command, CommandRunner } from "../src/CommandRunner.ts"
import { cwd, linux, marked, runner, sh, slowly, watched } from "./support/commands.ts"

const exists = (file: string) =>
  Effect.repeat(
    Effect.andThen(
      Effect.sleep("10 millis"),
      Effect.sync(() => existsSync(join(cwd(), file)))
    ),
    { until: (there) => there }
  )

/** A signal needs a moment until its process is gone. */
const nothingMarked = Effect.suspend(() => Effect.succeed(marked().length)).pipe(
  Effect.repeat({ until: (left) => left === 0, schedule: Schedule.spaced("20 millis") })
)

describe.skipIf(!linux)("CommandRunner", () => {
  watched()

  describe("completion", () => {
    it.live("RI-137 C1 a child in the background keeps the output open: the result comes with the exit", () =>
      Effect.gen(function* () {
        const result = yield* sh("sleep 300 & echo done")
        expect(result).toMatchObject({ status: "exited", exitCode: 0, output: "done\n", leftRunning: [] })
        expect(result.killed).toMatchObject([{ command: "sleep 300" }])
        expect(marked()).toEqual([])
      })
    )

    it.live("RI-078 C3 a grandchild in its own session that ignores SIGTERM and writes ends with the timeout", () =>
      Effect.gen(function* () {
        const script = `setsid sh -c 'trap : TERM; while :; do echo x; sleep 0.1; done' & wait`
        const result = yield* sh(script, { timeout: "1 second", maxOutput: 20 })
        expect(result.status).toBe("timed-out")
        expect(result.exitCode).toBe(undefined)
        expect(result.durationMs).toBeGreaterThanOrEqual(1000)
        expect(result.cut).toBeGreaterThan(0)
        expect(result.output.length).toBeLessThan(60)
        expect(result.leftRunning).toEqual([])
        expect(result.killed.map(({ command }) => command)).toContainEqual(expect.stringContaining("trap : TERM"))
        expect(marked()).toEqual([])
      })
    )

    it.live.each([
      ["cat", ""],
      ["read x; echo $x", "\n"]
    ] as const)("RI-093 standard input is empty: %s", ([script, output]) =>
      Effect.gen(function* () {
        const result = yield* sh(script)
        // dash's read answers 1 at the end of its input, echo 0.
        expect(result).toMatchObject({ status: "exited", exitCode: 0, output })
      })
    )

    it.live("C1 a child that closes its output is waited for", () =>
      Effect.gen(function* () {
        const result = yield* sh("exec >&- 2>&-; sleep 0.5; touch ended; exit 4")
        expect(result).toMatchObject({ status: "exited", exitCode: 4, output: "", killed: [] })
        expect(existsSync(join(cwd(), "ended"))).toBe(true)
      })
    )

    it.live("C1 what still comes when the command has exited is read for a moment", () =>
      Effect.gen(function* () {
        const result = yield* slowly(sh("(sleep 0.05; echo last) & echo first"))
        expect(result).toMatchObject({ output: "first\nlast\n", killed: [] })
      })
    )

    it.live("C1 what comes while the processes that are left are looked for is read too", () =>
      Effect.gen(function* () {
        const options = { background: "leave" } as const
        const result = yield* slowly(sh("(sleep 2.5; echo last) & echo first", { options }))
        expect(result.output).toBe("first\nlast\n")
        yield* nothingMarked
      })
    )

    it.live("a command that is none is CommandUnavailable, whatever an untyped caller gives", () =>
      Effect.gen(function* () {
        const good: Command = { argv: ["true"], cwd: cwd(), timeout: "10 minutes" }
        const bad = [{ argv: [] }, { argv: undefined }, { argv: "true" }, { argv: [1] }, { argv: ["true", null] }]
        const others = [{ cwd: undefined }, { cwd: 3 }, { env: { A: 1 } }, { env: null }, { timeout: undefined }]
        for (const wrong of [...bad, ...others, { timeout: {} }, { timeout: "soon" }, { maxOutput: "1" }]) {
          const command: Command = Object.assign({ ...good }, wrong)
          const error = yield* Effect.flip(CommandRunner.use(({ run }) => run(command)))
          expect([wrong, error]).toMatchObject([wrong, { _tag: "CommandUnavailable" }])
        }
        expect(yield* CommandRunner.use(({ run }) => run(good))).toMatchObject({ exitCode: 0 })
      }).pipe(Effect.provide(runner()))
    )

    it.live.each([0, 1, 7, 127, 255])("an exit code is a result: %s", (code) =>
      Effect.gen(function* () {
        expect(yield* sh(`exit ${code}`)).toMatchObject({ status: "exited", exitCode: code, killed: [] })
      })
    )

    it.live.each(["KILL", "SEGV", "TERM", "PIPE"])("a signal of somebody else is a result: %s", (signal) =>
      Effect.gen(function* () {
        const result = yield* sh(`kill -${signal} $$; sleep 5`)
        expect(result).toMatchObject({ status: "killed", signal: `SIG${signal}` })
        expect("exitCode" in result).toBe(false)
      })
    )

    it.live("C3 a command that stops itself, and one that computes for ever, end with the timeout", () =>
      Effect.gen(function* () {
        for (const script of ["kill -STOP $$", "while :; do :; done", "trap : TERM; while :; do :; done"]) {
          const result = yield* sh(script, { timeout: "300 millis" })
          expect(result).toMatchObject({ status: "timed-out", killed: [], leftRunning: [] })
        }
      })
    )

    it.live("C3 P1 60 processes with names that are hard to read are dead", () =>
      Effect.gen(function* () {
        const name = "key".repeat(30_000)
        const script = `mkfifo p; i=0
          while [ $i -lt 60 ]; do setsid env -i /bin/sh -c 'read x <p' "$1" "$1" & i=$((i+1)); done; sleep 0.3`
        const result = yield* CommandRunner.use(({ run }) =>
          run({ argv: ["/bin/sh", "-c", script, "sh", name], cwd: cwd(), timeout: "10 minutes" })
        ).pipe(Effect.provide(runner()))
        expect(marked()).toEqual([])
        expect(result).toMatchObject({ status: "exited", leftRunning: [] })
        expect(result.killed).toHaveLength(32)
        for (const { command } of result.killed) expect(command).toMatch(/^(sh|env) .{1,80}$/)
      })
    )

    it.live("P2 a process that ends well on SIGTERM has the grace for it, and says so in the output", () =>
      Effect.gen(function* () {
        const script = `trap 'sleep 0.2; echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done`
        // A busy machine needs longer to start it, and to let it say so.
        const result = yield* sh(script, { timeout: "2 seconds", options: { grace: "5 seconds" } })
        expect(result.status).toBe("timed-out")
        expect(result.output).toContain("up\n")
        expect(result.output).toContain("bye\n")
      })
    )
  })

  describe("output", () => {
    it.live("keeps order, plain text and the absolute folder", () =>
      Effect.gen(function* () {
        const { output } = yield* sh(`printf '\\033[31mred\\033[0m\\n'; sleep 1; echo err >&2; sleep 1; pwd`)
        expect(output).toBe(`red\nerr\n${cwd()}\n`)
      })
    )

    it.live("a character that comes in two pieces is one", () =>
      Effect.gen(function* () {
        const script = `printf '\\342\\202'; sleep 1; printf 'e' >&2; sleep 1; printf '\\254'`
        expect((yield* sh(script)).output).toBe("e€")
      })
    )

    it.live("binary output becomes well-formed text", () =>
      Effect.gen(function* () {
        const { cut, output } = yield* sh("head -c 100000 /dev/urandom", { maxOutput: 1000 })
        expect(output).not.toMatch(/\p{Surrogate}/u)
        expect(output.match(/[^\P{Cc}\n\t]/u)).toBe(null)
        expect(output.length).toBeLessThan(1100)
        expect(cut).toBeGreaterThan(10_000)
      })
    )

    it.live("200 MB of output do not grow the heap, and are not held back", () =>
      Effect.gen(function* () {
        const used = () => {
          const { arrayBuffers, heapUsed } = process.memoryUsage()
          return heapUsed + arrayBuffers
        }
        const before = used()
        let peak = 0
        const sampling = yield* Effect.forkChild(
          Effect.forever(
            Effect.andThen(
              Effect.sync(() => (peak = Math.max(peak, used()))),
              Effect.sleep("20 millis")
            )
          )
        )
        const result = yield* sh("yes abcdefghi | head -c 200000000; echo; echo end", { timeout: "10 minutes" })
        yield* Fiber.interrupt(sampling)
        expect(result).toMatchObject({ status: "exited", exitCode: 0, cut: 200_000_005 - 12_000 })
        expect(result.output).toMatch(/^abcdefghi\n[^]*\n\[… 199988005 characters left out …\]\n[^]*\nend\n$/)
        expect(peak - before).toBeLessThan(100_000_000)
      })
    )
  })

  describe("what stays and what goes", () => {
    it.live("C2 an interruption ends all of it, sessions of their own included, before it is over", () =>
      Effect.gen(function* () {
        const script = `setsid sh -c 'trap : TERM; touch up; while :; do sleep 1; done' & setsid env -i sleep 300 & wait`
        const fiber = yield* Effect.forkChild(sh(script))
        yield* exists("up")
        expect(marked().length).toBeGreaterThanOrEqual(3)
        yield* Fiber.interrupt(fiber)
        expect(marked()).toEqual([])
      })
    )

    it.live("C2 two commands at once do not end each other's children", () =>
      Effect.gen(function* () {
        const long = yield* Effect.forkChild(sh("setsid sh -c 'touch up; sleep 1.5; echo survived' & wait"))
        yield* exists("up")
        for (let n = 0; n < 3; n++) expect((yield* sh("setsid sleep 300 &")).killed).toHaveLength(1)
        expect(yield* Fiber.join(long)).toMatchObject({ exitCode: 0, output: "survived\n", killed: [] })
      })
    )

    it.live.each([0, 3])("with background 'leave' what a command leaves stays and is named, exit code %s", (code) =>
      Effect.gen(function* () {
        const options = { background: "leave" } as const
        const result = yield* sh(`sleep 50 & setsid env -i sleep 51 & exit ${code}`, { options })
        expect(result).toMatchObject({ status: "exited", exitCode: code, killed: [] })
        expect(result.leftRunning.map(({ command }) => command).toSorted()).toEqual(["sleep 50", "sleep 51"])
        yield* Effect.sleep("1500 millis") // the spawner's clean-up is over
        expect(
          marked()
            .map(({ pid }) => pid)
            .toSorted()
        ).toEqual(result.leftRunning.map(({ pid }) => pid).toSorted())
        for (const { pid } of result.leftRunning) process.kill(pid, "SIGKILL")
        yield* nothingMarked
      })
    )

    it.live("with background 'leave' a timeout kills all the same", () =>
      Effect.gen(function* () {
        const result = yield* sh("setsid sleep 300 & sleep 300", {
          timeout: "300 millis",
          options: { background: "leave" }
        })
        expect(result).toMatchObject({ status: "timed-out", leftRunning: [] })
        expect(marked()).toEqual([])
      })
    )

    it.live("with background 'leave' a process that stays can go on printing", () =>
      CommandRunner.use(({ run }) =>
        Effect.gen(function* () {
          const script = "(sleep 0.7; yes | head -c 1000000 && touch printed; sleep 300) &"
          const { leftRunning } = yield* run({ argv: ["/bin/sh", "-c", script], cwd: cwd(), timeout: "10 minutes" })
          yield* exists("printed")
          for (const { pid } of leftRunning) if (existsSync(`/proc/${pid}`)) process.kill(pid, "SIGKILL")
          for (const { pid } of marked()) process.kill(pid, "SIGKILL")
          yield* nothingMarked
        })
      ).pipe(Effect.provide(runner({ background: "leave" })))
    )
  })
})
