import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import type { RunEvent } from "@waystone/core"
import { mkdtempSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { vi } from "vitest"
import * as Server from "../../../packages/checkpoint-redis/test/support/server.ts"
import * as Bugs from "../src/Bugs.ts"
import type { Seen } from "../src/scenario/Claims.ts"
import * as CrashProof from "../src/scenario/CrashProof.ts"
import { finished, own, start } from "./process.ts"

vi.setConfig({ testTimeout: 400_000 })

const lines = (out: string) =>
  out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line))

describe.skipIf(process.platform === "win32")("--scenario crash on SQLite", () => {
  it("is proven, one object a line, and leaves nothing behind", async () => {
    const { code, err, out } = await finished(start("--scenario", "crash", "--json"))
    expect({ code, err }).toEqual({ code: 0, err: "" })
    const shown = lines(out)
    expect(shown.filter(({ _tag }) => _tag === "Began")).toHaveLength(2)
    expect(shown.find(({ _tag }) => _tag === "Crashed")).toMatchObject({
      signal: "SIGKILL",
      during: ["edit_file (t4.0)"]
    })
    const { line, proven } = shown.at(-1)
    expect(proven).toBe(true)
    expect(line).toMatch(
      /^the first process died by SIGKILL inside edit_file \(t4\.0\); a second attempt took the run over after \d+ ms; none of the 4 calls completed before was started again \(list_files t1\.0, .*\); edit_file was not started again: its result was read from the file \(reconciled\); the edit is in src\/cart\.js exactly once; src\/cart\.js was written exactly once, by the process that died \(pid \d+\), and by no other; each of the 6 calls has exactly one result; the run is completed in 5 turns; the project is repaired$/
    )
    expect(readdirSync(own.temporary)).toEqual([])
  })

  it("is refused where nothing survives, with the reason", async () => {
    const { code, err, out } = await finished(start("--scenario", "crash", "--store", "memory"))
    expect({ code, out }).toEqual({ code: 1, out: "" })
    expect(err).toBe("demo: --scenario crash needs a store that survives its process: leave out --store memory.\n")
  })
})

describe.skipIf(!Server.canStart)("--scenario crash, pause, cancel and prune on Redis", () => {
  const password = "sekret-of-the-test"
  let server: Server.Server | undefined
  beforeAll(async () => {
    server = await Server.start("--requirepass", password)
  })
  afterAll(() => server?.stop())

  it("is proven, and neither output nor journal has the password", async () => {
    const url = `redis://:${password}@127.0.0.1:${server?.port}/0`
    const { code, err, out } = await finished(start("--scenario", "crash", "--bug", "1", "--store", url))
    expect({ code, err }).toEqual({ code: 0, err: "" })
    expect(out.trimEnd().split("\n").at(-1)).toMatch(/^Proven \(crash\): the first process died by SIGKILL/)
    const id = /demo-[0-9a-f-]{36}/.exec(out)?.[0] ?? ""
    const events = await finished(start("events", id, "--store", url, "--json"))
    expect(lines(events.out).at(-1)).toMatchObject({ event: { _tag: "RunFinished" } })
    const folder = mkdtempSync(join(own.home, "fork-"))
    const forked = await finished(start("fork", id, "--at", "4", "--dir", folder, "--store", url))
    const fork = /demo-[0-9a-f-]{36}/.exec(forked.out)?.[0] ?? ""
    expect((await finished(start("pause", fork, "--store", url))).out).toContain(`Run ${fork} is paused.`)
    expect((await finished(start("cancel", fork, "--store", url))).out).toBe(`Run ${fork} is cancelled.\n`)
    expect((await finished(start("prune", "--store", url))).out).toBe("0 runs that have ended were removed.\n")
    const pruned = await finished(start("prune", "--older-than", "0 seconds", "--store", url))
    expect(pruned.out).toBe("2 runs that have ended were removed.\n")
    expect(forked.out).toContain(`--store '<your redis:// URL of 127.0.0.1:${server?.port}/0 again>'`)
    const wrong = await finished(start("runs", "--store", url.replace(password, "sekret-but-wrong")))
    expect(wrong.code).toBe(1)
    expect(out + err + events.out + events.err + forked.out + forked.err + wrong.out + wrong.err).not.toContain(
      "sekret"
    )
    expect(readdirSync(own.temporary)).toEqual([])
  })
})

