import { describe, expect, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import * as Effect from "effect/Effect"
import * as TestServer from "./support/server.ts"

const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8")
const bare = (code: string) =>
  code
    .split("\n")
    .filter((line) => !line.startsWith("import "))
    .map((line) => line.replace(/(^|\s)\/\/.*$/, ""))
    .join("")
    .replaceAll("export ", "")
    .replace(/\s/g, "")

const compiled = bare(read("./support/readme.ts"))
const blocks = [...read("../README.md").matchAll(/```ts\n([\s\S]*?)```/g)].map((match) => match[1] ?? "")

describe("README.md", () => {
  it("shows code that compiles", () => {
    expect(blocks).toHaveLength(2)
    for (const statement of blocks.flatMap((block) => block.split(/\n\n/))) expect(compiled).toContain(bare(statement))
  })

  it.live.skipIf(!TestServer.canStart)("shows code that runs", () =>
    Effect.gen(function* () {
      const server = yield* TestServer.scoped()
      const before = process.env["REDIS_URL"]
      process.env["REDIS_URL"] = server.url
      const readme = yield* Effect.promise(() => import("./support/readme.ts"))
      expect(yield* Effect.promise(readme.first)).toMatchObject({ _tag: "Completed", output: "Hello to you!" })
      expect(yield* Effect.promise(readme.listed)).toEqual([])
      if (before === undefined) delete process.env["REDIS_URL"]
      else process.env["REDIS_URL"] = before
    })
  )
})
