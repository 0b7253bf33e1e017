import { describe, expect, it } from "@effect/vitest"
import { bare, blocksOf, read, statementsOf } from "./support/blocks.ts"
import { first, registers } from "./support/readme.ts"

const compiled = bare(read("support/readme.ts"))
const blocks = blocksOf(read("../../../README.md"))

describe("README.md", () => {
  it.each(blocks)("shows code that compiles: %s", (block) => {
    for (const statement of statementsOf(block)) expect(compiled).toContain(statement)
  })

  it("shows code", () => {
    expect(blocks.length).toBeGreaterThan(0)
  })

  it("runs the first agent, in at most 25 lines and 6 imported names of ours and effect's", async () => {
    expect(await first()).toMatchObject({ _tag: "Completed", output: "4 degrees" })
    const lines = (blocks[0] ?? "").split("\n").filter((line) => line.trim() !== "" && !line.startsWith("//"))
    expect(lines.length).toBeLessThanOrEqual(25)
  })

  registers()
})
