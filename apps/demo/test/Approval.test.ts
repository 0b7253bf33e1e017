import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { vi } from "vitest"
import { calling, done, eventsOf, folder, idIn, model, program, shell, tests } from "./misled.ts"
import { finished, own, start } from "./process.ts"

vi.setConfig({ testTimeout: 120_000 })

/** The demo at a terminal of its own; what is typed goes to it. */
const atTerminal = (env: Readonly<Record<string, string>>, args: ReadonlyArray<string>) => {
  const command = [process.execPath, program, ...args].map((word) => `'${word}'`).join(" ")
  const child = spawn("script", ["-qefc", command, "/dev/null"], {
    env: {
      PATH: process.env["PATH"],
      HOME: own.home,
      XDG_DATA_HOME: join(own.home, "data"),
      TMPDIR: own.temporary,
      TERM: "xterm",
      ...env
    },
    stdio: ["pipe", "pipe", "pipe"]
  })
  return child
}
/** Waits for the text and then types. */
const typing = (child: ChildProcess, ...steps: ReadonlyArray<readonly [text: RegExp, keys: string]>) => {
  let from = 0
  let next = 0
  return finished(child, (out) => {
    const step = steps[next]
    if (step === undefined) return
    const at = out.slice(from).search(step[0])
    if (at < 0) return
    from = out.length
    next++
    setTimeout(() => child.stdin?.write(step[1]), 200)
  })
}

const down = "\u001b[B"
const enter = "\r"

