import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { first, registers } from "./support/readme.ts"

const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8")
/** Code without white space, comments and what only one of the two places needs. */
const bare = (code: string) =>
  code
    .split("\n")
    .filter((line) => !/^(import|\} from) /.test(line))
    .map((line) => line.replace(/(^|\s)\/\/.*$/, ""))
    .join("")
    .replaceAll("export ", "")
    .replace(/\s/g, "")

const compiled = bare(read("./support/readme.ts"))
const blocks = [...read("../../../README.md").matchAll(/```ts\n([\s\S]*?)```/g)].map((match) => match[1] ?? "")

describe("README.md", () => {
  it.each(blocks)("shows code that compiles: %s", (block) => {
    // A block is whole statements; each of them stands in the compiled file.
    for (const statement of block.split(/\n(?=\S)(?![}\])])/)) expect(compiled).toContain(bare(statement))
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
