import { describe, expect, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

const fixture = fileURLToPath(new URL("./fixtures/readme-approvals.ts", import.meta.url))
const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8")

describe("README, approvals", () => {
  it("shows code that compiles, with its imports", () => {
    expect(readme).toContain(`\`\`\`ts\n${readFileSync(fixture, "utf8").trim()}\n\`\`\``)
  })

  it("shows what comes of it", () => {
    const output = execFileSync(process.execPath, ["--conditions=@waystone/source", fixture], { encoding: "utf8" })
    expect(output).toBe("Completed\n")
  })
})
