import { describe, expect, it } from "@effect/vitest"
import { CommandRunner, Folder } from "@waystone/tools"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as RunTests from "../src/RunTests.ts"
import { vi } from "vitest"
import { project, real, services, written } from "./support.ts"

vi.setConfig({ testTimeout: 120_000 })

/** Runs the tests of a copy of the bundled project that has these files beside its own. */
const testRun = (files: Readonly<Record<string, string>> = {}) =>
  real(
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* project()
      for (const [path, text] of Object.entries(files)) yield* fs.writeFileString(`${folder}/${path}`, text)
      const run = yield* Effect.provide(RunTests.run, services(folder, "tests"))
      return { ...run, folder }
    })
  )

describe("run_tests", () => {
  it.live("reports what Node's test runner says, with places inside the project", () =>
    Effect.gen(function* () {
      const { folder, ...run } = yield* testRun()
      expect(run).toMatchObject({ status: "exited", exit_code: 1, report: { tests: 9, passed: 8 - 1 } })
      expect(run.report?.failures[0]).toMatchObject({
        name: "ten pieces get 15 percent off",
        file: "test/cart.test.js",
        line: 28,
        expected: "150",
        actual: "0"
      })
      expect(JSON.stringify(run)).not.toContain(folder)
    })
  )

  it.live("bounds what the tests print, and still has the whole report", () =>
    Effect.gen(function* () {
      const loud = 'console.log("loud ".repeat(50_000))\n'
      const { output, report } = yield* testRun({ "test/loud.test.js": loud })
      expect(output.length).toBeLessThan(10_200)
      expect(output).toContain("loud loud")
      expect(output).toContain("characters left out")
      expect(report?.tests).toBe(10)
    })
  )

  it.live("runs the project's own script, and reports nothing where another runner ran", () =>
    Effect.gen(function* () {
      const script = '{ "scripts": { "test": "echo own runner; exit 3" } }\n'
      const run = yield* testRun({ "package.json": script })
      expect(run).toMatchObject({ status: "exited", exit_code: 1 })
      expect(run.output).toContain("own runner")
      expect(run.report).toBeUndefined()
    })
  )

  it.live("runs Node's test runner where there is no script, or no package.json that can be read", () =>
    Effect.gen(function* () {
      expect((yield* testRun({ "package.json": '{ "type": "module" }' })).report?.tests).toBe(9)
    })
  )

  it.live("names the processes that the tests left and that still run", () =>
    real(
      Effect.gen(function* () {
        const folder = yield* written({
          "package.json": '{ "scripts": { "test": "sleep 30 >/dev/null 2>&1 & exit 0" } }'
        })
        const runner = CommandRunner.CommandRunner.layer({ background: "leave" })
        const { left_running: left } = yield* RunTests.run.pipe(
          Effect.provide(Layer.merge(Folder.layer(folder), runner))
        )
        expect(left).toEqual([expect.stringMatching(/^\d+ sleep 30$/)])
        process.kill(Number.parseInt(left[0] ?? "", 10), "SIGKILL")
      })
    )
  )

  it.live("gives the tests no key of ours", () =>
    Effect.gen(function* () {
      vi.stubEnv("OPENAI_API_KEY", "sk-canary-1234567890")
      const test =
        'import { test } from "node:test"\ntest(Object.keys(process.env).join(" "), () => { throw new Error(JSON.stringify(process.env)) })\n'
      const run = yield* testRun({ "test/env.test.js": test })
      vi.unstubAllEnvs()
      expect(run.report?.failures.some(({ name }) => name.includes("PATH"))).toBe(true)
      expect(JSON.stringify(run)).not.toMatch(/canary|OPENAI/)
    })
  )
})
