import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import * as Pattern from "../src/Pattern.ts"
import * as Search from "../src/Search.ts"
import { confined } from "./support/folders.ts"
import * as Turns from "./support/turns.ts"

const searched = (files: Readonly<Record<string, string>>, options: Search.Options) =>
  Effect.flatMap(confined(files), ({ folder }) => Search.search(folder, options))

/** A folder of texts that are made when they are read. */
const made = (texts: Readonly<Record<string, () => string>>) => ({
  list: () => Effect.succeed({ files: Object.keys(texts), truncated: false }),
  read: (path: string) => Effect.sync(() => texts[path]?.() ?? "")
})

describe("Search", () => {
  it.live("finds lines in the order of files and lines, with their numbers and without line ends", () =>
    Effect.gen(function* () {
      const files = {
        "b.ts": "foo\r\nbar\r\nfoo(1)\r\n",
        "a.ts": "\n\n  foo",
        "c.md": "foo",
        nul: "\0foo",
        ".gitignore": "x",
        x: "foo"
      }
      expect(yield* searched(files, { pattern: "^\\s*foo\\b", glob: "*.ts" })).toEqual({
        matches: [
          { path: "a.ts", line: 3, text: "  foo" },
          { path: "b.ts", line: 1, text: "foo" },
          { path: "b.ts", line: 3, text: "foo(1)" }
        ],
        truncated: false
      })
      const all = yield* searched(files, { pattern: "FOO$", ignoreCase: true })
      expect(all.matches.map(({ path }) => path)).toEqual(["a.ts", "b.ts", "c.md"])
      expect((yield* searched(files, { pattern: "FOO" })).matches).toEqual([])
    })
  )

  it.live("Q1 at most 100 matches, which says so", () =>
    Effect.gen(function* () {
      const all = yield* searched({ f: "x\n".repeat(100) }, { pattern: "x" })
      expect([all.matches.length, all.truncated]).toEqual([100, false])
      const more = yield* searched({ f: "x\n".repeat(101) }, { pattern: "x" })
      expect([more.matches.length, more.truncated]).toEqual([100, true])
    })
  )

  it.live("Q1 a long line is shown around its match, cut at whole characters, and all matches fit a result", () =>
    Effect.gen(function* () {
      const line = `${"😀".repeat(500)}needle${"é".repeat(1000)}`
      const { matches, truncated } = yield* searched({ f: `${line}\n`.repeat(90) }, { pattern: "needle" })
      expect(truncated).toBe(true)
      expect(JSON.stringify(matches).length).toBeLessThan(16_000)
      expect(matches.length).toBeGreaterThan(10)
      for (const { text } of matches) {
        expect(text).toContain("needle")
        expect(text.length).toBeLessThanOrEqual(Search.maxShown + 2)
        expect(text).toMatch(/^….*…$/u)
        expect(JSON.stringify(text)).not.toContain("\\ud")
      }
      const beyond = `${"a".repeat(Search.maxLine)}needle`
      expect((yield* searched({ f: beyond }, { pattern: "needle" })).matches).toEqual([])
    })
  )

  it.effect("Q1 after 10 s it gives what it has found so far", () =>
    Effect.gen(function* () {
      const folder = made({ a: () => "x", b: () => "x", c: () => "x" })
      const slow = {
        ...folder,
        read: (path: string) => Effect.delay(folder.read(path), path === "a" ? 0 : "11 seconds")
      }
      const fiber = yield* Effect.forkChild(Search.search(slow, { pattern: "x" }))
      yield* TestClock.adjust("12 seconds")
      const { matches, truncated } = yield* Fiber.join(fiber)
      expect(matches[0]).toEqual({ path: "a", line: 1, text: "x" })
      expect([matches.length < 3, truncated]).toEqual([true, true])
    })
  )

  it.effect("Q2 others run while one file is searched, and it can be interrupted there", () =>
    Effect.gen(function* () {
      const folder = made({ f: () => "a b\n".repeat(240_000) })
      const slow = { pattern: "(x+x+)+y|(z|[^a]?c){1,100}", ignoreCase: true }
      const others = yield* Turns.watch
      expect(yield* Search.search(folder, slow)).toEqual({ matches: [], truncated: false })
      expect(others.taken()).toBeGreaterThan(20)
      const fiber = yield* Effect.forkChild(Search.search(folder, slow), { startImmediately: true })
      yield* Fiber.interrupt(fiber)
      expect(Exit.hasInterrupts(yield* Fiber.await(fiber))).toBe(true)
    }).pipe(Effect.scoped)
  )

  // Virtual time stands still here, so that others get their turns for the work alone: one for each 10 to 80 ms of it
  // (measured), which a line and a pattern are cut to.
  it.effect.each([
    "(?:\\pL{20}){10}",
    "(?:[^a]{30}){30}",
    "(x+x+)+y|(z|[^a]?c){1,100}",
    "(?i)(k|\\pL){150}x",
    "(?i)[\\pL\\pN]".repeat(50)
  ])("Q2 others run while long lines are searched for a large pattern: %s", (pattern) =>
    Effect.gen(function* () {
      const lines = ["a", "é", "aé1ꙮ", "\u2000b", "ab"].map((text) => text.repeat(5000).slice(0, 20_000))
      const others = yield* Turns.watch
      yield* Search.search(
        made({
          f: () =>
            Array.from({ length: 4 }, () => lines)
              .flat()
              .join("\n")
        }),
        { pattern }
      )
      // Each of the 20 lines is a turn's work.
      expect(others.taken()).toBeGreaterThan(5)
    }).pipe(Effect.scoped)
  )

  it.live("Q2 of a large pattern less of a long line is searched, of a usual one all that is promised", () =>
    Effect.gen(function* () {
      const line = (before: number) => `${" ".repeat(before)}needle`
      const found = (pattern: string, before: number) =>
        Effect.map(Search.search(made({ f: () => line(before) }), { pattern }), ({ matches }) => matches.length)
      expect(yield* found("needle", Search.maxLine - 6)).toBe(1)
      const large = "needle|(?:[^a]x){400}"
      expect([yield* found(large, 500), yield* found(large, 2000)]).toEqual([1, 0])
    })
  )

  // Backtracking would take years for most of these.
  it.live.each([
    ["(x+x+)+y", -1],
    ["(a|aa)+$b", -1],
    ["((a*)*)*b", 0],
    ["(.*)*=.*=", -1],
    ["(?:a?){300}a{300}b", -1],
    ["(a|b)*a(a|b){12}c", -1],
    ["(.{1,20}){1,20}c", -1],
    ["^(([a-z])+.)+[A-Z]([a-z])+$", 0]
  ] as const)("the pattern %s is found or not, and does not hang", ([pattern, at]) =>
    Effect.gen(function* () {
      const compiled = yield* Pattern.compile(pattern, { ignoreCase: true })
      compiled.find("a".repeat(Search.maxLine))
      expect(compiled.find("ab".repeat(Search.maxLine / 2))).toBe(at)
    })
  )

  it.live.each([
    ["a(b", "missing closing )"],
    ["ab[z-a]c", "invalid character class range: `z-a` at character 4"],
    ["x(?=y)", "invalid or unsupported Perl syntax: `(?=` at character 2"],
    ["(a)\\1", "invalid escape sequence: `\\1` at character 4"],
    ["a**", "invalid nested repetition operator: `**` at character 2"],
    ["((a{100}){100}){100}", "invalid repeat count"],
    ["(a{1,1000}){1,1000}", "too large"],
    ["(a?){900}(b?){900}", "the pattern is too large"],
    ["(?:\\pL{30}){30}", "the pattern is too large"],
    ["a".repeat(1001), "longer than 1000 characters"]
  ] as const)("the pattern %s is refused, with what is wrong and where", ([pattern, message]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(searched({}, { pattern }))
      expect(error).toMatchObject({ _tag: "BadPattern" })
      expect(error.message).toContain(message)
    })
  )
})
