import { describe, expect, it } from "@effect/vitest"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, vi } from "vitest"

vi.setConfig({ testTimeout: 60_000 })

const main = join(import.meta.dirname, "../src/main.ts")
let temporary = ""

beforeEach(() => {
  temporary = mkdtempSync(join(tmpdir(), "waystone-demo-test-"))
})
afterEach(() => {
  rmSync(temporary, { recursive: true })
})

/** The command itself, in a process of its own with a temporary folder of its own. */
const start = (...args: ReadonlyArray<string>): ChildProcess =>
  spawn(process.execPath, ["--conditions=@waystone/source", main, ...args], {
    env: { PATH: process.env["PATH"], TMPDIR: temporary },
    stdio: ["ignore", "pipe", "pipe"]
  })

const finished = async (child: ChildProcess, onOutput?: (out: string) => void) => {
  let out = ""
  let err = ""
  child.stdout?.on("data", (chunk) => {
    out += String(chunk)
    onOutput?.(out)
  })
  child.stderr?.on("data", (chunk) => (err += String(chunk)))
  await once(child, "close")
  return { code: child.exitCode, out, err }
}

describe("the command", () => {
  it("shows the failing test before and the passing tests after, exits with 0 and leaves nothing behind", async () => {
    const { code, err, out } = await finished(start())
    expect({ code, err }).toEqual({ code: 0, err: "" })
    const [before = "", after = ""] = out.split("The tests, run once more by the demo itself")
    expect(before).toContain('7 of 9 tests pass; failing: "ten pieces get 15 percent off"')
    expect(before).toContain("+++ b/src/cart.js")
    expect(before).toMatch(
      /Turn 1[^]*✓ list_files \d+ ms[^]*✓ edit_file src\/cart\.js \d+ ms[^]*\d+ tokens in, \d+ out/
    )
    expect(after).toContain("9 of 9 tests pass")
    expect(after).toMatch(/Repaired\. run demo-[0-9a-f-]{36}/)
    // No terminal, no colours.
    expect(out).not.toContain("\u001b")
    expect(readdirSync(temporary)).toEqual([])
  })

  it("--json prints one object a line, each as it happens, with a seq that grows by one", async () => {
    const { code, out } = await finished(start("--json"))
    expect(code).toBe(0)
    const lines = out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line))
    const seqs = lines.filter(({ _tag }) => _tag === "Committed").map(({ seq }) => seq)
    expect(seqs.length).toBeGreaterThan(10)
    expect(seqs).toEqual(seqs.map((_, index) => index + 1))
    expect(lines.filter(({ _tag }) => _tag === "TextDelta").length).toBeGreaterThan(30)
    expect(lines.at(-2)).toMatchObject({ _tag: "Ended", outcome: { _tag: "Completed" } })
    expect(lines.at(-1)).toMatchObject({ _tag: "Verified", repaired: true, report: { passed: 9, tests: 9 } })
  })

  it.skipIf(process.platform === "win32")("Ctrl-C ends it at once, the child process and the copy too", async () => {
    const child = start()
    const { code, out } = await finished(child, (out) => {
      if (out.includes("… run_tests")) child.kill("SIGINT")
    })
    expect(code).toBe(130)
    expect(out).not.toContain("✓ run_tests")
    expect(readdirSync(temporary)).toEqual([])
  })

  it("--help says what it does and how to call it", async () => {
    const { code, out } = await finished(start("--help"))
    expect(code).toBe(0)
    expect(out).toContain("--json")
    expect(out).toContain("npm run --silent demo -- --json")
  })

  it("an unknown option is an error", async () => {
    const { code } = await finished(start("--jsn"))
    expect(code).toBe(1)
  })
})
