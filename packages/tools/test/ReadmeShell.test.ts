import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { readFileSync } from "node:fs"
import { linux, watched, cwd } from "./support/commands.ts"
import { parts } from "./support/readme.shell.ts"

const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8")
const bare = (code: string) => code.replace(/\s/g, "")
const [, shell = ""] = read("../README.md").split("## Commands and the shell")
const blocks = [...shell.matchAll(/```ts\n([\s\S]*?)```/g)].map((match) => match[1] ?? "")

describe.skipIf(!linux)("README, commands and the shell", () => {
  watched()

  it("shows code that compiles", () => {
    expect(blocks.length).toBe(2)
    const compiled = bare(read("./support/readme.shell.ts"))
    for (const block of blocks) expect(compiled).toContain(bare(block))
  })

  it.live("shows what comes of it", () =>
    Effect.gen(function* () {
      const result = yield* parts(cwd()).program
      expect(result).toMatchObject({
        status: "exited",
        exitCode: 0,
        output: "built\n",
        killed: [{ command: "sleep 60" }]
      })
    })
  )
})
