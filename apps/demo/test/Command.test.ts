import { describe, expect, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { once } from "node:events"
import { cpSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { vi } from "vitest"
import * as Bugs from "../src/Bugs.ts"
import { bundled } from "../src/Project.ts"
import { main } from "./paths.ts"
import { finished, own, start, startSources } from "./process.ts"

vi.setConfig({ testTimeout: 120_000 })

/** A copy of the bundled project, in a folder of the user's. */
const ownFolder = (): string => {
  const folder = join(own.temporary, "own")
  cpSync(bundled, folder, { recursive: true })
  mkdirSync(join(folder, "node_modules/dependency"), { recursive: true })
  return folder
}
const sourceIn = (folder: string): string => readFileSync(join(folder, Bugs.file), "utf8")

describe("the command", () => {
  it("tells what the agent did and why it stopped, exits with 0 and leaves nothing behind", async () => {
    const { code, err, out } = await finished(startSources())
    expect({ code, err }).toEqual({ code: 0, err: "" })
    // No terminal, no colours.
    expect(out).not.toContain("\u001b")
    expect(readdirSync(own.temporary)).toEqual([])
    const masked = out.replace(/\d+ ms/g, "<time>").replace(/demo-[0-9a-f-]{36}/g, "<run>")
    await expect(masked).toMatchFileSnapshot("golden/normal.txt")
  })

  it("--json prints one object a line, with a seq that grows by one", async () => {
    const { code, out } = await finished(start("--json"))
    expect(code).toBe(0)
    const lines = out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line))
    expect(lines[0]).toMatchObject({ _tag: "Began", source: { _tag: "Bundled" } })
    const seqs = lines.filter(({ _tag }) => _tag === "Committed").map(({ seq }) => seq)
    expect(seqs.length).toBeGreaterThan(10)
    expect(seqs).toEqual(seqs.map((_, index) => index + 1))
    expect(lines.filter(({ _tag }) => _tag === "TextDelta").length).toBeGreaterThan(30)
    expect(lines.at(-2)).toMatchObject({ _tag: "Ended", outcome: { _tag: "Completed" } })
    expect(lines.at(-1)).toMatchObject({ _tag: "Verified", repaired: true, report: { passed: 9, tests: 9 } })
  })

  it.skipIf(process.platform === "win32")("--json prints each line as it happens", async () => {
    const child = start("--json")
    // Whoever sees that a call has begun can still stop the run before the call has ended.
    const { code, out } = await finished(child, (out) => {
      if (/"CallStarted".*"run_tests"/.test(out)) child.kill("SIGINT")
    })
    expect(code).toBe(130)
    expect(out).not.toMatch(/"ToolCallCompleted".*"run_tests"/)
    expect(out).not.toContain('"Verified"')
  })

  it("--bug 4 is not, and both the answer and the exit code say so", async () => {
    const { code, out } = await finished(start("--bug", "4"))
    expect(code).toBe(1)
    expect(out).toContain(`in which ${Bugs.planted[3].title}.`)
    expect(out).toContain("I cannot repair it: ")
    expect(out).toContain("No file was changed.")
    expect(out).toContain("Not repaired.")
  })

  it("--scenario ends with one line that says what was proven", async () => {
    const { code, out } = await finished(start("--scenario", "tool-failure"))
    expect(code).toBe(0)
    expect(out.trimEnd().split("\n").at(-1)).toMatch(/^Proven \(tool-failure\): the crash is an error result/)
  })

  it.skipIf(process.platform === "win32").each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
    "%s ends it at once, the child process and, where nothing is kept, the copy too, and it says so",
    async (signal) => {
      const child = start("--store", "memory")
      const { code, out } = await finished(child, (out) => {
        if (out.includes("… run_tests")) child.kill(signal)
      })
      expect(code).toBe(130)
      expect(out).not.toContain("✓ run_tests")
      expect(out).toContain("Interrupted: the run did not come to its end.\nNo file is changed.")
      expect(readdirSync(own.temporary)).toEqual([])
    }
  )

  it("a reader that goes away ends it without a word", async () => {
    const child = start("--store", "memory")
    child.stdout?.once("data", () => child.stdout?.destroy())
    let err = ""
    child.stderr?.on("data", (chunk) => (err += String(chunk)))
    await once(child, "close")
    expect({ code: child.exitCode, err }).toEqual({ code: 141, err: "" })
    expect(readdirSync(own.temporary)).toEqual([])
  })
})

