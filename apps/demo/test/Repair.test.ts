import { describe, expect, it } from "@effect/vitest"
import type { RunEvent } from "@waystone/core"
import { FileTools } from "@waystone/tools"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Response from "effect/ai/Response"
import * as Toolkit from "effect/ai/Toolkit"
import { vi } from "vitest"
import * as Bugs from "../src/Bugs.ts"
import { RunTests } from "../src/RunTests.ts"
import { demo, project, real, written } from "./support.ts"

/** A run starts up to nine test runners, on a machine that may do other things. */
vi.setConfig({ testTimeout: 120_000 })

/** The bundled source as it should be, with one piece of it changed. */
const broken = (right: string, wrong: string) => (source: string) => {
  const repaired = source.replace("> bulkPieces", ">= bulkPieces")
  expect(repaired).not.toBe(source)
  expect(repaired.split(right)).toHaveLength(2)
  return repaired.replace(right, wrong)
}

describe("the model repairs what is broken, wherever it is", () => {
  it.live.each([
    ...Bugs.planted.slice(0, 3),
    { right: ">= bulkPieces", wrong: "< bulkPieces" },
    { right: "discount(lines) + shipping", wrong: "discount(lines) - shipping" }
  ])("$right became $wrong", ({ right, wrong }) =>
    real(
      Effect.gen(function* () {
        const { code, events, verified } = yield* demo(yield* project(broken(right, wrong)))
        expect(code).toBe(0)
        expect(verified).toMatchObject({ repaired: true, objections: [], report: { passed: 9, tests: 9 } })
        expect(verified?.changes.map(({ path }) => path)).toEqual(["src/cart.js"])
        expect(verified?.changes[0]?.before).toContain(wrong)
        expect(events.filter(({ _tag }) => _tag === "TurnStarted").length).toBeLessThan(20)
      })
    )
  )

  it.live("two mistakes", () =>
    real(
      Effect.gen(function* () {
        const folder = yield* project((source) => source.replace("shippingFee = 490", "shippingFee = 590"))
        const { code, verified } = yield* demo(folder)
        expect({ code, repaired: verified?.repaired }).toEqual({ code: 0, repaired: true })
      })
    )
  )

  it.live("nothing, where nothing is broken", () =>
    real(
      Effect.gen(function* () {
        const folder = yield* project((source) => source.replace("> bulkPieces", ">= bulkPieces"))
        const { code, events, verified } = yield* demo(folder)
        expect(code).toBe(0)
        expect(verified).toMatchObject({ repaired: true, changes: [] })
        expect(events.some((event) => event._tag === "ToolCallStarted" && event.name === "edit_file")).toBe(false)
      })
    )
  )
})

describe("any small Node project", () => {
  it.live("CommonJS, without extensions, through a file that only hands on", () =>
    real(
      Effect.gen(function* () {
        const folder = yield* written({
          "package.json": '{ "name": "x", "scripts": { "test": "node --test" } }',
          "lib/limits.js": "exports.over = (n) => n > 10\n",
          "index.js": 'module.exports = { ...require("./lib/limits") }\n',
          "test/a.test.js": `const assert = require("node:assert/strict")
const { test } = require("node:test")
const { over } = require("..")
test("over", () => assert.equal(over(10), true))
`
        })
        const { code, verified } = yield* demo(folder)
        expect(verified?.changes.map(({ path }) => path)).toEqual(["lib/limits.js"])
        expect(code).toBe(0)
      })
    )
  )

  it.live("two sources that together are more than one answer holds", () =>
    real(
      Effect.gen(function* () {
        const padding = "// padding, padding\n".repeat(400)
        const folder = yield* written({
          "a.js": `export const over = (n) => n > 10\n${padding}`,
          "b.js": `export const id = (n) => n\n${padding}`,
          "a.test.js": `${head}import { over } from "./a.js"
import { id } from "./b.js"
test("over", () => assert.equal(id(over(10)), true))
`
        })
        const { code, verified } = yield* demo(folder)
        expect({ code, objections: verified?.objections }).toEqual({ code: 0, objections: [] })
      })
    )
  )

  it.live("tests that are skipped or still to do are neither failures nor in the way", () =>
    real(
      Effect.gen(function* () {
        const folder = yield* written({
          "a.js": "export const over = (n) => n > 10\n",
          "a.test.js": `${head}import { over } from "./a.js"
test("over", () => assert.equal(over(10), true))
test.skip("skipped", () => assert.fail())
test.todo("to do")
`
        })
        const { code, verified } = yield* demo(folder)
        expect(verified?.report).toMatchObject({ tests: 3, passed: 1, failed: 0, left_out: 2 })
        expect(code).toBe(0)
      })
    )
  )

  it.live("four mistakes in four files, in a folder with blanks and umlauts in its name", () =>
    real(
      Effect.gen(function* () {
        const names = Array.from({ length: 4 }, (_, i) => `f${i}`)
        const sources = names.map((name, i) => [`${name}.js`, `export const ${name} = (n) => n > ${10 + i}\n`])
        const tests = names.map((name, i) => [
          `${name}.test.js`,
          `${head}import { ${name} } from "./${name}.js"\ntest("${name}", () => assert.equal(${name}(${10 + i}), true))\n`
        ])
        const folder = yield* written(Object.fromEntries([...sources, ...tests]), "Übung mit Leerzeichen")
        const { code, verified } = yield* demo(folder)
        expect({ code, objections: verified?.objections }).toEqual({ code: 0, objections: [] })
        expect(verified?.changes).toHaveLength(4)
      })
    )
  )
})

