import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import * as Policies from "../src/PermissionPolicy.ts"
import * as Effect from "effect/Effect"
import { outcome } from "./support/readmePermissions.ts"

const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8")
const bare = (code: string) =>
  code
    .split("\n")
    .filter((line) => !/^(import|\/\*\*)/.test(line))
    .join("")
    .replaceAll("export ", "")
    .replace(/,(?=\s*[\])}])/g, "")
    .replace(/\s/g, "")

const section = (/^## Permissions\n([^]*?)(?=^## |$(?![^]))/m.exec(read("../README.md"))?.[1] ?? "").trim()
const blocks = (language: string) =>
  [...section.matchAll(new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``, "g"))].map((match) => match[1] ?? "")

describe("README, Permissions", () => {
  it("shows code that compiles", () => {
    const compiled = bare(read("support/readmePermissions.ts"))
    expect(blocks("ts").length).toBe(1)
    for (const block of blocks("ts")) expect(compiled).toContain(bare(block))
  })

  it("its second refund waits for a person", async () => {
    expect(await outcome).toMatchObject({
      _tag: "Suspended",
      waiting: [{ id: "t2.0", guard: "permissions", reason: "refund needs approval (rule large refunds)" }]
    })
  })

  it("shows a file that is a policy", async () => {
    expect(blocks("json").length).toBe(1)
    for (const block of blocks("json")) await Effect.runPromise(Policies.decodeJson(block))
  })
})
