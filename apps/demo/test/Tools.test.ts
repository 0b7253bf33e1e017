import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import * as Stream from "effect/Stream"
import type * as Tool from "effect/ai/Tool"
import { bundled } from "../src/Cli.ts"
import * as Handlers from "../src/Handlers.ts"
import * as TestRun from "../src/TestRun.ts"
import { toolkit } from "../src/Tools.ts"
import { Workspace } from "../src/Workspace.ts"
import { real } from "./support.ts"

/** One call, as a model makes it; the failure is in the error channel. */
const call = Effect.fnUntraced(function* <Name extends keyof typeof toolkit.tools>(
  name: Name,
  parameters: Tool.ParametersEncoded<(typeof toolkit.tools)[Name]>
) {
  const kit = yield* toolkit
  const results = yield* Effect.flatMap(kit.handle(name, parameters), Stream.runCollect)
  return results.at(-1)?.result
})

const inWorkspace = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.provide(effect, Layer.provideMerge(Handlers.layer, Workspace.copyOf(bundled)))

const text = (path: string) => Workspace.use(({ read }) => read(path))

describe("a path that leads out of the project is refused, whatever the tool", () => {
  it.live.each(["../cart.js", "src/../../x", "/etc/passwd", "C:\\x", "\\\\host\\x", "src\\..\\..\\x", "", "a\0b"])(
    "%j",
    (path) =>
      real(
        inWorkspace(
          Effect.gen(function* () {
            const edit = { path, old_text: "a", new_text: "b" }
            expect(yield* Effect.flip(call("read_file", { path }))).toMatchObject({ _tag: "OutsideProject" })
            expect(yield* Effect.flip(call("edit_file", edit))).toMatchObject({ _tag: "OutsideProject" })
          })
        )
      )
  )

  it.live("a symbolic link to a file or a folder outside", () =>
    real(
      inWorkspace(
        Effect.gen(function* () {
          const fs = yield* FileSystem.FileSystem
          const paths = yield* Path.Path
          const { root } = yield* Workspace
          const outside = yield* fs.makeTempDirectoryScoped({ prefix: "waystone-demo-test-" })
          const secret = paths.join(outside, "secret.txt")
          yield* fs.writeFileString(secret, "secret")
          yield* fs.symlink(secret, paths.join(root, "file.txt"))
          yield* fs.symlink(outside, paths.join(root, "folder"))
          for (const path of ["file.txt", "folder/secret.txt"]) {
            const edit = { path, old_text: "secret", new_text: "gone" }
            expect(yield* Effect.flip(call("read_file", { path }))).toMatchObject({ _tag: "OutsideProject", path })
            expect(yield* Effect.flip(call("edit_file", edit))).toMatchObject({ _tag: "OutsideProject", path })
          }
          expect(yield* fs.readFileString(secret)).toBe("secret")
          expect(yield* call("list_files", {})).toMatchObject({
            files: ["package.json", "src/cart.js", "test/cart.test.js"]
          })
        })
      )
    )
  )

  it.live("a folder whose name begins like that of the project", () =>
    real(
      inWorkspace(
        Effect.gen(function* () {
          const fs = yield* FileSystem.FileSystem
          const { root } = yield* Workspace
          yield* fs.makeDirectory(`${root}-other`)
          yield* fs.writeFileString(`${root}-other/x.txt`, "x")
          yield* fs.symlink(`${root}-other/x.txt`, `${root}/x.txt`)
          expect(yield* Effect.flip(call("read_file", { path: "x.txt" }))).toMatchObject({ _tag: "OutsideProject" })
        })
      )
    )
  )
})

describe("edit_file replaces what occurs exactly once", () => {
  it.live("and says where; special patterns of String.replace are plain text", () =>
    real(
      inWorkspace(
        Effect.gen(function* () {
          const edit = { path: "src/cart.js", old_text: "shippingFee = 490", new_text: "shippingFee = $&$1" }
          expect(yield* call("edit_file", edit)).toEqual({ path: "src/cart.js", line: 6 })
          expect(yield* text("src/cart.js")).toContain("shippingFee = $&$1\n")
        })
      )
    )
  )

  it.live("not what occurs twice or never, and no file that is not there", () =>
    real(
      inWorkspace(
        Effect.gen(function* () {
          const before = yield* text("src/cart.js")
          const edit = (old_text: string, path = "src/cart.js") =>
            Effect.flip(call("edit_file", { path, old_text, new_text: "" }))
          expect(yield* edit("subtotal(lines)")).toMatchObject({ _tag: "NotUnique" })
          expect(yield* edit("no such text")).toMatchObject({ _tag: "NotUnique" })
          expect(yield* edit("x", "src/none.js")).toMatchObject({ _tag: "FileUnavailable", message: "no such file" })
          expect(yield* edit("x", "src")).toMatchObject({ _tag: "FileUnavailable", message: "not a file" })
          expect(yield* text("src/cart.js")).toBe(before)
        })
      )
    )
  )
})

describe("run_tests", () => {
  it.live("runs them, without the folder's own path in the output", () =>
    real(
      inWorkspace(
        Effect.gen(function* () {
          const { root } = yield* Workspace
          const { exitCode, output } = yield* TestRun.run(root)
          expect(exitCode).toBe(1)
          expect(output).toContain("test/cart.test.js:28")
          expect(output).not.toContain(root)
        })
      )
    )
  )

  it.live("bounds what the tests print", () =>
    real(
      inWorkspace(
        Effect.gen(function* () {
          const { root } = yield* Workspace
          const fs = yield* FileSystem.FileSystem
          yield* fs.writeFileString(`${root}/test/loud.test.js`, 'console.log("loud ".repeat(100_000))\n')
          const { output } = yield* TestRun.run(root)
          expect(output.length).toBeLessThan(12_100)
          expect(output).toContain("characters left out")
          expect(output).toContain("# tests 10")
        })
      )
    )
  )

  it("gives the child what it needs to start and nothing else", () => {
    const env = { PATH: "/bin", HOME: "/root", OPENAI_API_KEY: "sk-1", NODE_OPTIONS: "--inspect", TMPDIR: undefined }
    expect(TestRun.environment(env)).toEqual({ PATH: "/bin" })
  })
})
