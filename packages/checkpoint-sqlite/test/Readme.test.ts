import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { ScriptedModel } from "@waystone/core/testing"
import * as Effect from "effect/Effect"
import { folder } from "./support/files.ts"
import { examples } from "./support/readme.ts"

const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8")
const bare = (code: string) =>
  code
    .split("\n")
    .filter((line) => !line.startsWith("import "))
    .join("")
    .replaceAll("export ", "")
    .replace(/\s/g, "")

const blocks = [...read("../README.md").matchAll(/```ts\n([\s\S]*?)```/g)].map((match) => match[1] ?? "")

/** In a working directory of its own, since the example's path is relative. */
const elsewhere = Effect.flatMap(folder, (path) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const before = process.cwd()
      process.chdir(path)
      return before
    }),
    (before) => Effect.sync(() => process.chdir(before))
  )
)

describe("README.md", () => {
  it("shows code that compiles", () => {
    expect(blocks).toHaveLength(2)
    for (const block of blocks) expect(bare(read("./support/readme.ts"))).toContain(bare(block))
  })

  it.live("runs the example twice and asks the model once", () =>
    Effect.gen(function* () {
      yield* elsewhere
      const model = yield* ScriptedModel.make([ScriptedModel.text("hello")])
      for (let time = 0; time < 2; time++) {
        const outcome = yield* Effect.provide(examples.program, model.layer)
        expect(outcome).toMatchObject({ _tag: "Completed", output: "hello" })
      }
      yield* model.assertConsumed
      expect(yield* examples.waiting).toEqual([])
    })
  )
})
