import { describe, expect, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8")
const fixture = (name: string) => new URL(`./fixtures/readme-${name}.ts`, import.meta.url)

describe("README, LoopGuard, Sanitizer and Breaker", () => {
  it.each([
    ["loop-guard", "Stopped Loop 4\n"],
    [
      "sanitizer",
      '{"id":"[redacted:pattern]","password":"[redacted:field]","note":"the words are [redacted:value]"}\n'
    ],
    [
      "breaker",
      '{"error":"fetch was not called: it failed 2 times in a row and is left alone for 1m more. ' +
        'Do something else first, or say that it is not available."}\n'
    ]
  ])("shows code that compiles, with its imports, and what comes of it: %s", async (name, output) => {
    expect(readme).toContain(`\`\`\`ts\n${readFileSync(fixture(name), "utf8").trim()}\n\`\`\``)
    const run = promisify(execFile)(process.execPath, ["--conditions=@waystone/source", fileURLToPath(fixture(name))])
    expect(await run).toEqual({ stdout: output, stderr: "" })
  })
})