describe("what the model cannot repair", () => {
  it.live("an edit that never arrives is noticed, and the demo does not believe that it helped", () =>
    real(
      Effect.gen(function* () {
        const noop = Toolkit.make(FileTools.EditFile).toLayer({
          edit_file: ({ path }) => Effect.succeed({ path, line: 1, diff: "" })
        })
        const { code, events, verified } = yield* demo(yield* project(), { override: noop })
        expect(code).toBe(1)
        expect(verified).toMatchObject({ repaired: false, changes: [], report: { passed: 7 } })
        expect(verified?.objections).toEqual(["The tests do not pass: exit code 1."])
        expect(JSON.stringify(events.at(-1))).toContain(
          "I cannot repair it: edit_file said that it changed src/cart.js"
        )
      })
    )
  )

  it.live("is put back as it was, and said", () =>
    real(
      Effect.gen(function* () {
        const folder = yield* project(broken("sum + line.quantity", "sum + lines.indexOf(line)"))
        const { code, events, verified } = yield* demo(folder)
        expect(code).toBe(1)
        expect(verified).toMatchObject({ repaired: false, changes: [] })
        expect(JSON.stringify(events.at(-1))).toContain("I tried 6 changes, and none was right.")
      })
    )
  )

  it.live("code that does not even load", () =>
    real(
      Effect.gen(function* () {
        const { code, events, verified } = yield* demo(yield* project((source) => `${source}}`))
        expect(code).toBe(1)
        expect(verified).toMatchObject({ repaired: false, changes: [] })
        expect(JSON.stringify(events.at(-1))).toContain("I cannot repair it: The test")
        expect(JSON.stringify(events.at(-1))).toMatch(/SyntaxError: Unexpected token '}' \(src\/cart\.js:\d+\)/)
      })
    )
  )

  it.live("tests that hang are killed, run once more, and given up", () =>
    real(
      Effect.gen(function* () {
        const folder = yield* project()
        const hangs: Layer.Layer<never> = Toolkit.make(RunTests).toLayer({
          run_tests: () => Effect.succeed({ status: "timed-out" as const, output: "", left_running: [] })
        })
        const { code, events, verified } = yield* demo(folder, { override: hangs })
        expect(code).toBe(1)
        expect(verified).toMatchObject({ repaired: false, changes: [] })
        expect(JSON.stringify(events.at(-1))).toContain("run_tests did not do what I asked, twice")
        const ran = events.filter((event) => event._tag === "ToolCallCompleted" && event.name === "run_tests")
        expect(ran).toHaveLength(2)
      })
    )
  )

  it.live("a folder without tests", () =>
    real(
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const folder = yield* fs.makeTempDirectoryScoped({ prefix: "waystone-demo-test-" })
        yield* fs.writeFileString(`${folder}/index.js`, "export const one = 1\n")
        const { code, events, verified } = yield* demo(folder)
        expect(code).toBe(1)
        expect(verified).toMatchObject({ repaired: false, changes: [] })
        expect(JSON.stringify(events.at(-1))).toContain("there are no tests that say what is wrong")
      })
    )
  )

  it.live("a project that another test runner tests, and a task that is no repair: both are said plainly", () =>
    real(
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const folder = yield* project()
        yield* fs.writeFileString(`${folder}/package.json`, '{ "scripts": { "test": "echo 3 failed; exit 3" } }\n')
        const { code, events, verified } = yield* demo(folder, { task: "Write me a poem" })
        expect(code).toBe(1)
        expect(verified).toMatchObject({ repaired: false, changes: [], report: undefined })
        expect(verified?.objections).toEqual(["The tests do not pass: exit code 1."])
        expect(JSON.stringify(events)).toContain("I follow a script and can only repair what tests say is wrong")
        expect(JSON.stringify(events.at(-1))).toContain("these tests report nothing of it")
      })
    )
  )

  it.live("one of two mistakes is beyond it: what helped is taken back, too", () =>
    real(
      Effect.gen(function* () {
        const folder = yield* written({
          "a.js": `export function over(n) {
  return n > 10
}
export function greet(name) {
  return "Hello " + name.split("").reverse().join("")
}
`,
          "a.test.js": `${head}import { greet, over } from "./a.js"
test("over", () => assert.equal(over(10), true))
test("greet", () => assert.equal(greet("ann"), "Hello ann"))
`
        })
        const { code, events, verified } = yield* demo(folder)
        expect(code).toBe(1)
        expect(edits(events)).toContain("a.js")
        expect(verified).toMatchObject({ repaired: false, changes: [] })
        expect(JSON.stringify(events.at(-1))).toContain("Every file is as it was.")
      })
    )
  )

  it.live("a trial that ends the process of the tests is taken back", () =>
    real(
      Effect.gen(function* () {
        const folder = yield* written({
          "package.json": '{ "type": "module", "scripts": { "test": "node a.test.js" } }',
          "a.js": `export function over(n) {
  if (n > 100) process.exit(3)
  return n * 2
}
`,
          "a.test.js": `${head}import { over } from "./a.js"
test("over", () => assert.equal(over(100), 7))
`
        })
        const { code, events, verified } = yield* demo(folder)
        expect(code).toBe(1)
        expect(edits(events)).toContain("a.js")
        expect(verified).toMatchObject({ repaired: false, changes: [] })
        expect(JSON.stringify(events.at(-1))).not.toContain("these tests report nothing of it")
      })
    )
  )

  it.live("a source that is too long to be read as a whole is said to be", () =>
    real(
      Effect.gen(function* () {
        const folder = yield* written({
          "a.js": `export const over = (n) => n > 10\n${"// padding\n".repeat(2_000)}`,
          "a.test.js": `${head}import { over } from "./a.js"
test("over", () => assert.equal(over(10), true))
`
        })
        const { code, events, verified } = yield* demo(folder)
        expect(code).toBe(1)
        expect(verified).toMatchObject({ repaired: false, changes: [] })
        expect(JSON.stringify(events.at(-1))).toContain("a.js: too long for me to read as a whole")
      })
    )
  )

  it.live("a helper among the tests is never edited", () =>
    real(
      Effect.gen(function* () {
        const folder = yield* written({
          "test/helper.js": "export const add = (a, b) => a - b\n",
          "test/a.test.js": `${head}import { add } from "./helper.js"
test("add", () => assert.equal(add(1, 2), 3))
`
        })
        const { code, events, verified } = yield* demo(folder)
        expect(code).toBe(1)
        expect(edits(events)).toEqual([])
        expect(verified).toMatchObject({ repaired: false, changes: [] })
        expect(JSON.stringify(events.at(-1))).toContain("I do not see which file it is about")
      })
    )
  )

  it.live("a run that does not come to its end does not count, even if the tests pass", () =>
    real(
      Effect.gen(function* () {
        const folder = yield* project((source) => source.replace("> bulkPieces", ">= bulkPieces"))
        const { code, verified } = yield* demo(folder, { override: restless })
        expect(code).toBe(1)
        expect(verified).toMatchObject({ repaired: false, report: { passed: 9, tests: 9 } })
        expect(verified?.objections).toEqual(["The run did not complete: it is stopped (Loop)."])
      })
    )
  )

  it.live("tests that the model changed do not count either", () =>
    real(
      Effect.gen(function* () {
        const { code, verified } = yield* demo(yield* project(), { override: cheating })
        expect(code).toBe(1)
        expect(verified?.objections).toContain("A test was changed: test/cart.test.js.")
      })
    )
  )
})

