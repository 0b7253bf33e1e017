import { describe, expect, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const example = new URL("./fixtures/readme-files.ts", import.meta.url)
const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8")

describe("README, files", () => {
  it("shows code that is compiled", () => {
    const code = readFileSync(example, "utf8").trim()
    expect(readme).toContain(`\`\`\`ts\n${code}\n\`\`\``)
  })

  it("shows code that does what it says", () => {
    const temporary = mkdtempSync(join(tmpdir(), "waystone-tools-"))
    try {
      const output = execFileSync(process.execPath, ["--conditions=@waystone/source", fileURLToPath(example)], {
        encoding: "utf8",
        env: { ...process.env, TMPDIR: temporary }
      })
      expect(output).toBe("Completed Hello World\n\n")
    } finally {
      rmSync(temporary, { recursive: true, force: true })
    }
  })
})