describe("--dir", () => {
  it("works in place, after saying so, and the offline model says what it makes of a task", async () => {
    const folder = ownFolder()
    const { code, out } = await finished(start("--dir", folder, "Write me a poem"))
    expect(code).toBe(0)
    expect(out).toContain("Task: Write me a poem")
    expect(out.replace(/\s+/g, " ")).toContain("I follow a script and can only repair what tests say is wrong")
    expect(out.split("Turn 1")[0]).toContain(`It works in place: files in ${folder} may be changed.`)
    expect(sourceIn(folder)).toBe(sourceIn(bundled).replace(Bugs.bundled.wrong, Bugs.bundled.right))
    expect(readdirSync(own.temporary)).toEqual(["own"])
  })

  it.skipIf(process.platform === "win32")("a signal in the middle of an edit's test says what is changed", async () => {
    const child = start("--dir", ownFolder())
    const { code, out } = await finished(child, (out) => {
      if (/edit_file[^]*… run_tests/.test(out)) child.kill("SIGINT")
    })
    expect(code).toBe(130)
    expect(out.split("Interrupted:")[1]).toContain(`+  return ${Bugs.bundled.right}`)
  })

  it("--copy leaves the folder alone, and keeps the copy, pipes left out", async () => {
    const folder = ownFolder()
    execFileSync("mkfifo", [join(folder, "pipe")])
    const { code, out } = await finished(start("--copy", "--dir", folder))
    expect(code).toBe(0)
    expect(sourceIn(folder)).toBe(sourceIn(bundled))
    const copy = /The copy is kept in (.*)/.exec(out)?.[1] ?? ""
    expect(sourceIn(copy)).toContain(Bugs.bundled.right)
    expect(lstatSync(join(copy, "node_modules")).isSymbolicLink()).toBe(true)
    expect(existsSync(join(copy, "node_modules/dependency"))).toBe(true)
  })
})

describe("what is asked for wrongly is said, and nothing is run", () => {
  it.each([
    [["--jsn"], "--jsn"],
    [["--bug", "5"], "there are bugs 1 to 4, not 5"],
    [["--bug", "1", "--dir", "."], "--bug is for the bundled project"],
    [["--scenario", "normal", "--dir", "."], "--scenario is for the bundled project"],
    [["--scenario", "nonsense"], "tool-failure"],
    [["--copy"], "--copy needs --dir"],
    [["do something"], "a task needs --dir"],
    [["--dir", "/no/such/folder"], "There is no folder /no/such/folder"],
    [["--dir", main], "main.ts is not a folder"],
    [["--dir", main, "--copy"], "main.ts is not a folder"],
    [["--dir", ""], "--dir is empty"],
    [["--dir", "/tmp", "--copy"], "holds the folder for temporary files"],
    [["--test-limit", "0"], "1 to 1800 seconds"]
  ])("%j", async (args, said) => {
    const { code, err, out } = await finished(start(...args))
    expect(code).toBe(1)
    expect(out + err).toContain(said)
    expect(out + err).not.toMatch(/Turn 1|\n\s+at /)
    expect(readdirSync(own.temporary)).toEqual([])
  })

  it("--help says what it does and how to call it", async () => {
    const { code, out } = await finished(start("--help"))
    expect(code).toBe(0)
    for (const said of ["--json", "--dir", "--copy", "--bug", "--scenario", "npm run --silent demo -- --json"]) {
      expect(out).toContain(said)
    }
  })
})
