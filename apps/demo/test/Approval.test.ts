import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { vi } from "vitest"
import type * as Script from "../../../packages/models/test/servers/Script.ts"
import { serve } from "../../../packages/models/test/servers/serve.ts"
import * as Wire from "../../../packages/models/test/servers/Wire.ts"
import * as OwnGuard from "../src/approval/OwnGuard.ts"
import { finished, own, standardFile, start, startWith } from "./process.ts"
import { bundle } from "./paths.ts"

vi.setConfig({ testTimeout: 120_000 })

const program = join(bundle, "main.mjs")
const done = (...args: ReadonlyArray<string>) => Effect.promise(() => finished(start(...args)))
const idIn = (text: string) => /demo-[0-9a-f-]{36}/.exec(text)?.[0] ?? ""

/** A folder of the user's, whose tests pass; `test` is what they do besides. */
const folder = (test = ""): string => {
  const path = join(own.temporary, "own")
  mkdirSync(path)
  writeFileSync(join(path, "package.json"), '{ "type": "module", "scripts": { "test": "node --test" } }')
  writeFileSync(join(path, "a.test.js"), `import test from "node:test"\ntest("a", () => {})\n${test}\n`)
  return path
}

type Call = Script.Call
/** A model that calls these, one after the other, and then says that it is done. */
const calling =
  (...replies: ReadonlyArray<ReadonlyArray<Call>>): Script.Script =>
  (body) => {
    const said = Wire.objects(body["messages"]).filter(({ role }) => role === "assistant").length
    const calls = replies[said]
    return calls === undefined ? { text: "Done." } : { text: "", calls }
  }
const shell = (command: string): Call => ({ name: "shell", args: { command } })

/** The model, and how the demo reaches it. */
const model = Effect.fnUntraced(function* (script: Script.Script) {
  const server = yield* serve({ protocol: "openai-chat", script, apiKey: "key" })
  const flags = ["--model", "openai-compatible:llama", "--base-url", `${server.url}/v1`]
  const env = { OPENAI_COMPATIBLE_API_KEY: "key" }
  const demo = (...args: ReadonlyArray<string>) => Effect.promise(() => finished(startWith(env, ...args, ...flags)))
  return { demo, env, flags, server }
})

/** The last events of that kind. */
const eventsOf = (runId: string, tag: string) =>
  Effect.map(done("events", runId, "--json"), ({ out }) =>
    out
      .trimEnd()
      .split("\n")
      .map((line) => Wire.object(Wire.object(Wire.parse(line))["event"]))
      .filter(({ _tag }) => _tag === tag)
  )

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
        expect(approved).toMatchObject({ code: 0, err: "", out: expect.stringContaining(`resume ${runId}`) })
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
      const { demo } = yield* model(
        calling([shell("touch marker"), { name: "run_tests" }], [shell(`node ${program} approve x t1.0`)])
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

  it("refuses commands that name the demo or its store in any quoting, and no others", () => {
    const places = [standardFile(), "runs.db"]
    const refused = [
      "npm run demo -- approve r t1.0",
      "np'm' run \"demo\" -- deny r t1.0",
      "n\\pm run demo",
      `sqlite3 ${standardFile()} .dump`,
      "cat ~/.local/share/waystone/runs.db",
      "cat ru'n's.db-wal",
      "env -u WAYSTONE_AGENT sh",
      "node x.mjs demo approve r t1.0"
    ]
    expect(refused.filter((command) => OwnGuard.objection(command, places) === undefined)).toEqual([])
    const allowed = ["npm test", "git status", "ls -la", "echo demonstrate", "npm run build"]
    expect(allowed.filter((command) => OwnGuard.objection(command, places) !== undefined)).toEqual([])
  })
})
