import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import type { RunEvent } from "@waystone/core"
import { readdirSync, readlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { vi } from "vitest"
import * as Server from "../../../packages/checkpoint-redis/test/support/server.ts"
import type * as Calls from "../src/Calls.ts"
import type { Events, Seen } from "../src/scenario/Claims.ts"
import * as TeamProof from "../src/scenario/TeamProof.ts"
import { idIn } from "./misled.ts"
import { finished, own, start } from "./process.ts"

vi.setConfig({ testTimeout: 120_000 })

const demo = (...args: ReadonlyArray<string>) => finished(start(...args))
const lines = (out: string) =>
  out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line))
const journal = async (runId: string): Promise<Events> =>
  lines((await demo("events", runId, "--json")).out).map(({ event }): RunEvent.RunEvent => event)

describe.skipIf(process.platform === "win32")("--scenario team", () => {
  it("shows both workers beside each other, a line each, and is proven", async () => {
    const { code, err, out } = await demo("--scenario", "team")
    expect({ code, err }).toEqual({ code: 0, err: "" })
    const of = (worker: string) =>
      out
        .split("\n")
        .flatMap((line) => (line.startsWith(`    ${worker} │ `) ? [line.slice(worker.length + 7)] : []))
        .map((line) => line.replace(/ \d+ ms/, ""))
    expect(of("points")).toEqual([
      "I will look at what is there and run the tests.",
      "✓ list_files  5 files: package.json, src/cart.js, src/points.js, test/cart.test.js, test/points.test.js",
      '✓ run_tests  2 of 3 tests pass; failing: "a euro that is not whole is none"',
      'The test "a euro that is not whole is none" (test/points.test.js:10) expects 19 and gets 20. I will read that test.',
      "✓ read_files test/points.test.js  16 lines",
      "The test is about src/points.js. I will read it.",
      "✓ read_files src/points.js  14 lines",
      "In src/points.js, line 8, `Math.ceil` stands where `Math.floor` belongs: `return Math.ceil(cents / centsPerPoint)`. I make it `return Math.floor(cents / centsPerPoint)` and run the tests again.",
      "✓ edit_file src/points.js  changed at line 8",
      "✓ run_tests  3 of 3 tests pass",
      'The mistake was in src/points.js, line 8, `return Math.ceil(cents / centsPerPoint)`: `Math.ceil` stands where `Math.floor` belongs. The test "a euro that is not whole is none" (test/points.test.js:10) expected 19 and got 20. Now 3 of 3 tests pass.'
    ])
    expect(of("cart").filter((line) => line.startsWith("✓ edit_file"))).toEqual([
      "✓ edit_file src/cart.js  changed at line 20"
    ])
    expect(out.trimEnd().split("\n").at(-1)).toMatch(
      /^Proven \(team\): 2 workers were asked in one reply \(t2\.0, t2\.1\); they worked at the same time; each changed one file, and no other \(src\/cart\.js, src\/points\.js\); each of the 17 calls of the 3 runs has exactly one result; the planner's journal counts what they used \(\d+ tokens, \d+ tokens\); \S+\.t2\.0 is completed; \S+\.t2\.1 is completed; the run is completed in 4 turns; the project is repaired\.$/
    )
    expect(readdirSync(own.temporary)).toEqual([])
  })

  it("with --crash both are killed inside an edit, and neither edit is made twice; runs and show tell of all three", async () => {
    const { code, err, out } = await demo("--scenario", "team", "--crash", "--json")
    expect({ code, err }).toEqual({ code: 0, err: "" })
    const shown = lines(out)
    const { line, proven } = shown.at(-1)
    expect({ proven }, line).toEqual({ proven: true })
    expect(line).toMatch(
      /^the first process died by SIGKILL while both workers were inside edit_file \(t2\.0\/t4\.0\) and edit_file \(t2\.1\/t4\.0\); .*; neither edit was started again: their results were read from the files \(reconciled\); src\/cart\.js and src\/points\.js were written exactly once each, by the process that died \(pid \d+\), and by no other; /
    )
    expect(readdirSync(own.temporary)).toEqual([])
    const runId = idIn(out)
    const runs = (await demo("runs")).out.trimEnd().split("\n")
    expect(runs.slice(1)).toEqual([expect.stringMatching(new RegExp(`^${runId} +completed +planner `))])
    const seen = (await demo("show", runId)).out
    for (const call of ["t2.0", "t2.1"]) {
      expect(seen).toMatch(
        new RegExp(
          `✓ ${call} delegate .*\n      worker ${runId}\\.${call}: completed, 5 turns in \\d+ (?:s|min), \\d+ in, \\d+ out\n`
        )
      )
    }
    const child = `${runId}.t2.0`
    expect((await demo("show", child)).out).toContain(`part of  ${runId}, as call t2.0 of ${runId}`)
    for (const verb of ["pause", "fork", "resume", "cancel"]) {
      const refused = await demo(verb, child)
      expect(refused, verb).toMatchObject({ code: 1, out: "" })
      expect(refused.err, verb).toMatch(new RegExp(`^demo: Run ${child} is the Run of a sub-agent: .* ${runId}\\.\n$`))
    }

    // The same proof of journals and files that are not so does not hold.
    const root = await journal(runId)
    const first = await journal(child)
    const second = await journal(`${runId}.t2.1`)
    const workers = (one: Events, other: Events) =>
      new Map([
        [child, one],
        [`${runId}.t2.1`, other]
      ])
    const crashed = shown.find(({ _tag }) => _tag === "Crashed")
    const verified = shown.find(({ _tag }) => _tag === "Verified")
    const writes = [...line.matchAll(/pid (\d+)/g)].flatMap(([, pid]) =>
      ["src/cart.js", "src/points.js"].map((path) => ({ pid: Number(pid), path }))
    )
    const death = { pid: writes[0]?.pid ?? 0, signal: crashed.signal, at: 0 }
    const good: Seen = { changes: verified.changes, writes, below: workers(first, second) }
    const failing = (events: Events, seen: Seen, of = death) =>
      TeamProof.proveCrash(of)(events, seen).flatMap(({ claim, holds }, i) => (holds ? [] : [`${i} ${claim}`]))
    const other = (events: Events) => ({ ...good, below: workers(events, second) })
    expect(failing(root, good)).toEqual([])
    expect(failing(root, good, { ...death, signal: "SIGTERM" })).toEqual([expect.stringMatching(/^0 /)])
    const edit = first.find((event) => event._tag === "ToolCallStarted" && event.name === "edit_file")
    const again = [...first, ...(edit === undefined ? [] : [edit])]
    expect(failing(root, other(again))).toEqual([expect.stringMatching(/^3 neither edit/)])
    const list = first.find((event) => event._tag === "ToolCallCompleted")
    const repeated = [...first, ...(list === undefined ? [] : [list])]
    expect(failing(root, other(repeated))).toEqual([
      expect.stringMatching(/^2 none of the \d+ calls/),
      expect.stringMatching(/^8 each of the \d+ calls/)
    ])
    expect(failing(root, { ...good, writes: [...writes, ...writes.slice(0, 1)] })).toEqual([
      expect.stringMatching(/^4 /)
    ])
    expect(failing(root, { ...good, changes: good.changes.slice(0, 1) })).toEqual([
      expect.stringMatching(/^7 each changed/)
    ])
    const late = second.map((event) => ({ ...event, at: event.at + 3_600_000 }))
    expect(failing(root, { ...good, below: workers(first, late) })).toEqual(["6 they worked at the same time"])
    const unpaid = root.map((event) => {
      if (event._tag !== "ToolCallCompleted" || event.child === undefined) return event
      const { child: _, ...rest } = event
      return rest
    })
    expect(failing(unpaid, good)).toEqual([expect.stringMatching(/^9 the planner's journal counts/)])
  })

  it("a worker's question is its planner's: approvals shows the way to it, and an answer from another terminal reaches it", async () => {
    const policy = join(own.home, "policy.json")
    const rules = [
      { action: "ask", tools: ["run_tests"], when: { "files.*": { equals: "test/points.test.js" } } },
      { action: "allow", tools: ["edit_file", "run_tests", "delegate"] }
    ]
    writeFileSync(policy, JSON.stringify({ rules }))
    const asked = await demo("--scenario", "team", "--policy", policy)
    const runId = idIn(asked.out)
    expect(asked.out).toContain("run_tests waits (approval)")
    const listed = (await demo("approvals")).out
    expect(listed).toContain("May it? run_tests t2.1/t1.1")
    expect(listed.match(/May it\?/g)).toHaveLength(1)
    expect((await demo("show", runId)).out).toContain(`approve ${runId} t2.1/t1.1`)
    expect(await demo("approve", runId, "t2.1/t4.9")).toMatchObject({ code: 1, out: "" })
    expect(await demo("approve", runId, "t2.1/t1.1", "--always")).toMatchObject({ code: 0, err: "" })
    const { code, out } = await demo("resume", runId, "--policy", policy)
    expect({ code }, out).toEqual({ code: 0 })
    expect(out).toContain("Repaired.")
  })

  it.skipIf(process.platform !== "linux")(
    "cancel ends the planner and both workers, and leaves no process, lease or reservation",
    async () => {
      const child = start("--scenario", "team", "--json")
      let cancelling: Promise<{ readonly code: number | null }> | undefined
      const { code, out } = await finished(child, (out) => {
        const testing = out.match(/"ChildProgress".*"ToolCallStarted".*"run_tests"/g) ?? []
        if (testing.length > 1) cancelling ??= demo("cancel", idIn(out), "--reason", "enough")
      })
      expect(code).toBe(1)
      expect((await cancelling)?.code).toBe(0)
      const runId = idIn(out)
      const ids = [runId, `${runId}.t2.0`, `${runId}.t2.1`]
      const shown = await Promise.all(ids.map((id) => demo("show", id, "--json")))
      for (const one of shown) {
        const info = lines(one.out)[0]
        expect(info).toMatchObject({ status: "cancelled", waiting: [] })
        expect(info).not.toHaveProperty("owner")
        // A call holds what it has reserved until it has a result.
        expect(info.calls.length).toBeGreaterThan(0)
        expect(info.calls.filter(({ ending }: Calls.Call) => ending === undefined)).toEqual([])
      }
      const there = readdirSync("/proc").flatMap((pid) => {
        try {
          const folder = readlinkSync(`/proc/${pid}/cwd`)
          return folder.startsWith(own.temporary) ? [`${pid} ${folder}`] : []
        } catch {
          return [] // no process, or somebody else's
        }
      })
      expect(there).toEqual([])
    }
  )

  it.each([
    [["--crash"], "--crash is for --scenario team alone; there is --scenario crash."],
    [
      ["--scenario", "team", "--crash", "--store", "memory"],
      "--scenario team --crash needs a store that survives its process: leave out --store memory."
    ]
  ])("%j is refused with the reason", async (args, reason) => {
    expect(await demo(...args)).toMatchObject({ code: 1, out: "", err: `demo: ${reason}\n` })
  })
})

describe.skipIf(!Server.canStart)("--scenario team on Redis", () => {
  let server: Server.Server | undefined
  beforeAll(async () => {
    server = await Server.start()
  })
  afterAll(() => server?.stop())

  it("with --crash is proven", async () => {
    const { code, err, out } = await demo("--scenario", "team", "--crash", "--store", server?.url ?? "")
    expect({ code, err }, out).toEqual({ code: 0, err: "" })
    expect(out.trimEnd().split("\n").at(-1)).toMatch(/^Proven \(team\): the first process died by SIGKILL/)
  })
})
