import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"
import { vi } from "vitest"
import * as Bubblewrap from "../src/Bubblewrap.ts"
import { CommandRunner } from "../src/CommandRunner.ts"
import { cwd, linux, marked, spawner, watched } from "./support/commands.ts"

/** Why there is no sandbox on this machine; undefined if there is one. */
const reason = (): string | undefined => {
  if (!linux) return "this is not Linux"
  try {
    const sandbox = ["--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--", "true"]
    execFileSync("bwrap", sandbox, { stdio: ["ignore", "ignore", "pipe"] })
    return undefined
  } catch (error) {
    return `bwrap does not work here: ${error instanceof Error ? error.message.split("\n").join(" ") : "unknown"}`
  }
}
const missing = reason()
if (missing !== undefined) process.stderr.write(`Bubblewrap.test.ts skips its sandboxed tests: ${missing}\n`)

const layer = (options: Bubblewrap.Options) => Bubblewrap.layer(options).pipe(Layer.provide(spawner))

const sh = (script: string, options: Partial<Bubblewrap.Options> & { readonly timeout?: number } = {}) =>
  CommandRunner.use(({ run }) =>
    run({ argv: ["/bin/sh", "-c", script], cwd: cwd(), timeout: options.timeout ?? 600_000 })
  ).pipe(Effect.provide(layer({ writable: [cwd()], ...options })))