describe("the proof of crash can fail", () => {
  const death = { pid: 7, signal: "SIGKILL", at: 1_000 }
  const call = (id: number, name: string) => ({ callId: `t1.${id}`, name })
  const part = (id: number, name: string, params: RunEvent.Of<"ToolCallStarted">["arguments"]) =>
    ({ type: "tool-call", id: `p${id}`, name, params: params ?? {}, providerExecuted: false }) as const
  const edit = { path: Bugs.file, old_text: "a", new_text: "b" }
  const turn: RunEvent.RunEvent = {
    _tag: "TurnCompleted",
    at: 0,
    turn: 1,
    finish: "tool-calls",
    usage: { input: 0, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 },
    reply: [part(0, "list_files", {}), part(1, "edit_file", edit)]
  }
  const attempt = (attempt: number, at: number, recovered = attempt > 1): RunEvent.RunEvent => ({
    _tag: "AttemptStarted",
    at,
    attempt,
    owner: "o",
    recovered
  })
  const result = (id: number, name: string, ending: "executed" | "reconciled"): RunEvent.RunEvent => ({
    _tag: "ToolCallCompleted",
    at: 0,
    ...call(id, name),
    isFailure: false,
    result: {},
    ending
  })
  const started = (id: number, name: string): RunEvent.RunEvent => ({
    _tag: "ToolCallStarted",
    at: 0,
    ...call(id, name),
    effect: "unsafe",
    key: "k"
  })
  const end: RunEvent.RunEvent = { _tag: "RunFinished", at: 0, outcome: { _tag: "Completed", output: "" } }
  const list = result(0, "list_files", "executed")
  const before = [attempt(1, 0), turn, list, started(1, "edit_file")]
  const reconciled = result(1, "edit_file", "reconciled")
  const good = [...before, attempt(2, 1_100), reconciled, end]
  const seen = { changes: [{ path: Bugs.file, before: "a", after: "b" }] }
  const wrote = (...pids: ReadonlyArray<number>) => pids.map((pid) => ({ pid, path: Bugs.file }))
  interface Other {
    readonly death?: CrashProof.Death
    readonly after?: string
    readonly writes?: Seen["writes"]
  }
  const failing = (
    events: ReadonlyArray<RunEvent.RunEvent>,
    { after = "b", death: how = death, writes = wrote(death.pid) }: Other = {}
  ) =>
    CrashProof.prove(how)(events, { changes: seen.changes.map((change) => ({ ...change, after })), writes })
      .filter(({ holds }) => !holds)
      .map(({ claim }) => claim.replace(/ \(.*| after .*|:.*/, ""))

  it.each([
    ["holds", failing(good), []],
    [
      "a process that ended by itself",
      failing(good, { death: { ...death, signal: undefined } }),
      ["the first process died by SIGKILL inside edit_file"]
    ],
    [
      "a takeover of a Run that nobody had left",
      failing([...before, attempt(2, 1_100, false), reconciled, end]),
      ["a second attempt took the run over"]
    ],
    [
      "a call that is made again",
      failing([...before, attempt(2, 1_100), started(0, "list_files"), reconciled, end]),
      ["none of the 1 calls completed before was started again"]
    ],
    [
      "an edit that is made again",
      failing([...before, attempt(2, 1_100), started(1, "edit_file"), reconciled, end]),
      ["edit_file was not started again"]
    ],
    [
      "an edit that only ran",
      failing([...before, attempt(2, 1_100), result(1, "edit_file", "executed"), end]),
      ["edit_file was not started again"]
    ],
    ["an edit that is in the file twice", failing(good, { after: "bb" }), ["the edit is in src/cart.js exactly once"]],
    [
      "a write that both made",
      failing(good, { writes: wrote(7, 8) }),
      ["src/cart.js was written exactly once, by the process that died"]
    ],
    [
      "a write that another made",
      failing(good, { writes: wrote(8) }),
      ["src/cart.js was written exactly once, by the process that died"]
    ],
    [
      "a write that nobody made",
      failing(good, { writes: [] }),
      ["src/cart.js was written exactly once, by the process that died"]
    ],
    [
      "a call with two results",
      failing([...good.slice(0, -1), reconciled, end]),
      ["each of the 2 calls has exactly one result"]
    ],
    ["a Run without an end", failing(good.slice(0, -1)), ["the run is completed in 1 turns"]]
  ])("%s", (_, found, expected) => {
    expect(found).toEqual(expected)
  })
})
