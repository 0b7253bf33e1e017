import { describe, expect, it } from "@effect/vitest"
import * as BoundedText from "../src/BoundedText.ts"
import * as Diff from "../src/Diff.ts"
import * as Repairs from "../src/model/Repairs.ts"
import * as ProjectPath from "../src/ProjectPath.ts"
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
      failures: [
        {
          name: "a # b",
          file: "test/a.test.js",
          line: 4,
          expected: "150",
          actual: "0",
          error: "Expected values to be strictly equal:"
        }
      ]
    })
    expect(Tap.summary(report)).toBe('1 of 2 tests pass; failing: "a # b"')
  })

  it("finds nothing in other text", () => {
    expect(Tap.parse("not TAP\n")).toEqual({ tests: 0, passed: 0, failed: 0, failures: [] })
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

describe("Diff", () => {
  it("shows what changed with the lines around it", () => {
    const [change] = Diff.changes(new Map([["a", "1\n2\n3\n4\n5\n6\n"]]), new Map([["a", "1\n2\n3\n4\nfive\n6\n"]]))
    expect(change && Diff.unified(change)).toEqual([
      "--- a/a",
      "+++ b/a",
      "@@ -2,5 +2,5 @@",
      " 2",
      " 3",
      " 4",
      "-5",
      "+five",
      " 6"
    ])
  })

  it("knows new and removed files", () => {
    const changes = Diff.changes(new Map([["old", "1\n"]]), new Map([["new", "2\n"]]))
    expect(changes.map((change) => Diff.unified(change).slice(0, 2))).toEqual([
      ["--- /dev/null", "+++ b/new"],
      ["--- a/old", "+++ /dev/null"]
    ])
  })
})

it("BoundedText keeps head and tail, however the text comes in", () => {
  const text = "0123456789abcdef"
  const kept = (pieces: ReadonlyArray<string>, limit: number) =>
    pieces.reduce(BoundedText.add(limit), BoundedText.empty)
  expect(BoundedText.toText(kept([text], 16))).toBe(text)
  for (const pieces of [[text], [...text], [text.slice(0, 5), text.slice(5)]]) {
    expect(kept(pieces, 8)).toEqual({ head: "0123", tail: "cdef", cut: 8 })
  }
})

it("ProjectPath resolves relative imports inside the project", () => {
  expect(ProjectPath.imported("test/cart.test.js", "../src/cart.js")).toBe("src/cart.js")
  expect(ProjectPath.imported("a.js", "./b.js")).toBe("b.js")
  expect(ProjectPath.imported("a.js", "../b.js")).toBeUndefined()
  expect(ProjectPath.imported("a.js", "effect")).toBeUndefined()
})
