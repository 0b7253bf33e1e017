import { describe, expect, it } from "@effect/vitest"
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
import { demo, project, real } from "./support.ts"

/** A run starts up to nine test runners, on a machine that may do other things. */
vi.setConfig({ testTimeout: 60_000 })

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
        expect(JSON.stringify(events.at(-1))).toContain("I cannot repair it.")
      })
    )
  )

  it.live("code that does not even load", () =>
    real(
      Effect.gen(function* () {
        const { code, events, verified } = yield* demo(yield* project((source) => `${source}}`))
        expect(code).toBe(1)
        expect(verified).toMatchObject({ repaired: false, changes: [] })
        expect(JSON.stringify(events.at(-1))).toContain("I cannot repair it.")
      })
    )
  )

  it.live("tests that hang are killed, run once more, and given up", () =>
    real(
      Effect.gen(function* () {
        const folder = yield* project()
        const hangs: Layer.Layer<never> = Toolkit.make(RunTests).toLayer({
          run_tests: () => Effect.succeed({ status: "timed-out" as const, output: "" })
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
        expect(JSON.stringify(events.at(-1))).toContain("I cannot repair it")
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
        expect(JSON.stringify(events.at(-1))).toContain("Node's own test runner")
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
        expect(verified?.objections).toEqual(["The run did not complete: it is stopped (MaxTurns)."])
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