describe.skipIf(process.platform === "win32")("approvals in the demo", () => {
  it.live(
    "without a terminal the Run waits; approvals shows the command and who asked; approve and resume run it",
    () =>
      Effect.gen(function* () {
        const path = folder()
        const { demo } = yield* model(calling([shell("echo hello > made.txt")]))
        const first = yield* demo("--dir", path, "do it")
        expect(first.out).toContain("shell waits (approval)")
        const runId = idIn(first.out)
        const listed = yield* done("approvals")
        expect(listed.out).toMatch(
          /May it\? shell t1\.0\n {2}\$ echo hello > made\.txt\n {2}asked by permissions: shell needs approval \(rule other commands\)/
        )
        expect(listed.out).toContain(`npm run demo -- approve ${runId} t1.0`)
        expect(existsSync(join(path, "made.txt"))).toBe(false)
        expect(yield* done("approve", runId, "t1.9")).toMatchObject({ code: 1, err: expect.stringContaining("t1.9") })
        const approved = yield* done("approve", runId, "t1.0")
        expect(approved).toMatchObject({ code: 0, err: "", out: expect.stringContaining(`resume ${runId}\n`) })
        expect((yield* done("approvals")).out).toBe("Nothing waits for an answer.\n")
        expect((yield* demo("resume", runId)).code).toBe(0)
        expect(readFileSync(join(path, "made.txt"), "utf8")).toBe("hello\n")
      })
  )

  it.live("deny gives the agent the reason, and approve --edited runs another command", () =>
    Effect.gen(function* () {
      const path = folder()
      const { demo } = yield* model(calling([shell("touch one")], [shell("touch two")]))
      const runId = idIn((yield* demo("--dir", path, "do it")).out)
      yield* done("deny", runId, "t1.0", "--reason", "not that one")
      yield* demo("resume", runId)
      yield* done("approve", runId, "t2.0", "--edited", '{"command":"touch three"}')
      expect((yield* demo("resume", runId)).code).toBe(0)
      expect(["one", "two", "three"].map((name) => existsSync(join(path, name)))).toEqual([false, false, true])
      expect(JSON.stringify(yield* eventsOf(runId, "ToolCallCompleted"))).toContain("not that one")
    })
  )

  it.live("RI-022 the agent cannot answer itself: neither its shell nor code that its tests run", () =>
    Effect.gen(function* () {
      // The tests of the project try to answer the call that waits, with and without the mark of the agent's commands.
      const attack = [
        'import { spawnSync } from "node:child_process"',
        'import { appendFileSync } from "node:fs"',
        "const { WAYSTONE_AGENT: _, ...env } = process.env",
        `for (const given of [process.env, env]) {`,
        `  const options = { encoding: "utf8", env: { ...given, XDG_DATA_HOME: ${JSON.stringify(join(own.home, "data"))} } }`,
        `  const demo = (...args) => spawnSync(process.execPath, [${JSON.stringify(program)}, ...args], options)`,
        '  const runId = /demo-[0-9a-f-]{36}/.exec(demo("runs").stdout)?.[0]',
        `  appendFileSync(${JSON.stringify(join(own.home, "attack"))}, demo("approve", runId, "t1.0").stderr)`,
        "}"
      ].join("\n")
      const path = folder(attack)
      // Without a sandbox, which would hide the store from them.
      const { demo } = yield* model(
        calling([shell("touch marker"), tests], [shell(`node ${program} approve x t1.0`)]),
        { PATH: dirname(process.execPath) }
      )
      const first = yield* demo("--dir", path, "do it")
      const runId = idIn(first.out)
      const tried = readFileSync(join(own.home, "attack"), "utf8").trimEnd().split("\n")
      expect(tried).toEqual([
        expect.stringContaining("may not answer t1.0"),
        expect.stringContaining("may not answer t1.0")
      ])
      expect(yield* eventsOf(runId, "CallAnswered")).toEqual([])
      expect(existsSync(join(path, "marker"))).toBe(false)
      yield* done("deny", runId, "t1.0")
      yield* demo("resume", runId)
      expect(yield* eventsOf(runId, "VerdictGiven")).toMatchObject([
        { guard: "own", on: "t2.0", verdict: "Deny", message: expect.stringContaining("starts the demo itself") }
      ])
    })
  )

  it.live("at a terminal it shows the command and takes a yes, another command, always, and a no with its reason", () =>
    Effect.gen(function* () {
      const path = folder()
      const append = shell("echo x >> always")
      const { env, flags } = yield* model(
        calling([shell("touch yes")], [shell("touch wrong")], [append], [append], [shell("touch no")])
      )
      const child = atTerminal(env, ["--dir", path, "do it", ...flags])
      const question = /Your answer/
      const { code, out } = yield* Effect.promise(() =>
        typing(
          child,
          [question, enter],
          [question, `${down}${down}${enter}`],
          [/command instead/, `touch edited${enter}`],
          [question, `${down}${down}${down}${enter}`],
          [question, `${down}${enter}`],
          [/Why not/, `I said so${enter}`]
        )
      )
      expect({ code }, out).toEqual({ code: 0 })
      expect(out).toContain("$ touch wrong")
      const made = ["yes", "wrong", "edited", "no"].map((name) => existsSync(join(path, name)))
      expect(made).toEqual([true, false, true, false])
      expect(readFileSync(join(path, "always"), "utf8")).toBe("x\nx\n")
      const results = JSON.stringify(yield* eventsOf(idIn(out), "ToolCallCompleted"))
      expect(results).toContain("I said so")
    })
  )

  it.live("Ctrl-C at the question pauses the Run and exits with 130; the question stays", () =>
    Effect.gen(function* () {
      const { demo, env, flags } = yield* model(calling([shell("touch made")]))
      const path = folder()
      const child = atTerminal(env, ["--dir", path, "do it", ...flags])
      const { code, out } = yield* Effect.promise(() => typing(child, [/Your answer/, "\u0003"]))
      expect({ code }, out).toEqual({ code: 130 })
      const runId = idIn(out)
      expect(out).toContain(`resume ${runId}`)
      expect((yield* done("show", runId)).out).toContain("paused")
      expect((yield* done("approve", runId, "t1.0")).code).toBe(0)
      expect((yield* demo("resume", runId)).code).toBe(0)
      expect(existsSync(join(path, "made"))).toBe(true)
    })
  )

  it.live("an answer from another terminal takes the question away, and the Run goes on", () =>
    Effect.gen(function* () {
      const path = folder()
      const { env, flags } = yield* model(calling([shell("touch made")]))
      const child = atTerminal(env, ["--dir", path, "do it", ...flags])
      let approving: Promise<unknown> | undefined
      const { code, out } = yield* Effect.promise(() =>
        finished(child, (out) => {
          if (approving === undefined && /Your answer/.test(out))
            approving = finished(start("approve", idIn(out), "t1.0"))
        })
      )
      expect({ code }, out).toEqual({ code: 0 })
      expect(existsSync(join(path, "made"))).toBe(true)
      yield* Effect.promise(async () => approving)
    })
  )
})