describe.skipIf(!linux)("Bubblewrap", () => {
  watched()

  it.live("an option that is wrong is named", () =>
    Effect.gen(function* () {
      symlinkSync("/", join(cwd(), "link"))
      const cases = [
        ["writable", { writable: ["relative"] }],
        ["writable", { writable: ["/"] }],
        ["writable", { writable: ["/usr/.."] }],
        ["writable", { writable: [join(cwd(), "gone")] }],
        ["writable", { writable: [join(cwd(), "link")] }],
        ["readable", { writable: [], readable: ["/proc/"] }],
        ["grace", { writable: [], grace: "1 minute" }]
      ] as const
      for (const [field, options] of cases) {
        const error = yield* Effect.flip(Effect.provide(CommandRunner, layer(options)))
        expect(error).toMatchObject({ _tag: "CommandOptionsInvalid", field })
      }
    })
  )

  it.live("where bwrap is not installed the layer says what to install", () =>
    Effect.gen(function* () {
      vi.stubEnv("PATH", cwd())
      const error = yield* Effect.flip(Effect.provide(CommandRunner, layer({ writable: [cwd()] })))
      expect(error).toMatchObject({
        _tag: "BubblewrapUnavailable",
        message: "bwrap is not installed: install the package bubblewrap (Linux)"
      })
    }).pipe(Effect.ensuring(Effect.sync(() => vi.unstubAllEnvs())))
  )

  it.live("where bwrap may not make a sandbox the layer says so, in its words", () =>
    Effect.gen(function* () {
      const fake = '#!/bin/sh\necho "bwrap: No permissions to create new namespace" >&2; exit 1\n'
      writeFileSync(join(cwd(), "bwrap"), fake, { mode: 0o755 })
      vi.stubEnv("PATH", cwd())
      writeFileSync(join(cwd(), "true"), "#!/bin/sh\n", { mode: 0o755 })
      const error = yield* Effect.flip(Effect.provide(CommandRunner, layer({ writable: [cwd()] })))
      expect(error).toMatchObject({ _tag: "BubblewrapUnavailable" })
      expect(error.message).toContain("No permissions to create new namespace")
    }).pipe(Effect.ensuring(Effect.sync(() => vi.unstubAllEnvs())))
  )

  describe.skipIf(missing !== undefined)("in a sandbox", () => {
    it.live("W1 writes what it may and nothing else", () =>
      Effect.gen(function* () {
        mkdirSync(join(cwd(), "in"))
        mkdirSync(join(cwd(), "out"))
        mkdirSync(join(cwd(), "read"))
        writeFileSync(join(cwd(), "out/secret"), "secret")
        writeFileSync(join(cwd(), "read/known"), "known")
        const probe = `/usr/waystone-${process.pid}`
        const script = [
          "echo a >in/a",
          "echo b >out/b",
          "cat out/secret",
          "cat read/known",
          "echo c >read/c",
          "echo d >d",
          `echo e >${probe}; echo e >/etc/waystone-${process.pid}; echo e >/e && echo wrote the root`,
          "mount -o remount,rw /usr; mount -t tmpfs none /mnt",
          `echo f >${probe}`,
          "ln -s ../out/b in/link; echo g >in/link",
          `echo h >/tmp/waystone-${process.pid} && cat /tmp/waystone-${process.pid}`
        ].join("; ")
        const result = yield* sh(script, { writable: [join(cwd(), "in")], readable: [join(cwd(), "read")] })
        expect(result.status).toBe("exited")
        expect(readFileSync(join(cwd(), "in/a"), "utf8")).toBe("a\n")
        expect(result.output).toContain("known")
        expect(result.output).not.toContain("secret\n")
        expect(result.output).not.toContain("wrote the root")
        expect(result.output).toMatch(/\bh\n$/)
        for (const path of ["out/b", "read/c", "d"]) expect(existsSync(join(cwd(), path))).toBe(false)
        for (const path of [probe, `/etc/waystone-${process.pid}`, "/e", `/tmp/waystone-${process.pid}`])
          expect(existsSync(path)).toBe(false)
      })
    )

    it.live("W1 nothing of the kernel's can be opened for writing, and what a shell needs of /proc works", () =>
      Effect.gen(function* () {
        // Opened only: nothing is written, and nothing is made.
        const kernel =
          "find /proc -path '/proc/[0-9]*' -prune -o -type f -print 2>/dev/null; find /sys -type f 2>/dev/null"
        const open = `n=0; for f in $(${kernel}); do n=$((n+1)); { true >>"$f"; } 2>/dev/null && echo "opened $f"; done; echo $n`
        const { output } = yield* sh(open)
        expect(output).not.toContain("opened")
        expect(Number(output)).toBeGreaterThan(500)
        const more = yield* sh(
          "mount -o remount,rw /proc; umount /proc; true >>/proc/sys/kernel/core_pattern && echo no"
        )
        expect(more.output).not.toMatch(/no\n$/)
        const nested =
          "unshare -Urm sh -c 'umount /proc; mount -o remount,rw /proc; true >>/proc/sys/vm/swappiness && echo no'"
        expect((yield* sh(nested)).output).not.toMatch(/no\n$/)
        expect((yield* sh("echo a | cat /dev/fd/0; echo b | tee /proc/self/fd/1 | cat")).output).toMatch(/^a\nb\n/)
      })
    )

    it.live("W3 a program or a folder that is not in the sandbox is CommandUnavailable, and says no path", () =>
      Effect.gen(function* () {
        mkdirSync(join(cwd(), "in"))
        mkdirSync(join(cwd(), "out"))
        writeFileSync(join(cwd(), "out/tool"), "#!/bin/sh\necho ran\n", { mode: 0o755 })
        const all = { writable: [join(cwd(), "in")] }
        const asked = (argv: readonly [string, ...Array<string>], at: string, env: Record<string, string> = {}) =>
          CommandRunner.use(({ run }) => run({ argv, cwd: join(cwd(), at), env, timeout: 600_000 })).pipe(Effect.result)
        yield* Effect.gen(function* () {
          for (const result of [
            yield* asked(["true"], "out"),
            yield* asked([join(cwd(), "out/tool")], "in"),
            yield* asked(["tool"], "in", { PATH: `${join(cwd(), "out")}:/usr/bin:/bin` })
          ]) {
            expect(result).toMatchObject({ failure: { _tag: "CommandUnavailable" } })
            expect(result._tag === "Failure" && result.failure.message).toMatch(
              /^the sandbox could not start it: [^/]*$/
            )
          }
          // A command cannot say of itself that it did not start.
          const script = "echo 'bwrap: execvp x: No such file' >&2; echo '{}' >&3; exit 1"
          for (const argv of [["/bin/false"], ["/bin/sh", "-c", script]] as const) {
            expect(yield* asked([...argv], "in")).toMatchObject({ success: { status: "exited", exitCode: 1 } })
          }
        }).pipe(Effect.provide(layer(all)))
      })
    )

    it.live("nothing of the home folder is there, and HOME is private", () =>
      Effect.gen(function* () {
        const { output } = yield* sh(`ls -A '${homedir()}'; echo "[$HOME]"; cd && pwd; ls -A`)
        // Two pipes: what stands on one comes before or after what stands on the other.
        expect(output).toContain("No such file")
        expect(output).toContain("[/tmp]\n/tmp\n")
      })
    )

    it.live("W2 there is no network unless it is asked for", () =>
      Effect.gen(function* () {
        const links = "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ' | sort | tr '\\n' ' '"
        const own = execFileSync("/bin/sh", ["-c", links], { encoding: "utf8" })
        expect((yield* sh(links)).output).toBe("lo ")
        expect((yield* sh(links, { network: true })).output).toBe(own)
      })
    )

    it.live("it has no capabilities, and sees its own processes only", () =>
      Effect.gen(function* () {
        const { output } = yield* sh(`grep ^Cap /proc/self/status; ls /proc/${process.pid}`)
        expect(output.match(/Cap\w+:\s+0{16}\n/g)?.length).toBeGreaterThanOrEqual(4)
        expect(output).toContain("No such file")
      })
    )

    it.live("C2 exit codes, the timeout, and the end of what it leaves are those of the plain runner", () =>
      Effect.gen(function* () {
        expect(yield* sh("exit 7")).toMatchObject({ status: "exited", exitCode: 7 })
        const left = yield* sh("nohup setsid env -i /bin/sleep 300 <&- >&- 2>&- & echo done")
        expect(left).toMatchObject({ status: "exited", output: "done\n", leftRunning: [] })
        const late = yield* sh("setsid sh -c 'trap : TERM; while :; do sleep 0.1; done' & wait", { timeout: 500 })
        expect(late).toMatchObject({ status: "timed-out", leftRunning: [] })
        expect(marked()).toEqual([])
      })
    )
  })
})
