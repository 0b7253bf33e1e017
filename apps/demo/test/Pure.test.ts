import { describe, expect, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import * as Repairs from "../src/model/Repairs.ts"
import * as Bugs from "../src/Bugs.ts"
import { bundled } from "../src/Project.ts"
import * as ProjectPath from "../src/ProjectPath.ts"
import * as Snapshot from "../src/Snapshot.ts"
import * as Source from "../src/model/Source.ts"
import * as Style from "../src/Style.ts"
import * as Tap from "../src/Tap.ts"

describe("Tap", () => {
  it("reads counts, and of each failed test its name, place and values; a suite does not count", () => {
    const report = Tap.parse(`TAP version 13
# Subtest: group
    # Subtest: good
    ok 1 - good
    # Subtest: a \\# b
    not ok 2 - a \\# b
      ---
      duration_ms: 1.1
      location: 'test/a.test.js:3:1'
      failureType: 'testCodeFailure'
      error: |-
        Expected values to be strictly equal:
        
        0 !== 150
        
      code: 'ERR_ASSERTION'
      expected: 150
      actual: 0
      stack: |-
        TestContext.<anonymous> (test/a.test.js:4:10)
        Test.run (node:internal/test_runner/test:1402:25)
      ...
    1..2
not ok 1 - group
  ---
  failureType: 'subtestsFailed'
  error: '1 subtest failed'
  ...
# tests 2
# pass 1
# fail 1
`)
    expect(report).toEqual({
      tests: 2,
      passed: 1,
      failed: 1,
      left_out: 0,
      failures: [
        {
          name: "a # b",
          file: "test/a.test.js",
          line: 4,
          expected: "150",
          actual: "0",
          error: "Expected values to be strictly equal:\n0 !== 150"
        }
      ]
    })
    expect(report && Tap.summary(report)).toBe('1 of 2 tests pass; failing: "a # b"')
  })

  it("knows what the tests printed from what the runner says", () => {
    expect(Tap.printed("TAP version 13\n# hello\n# Subtest: x\nok 1 - x\n# tests 1\n# pass 1\n# of 3\n")).toBe(
      "hello\nof 3"
    )
  })

  it("finds nothing in other text", () => {
    expect(Tap.parse("not TAP\n")).toBeUndefined()
  })
})

describe("Repairs", () => {
  const test = (expected: number, actual: number, body: string): Repairs.Evidence => ({
    failure: { name: "x", file: "a.test.js", line: 1, expected: `${expected}`, actual: `${actual}`, error: "" },
    test: `test("x", () => {\n  ${body}\n})\n`
  })
  const best = (text: string, evidence: Repairs.Evidence) =>
    Repairs.candidates({ path: "a.js", text }, evidence)[0]?.after

  it("suspects a comparison at the number that the test asks about", () => {
    const source = "export const adult = (age) => (age > 18 ? 1 : 0)\n"
    expect(best(source, test(1, 0, "assert.equal(adult(18), 1)"))).toBe(source.replace("> 18", ">= 18"))
    expect(best(source, test(1, 0, "assert.equal(adult(5), 1)"))).toBe(source.replace("> 18", "<= 18"))
  })

  it("computes a factor from the values of the assertion", () => {
    const source = "export const hours = (days) => days * 23\n"
    expect(best(source, test(48, 46, "assert.equal(hours(2), 48)"))).toBe(source.replace("23", "24"))
  })

  it("touches neither comments nor strings, and only what the test reaches", () => {
    const source =
      '// a > 1\nconst s = "a > 1"\nfunction other(a) {\n  return a > 1\n}\nfunction id(a) {\n  return a\n}\n'
    expect(best(source, test(1, 2, "assert.equal(id(2), 1)"))).toBeUndefined()
  })
})

describe("Snapshot", () => {
  const snapshot = (texts: Readonly<Record<string, string>>) => ({
    texts: new Map(Object.entries(texts)),
    truncated: false
  })

  it("knows what was changed, made and removed", () => {
    const changes = Snapshot.changes(
      snapshot({ same: "1\n", old: "1\n", a: "1\n2\n3\n" }),
      snapshot({ same: "1\n", new: "2\n", a: "1\ntwo\n3\n" })
    )
    expect(changes.map(({ path }) => path)).toEqual(["a", "new", "old"])
    expect(changes.map((change) => Snapshot.diff(change).filter((line) => /^[-+]/.test(line)))).toEqual([
      ["--- a/a", "+++ b/a", "-2", "+two"],
      ["--- /dev/null", "+++ b/new", "+2"],
      ["--- a/old", "+++ /dev/null", "-1"]
    ])
  })
})

describe("the bugs", () => {
  const source = readFileSync(join(bundled, Bugs.file), "utf8")

  it.each(Bugs.planted)("$title: one place of the bundled source is changed, and the bundled bug is gone", (bug) => {
    const planted = Bugs.plant(source, bug)
    expect(planted).toContain(Bugs.bundled.right)
    expect(planted.split(bug.wrong)).toHaveLength(2)
    expect(Bugs.plant(source, bug).replace(bug.wrong, bug.right)).toBe(
      source.replace(Bugs.bundled.wrong, Bugs.bundled.right)
    )
  })
})

describe("Style", () => {
  const hostile = "a\u001b[2J\u001b]0;title\u0007b\u202ec\r\nd\te\u009b1mf"

  it("leaves nothing in a text that moves the cursor or misleads the eye", () => {
    expect(Style.plain.safe(hostile)).toBe("a\ufffd[2J\ufffd]0;title\ufffdb\ufffdc\nd\te\ufffd1mf")
  })

  it("keeps its own marks, and only those", () => {
    const { bold, green, safe } = Style.colours
    expect(safe(bold(green("x")) + hostile)).toBe(bold(green("x")) + Style.plain.safe(hostile))
  })
})

it("ProjectPath resolves relative imports to files of the project, as require completes them", () => {
  const files = ["src/cart.js", "b.js", "lib/index.js", "index.js"]
  const imported = (from: string, specifier: string) => ProjectPath.imported(from, specifier, files)
  expect(imported("test/cart.test.js", "../src/cart.js")).toBe("src/cart.js")
  expect(imported("test/cart.test.js", "../src/cart")).toBe("src/cart.js")
  expect(imported("a.js", "./lib")).toBe("lib/index.js")
  expect(imported("test/a.js", "..")).toBe("index.js")
  expect(imported("a.js", "./c.js")).toBeUndefined()
  expect(imported("a.js", "../b.js")).toBeUndefined()
  expect(imported("a.js", "effect")).toBeUndefined()
})

it("Source finds what is imported, re-exported and required", () => {
  const text = `import "./a.js"
import { b } from '../b.js'
export * from "./c.js"
const { d } = require("./d")
const e = await import("./e.js")
import { f } from "effect"
`
  expect(Source.imports(text)).toEqual(["./a.js", "../b.js", "./c.js", "./d", "./e.js"])
})

it.each(["test/a.js", "a.test.js", "src/b.spec.ts", "tests/x/y.mjs", "__tests__/a.js", "a-test.cjs"])(
  "ProjectPath takes %s for a test",
  (path) => {
    expect(ProjectPath.isTest(path)).toBe(true)
  }
)

it.each(["src/latest.js", "contest.js", "src/test-data.js"])("ProjectPath does not take %s for one", (path) => {
  expect(ProjectPath.isTest(path)).toBe(false)
})