const head = 'import assert from "node:assert/strict"\nimport { test } from "node:test"\n'

/** The paths of all edits that were made. */
const edits = (events: ReadonlyArray<RunEvent.RunEvent>): ReadonlyArray<string> =>
  events.flatMap((event) =>
    event._tag === "ToolCallCompleted" && event.name === "edit_file" && !event.isFailure
      ? [/"path":"([^"]*)"/.exec(JSON.stringify(event.result))?.[1] ?? ""]
      : []
  )

/** A model that says the same for ever. */
const saying = (parts: ReadonlyArray<Response.StreamPartEncoded>) =>
  Layer.effect(
    LanguageModel.LanguageModel,
    LanguageModel.make({
      generateText: () => Effect.die(new Error("not streaming")),
      streamText: () => Stream.fromIterable(parts)
    })
  )

const usage = {
  inputTokens: { uncached: 1, total: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 }
}
const restless = saying([
  { type: "tool-call", id: "1", name: "list_files", params: {} },
  { type: "finish", reason: "tool-calls", usage }
])
const edit = { path: "test/cart.test.js", old_text: "quantity: 10 }]), 150", new_text: "quantity: 10 }]), 0" }
const cheating = saying([
  { type: "tool-call", id: "1", name: "edit_file", params: edit },
  { type: "finish", reason: "tool-calls", usage }
])
