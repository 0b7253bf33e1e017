import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Glob from "../src/Glob.ts"
import * as Ignored from "../src/Ignored.ts"
import { confined, holds } from "./support/folders.ts"

const listed = (folder: Effect.Success<ReturnType<typeof confined>>["folder"], glob?: string) =>
  Effect.map(folder.list(glob === undefined ? {} : { glob }), ({ files }) => files)

describe("Listing", () => {
  describe.each(holds)("with folders held by %s", (_, hold) => {
    it.live("L1 links are left out, also those that stay inside", () =>
      Effect.gen(function* () {
        const { folder, outside, root } = yield* confined({ "a/f": "", b: "" }, hold)
        writeFileSync(join(outside, "secret"), "")
        symlinkSync(outside, join(root, "out"))
        symlinkSync("a", join(root, "in"))
        symlinkSync("b", join(root, "c"))
        symlinkSync(join(outside, "secret"), join(root, "d"))
        expect(yield* folder.list()).toEqual({ files: ["a/f", "b"], truncated: false })
      })
    )
  })

  it.live("files come in the order of their paths, with forward slashes, and a cut list is the beginning", () =>
    Effect.gen(function* () {
      const names = ["a-b", "a.ts", "a/b/c", "a/b.ts", "a0", "B", "é", "z/.hidden"]
      const { folder } = yield* confined(Object.fromEntries(names.map((name) => [name, ""])))
      const all = [...names].toSorted((a, b) => (a < b ? -1 : 1))
      expect(yield* folder.list()).toEqual({ files: all, truncated: false })
      for (let limit = 1; limit <= names.length + 1; limit++) {
        expect(yield* folder.list({ limit })).toEqual({ files: all.slice(0, limit), truncated: limit < names.length })
      }
    })
  )

  it.live(".git, node_modules, files with a backslash and what .gitignore says are left out, as git does", () =>
    Effect.gen(function* () {
      const { folder, root } = yield* confined({
        ".gitignore": "*.log\n/build\n!keep.log\n# comment\ncache/\n",
        "a.log": "",
        "keep.log": "",
        "build/x": "",
        "src/build/y": "",
        "cache/z": "",
        "src/.gitignore": "!b.log\nlocal.*\n",
        "src/b.log": "",
        "src/c.log": "",
        "src/local.ts": "",
        "local.ts": "",
        "src/deep/b.log": "",
        "src/cache": "a file",
        "node_modules/m/index.js": "",
        "src/node_modules/n/index.js": "",
        "odd\\name": ""
      })
      const files = yield* listed(folder)
      expect(files).not.toContain("odd\\name")
      execFileSync("git", ["init", "-q"], { cwd: root })
      const options = { cwd: root, encoding: "utf8" } as const
      const git = execFileSync("git", ["ls-files", "-co", "--exclude-standard", "-z"], options).split("\0")
      const known = git.filter((path) => path !== "" && !path.includes("node_modules") && !path.includes("\\"))
      expect(files).toEqual(known.toSorted())
      expect(files).toContain("src/deep/b.log")
      expect(yield* listed(folder)).toEqual(files)
    })
  )

  it.live("a .gitignore that is a link, is binary or is written to take for ever does not stop the list", () =>
    Effect.gen(function* () {
      const path = `${"a/".repeat(31)}c`
      const slow = [`${"**/a/".repeat(12)}b`, `${"a**".repeat(30)}b`, `${"*?".repeat(60)}b`, "[z-a]", "\\", "((a+)+)+$"]
      const { folder, outside, root } = yield* confined({
        [path]: "",
        ["a".repeat(250)]: "",
        ".gitignore": `${slow.join("\n")}\nignored\n`,
        ignored: "",
        "bin/.gitignore": "\0*",
        "bin/f": ""
      })
      writeFileSync(join(outside, "rules"), "*")
      mkdirSync(join(root, "link"))
      writeFileSync(join(root, "link", "f"), "")
      symlinkSync(join(outside, "rules"), join(root, "link", ".gitignore"))
      const files = yield* listed(folder)
      expect(files).toContain(path)
      expect(files).toContain("bin/f")
      expect(files).toContain("link/f")
      expect(files).not.toContain("ignored")
    })
  )

  it.live("L2 folders deeper than 32 are not looked into, and that is said", () =>
    Effect.gen(function* () {
      const { folder } = yield* confined({ [`${"d/".repeat(32)}f`]: "", [`e/${"d/".repeat(32)}f`]: "" })
      expect(yield* folder.list()).toEqual({ files: [`${"d/".repeat(32)}f`], truncated: true })
    })
  )

  it.live.each([
    ["*.ts", ["a.ts", "src/b.ts", "src/deep/c.ts"]],
    ["src/*.ts", ["src/b.ts"]],
    ["./src/*.ts", ["src/b.ts"]],
    ["src/**", ["src/b.ts", "src/deep/c.ts", "src/deep/d.js"]],
    ["**/*.{js,md}", ["!x.md", "#y.md", "src/deep/d.js"]],
    ["src\\deep\\*", ["src/deep/c.ts", "src/deep/d.js"]],
    ["[ab].ts", ["a.ts", "src/b.ts"]],
    ["!x.md", ["!x.md"]],
    ["#y.md", ["#y.md"]],
    ["+(a).ts", []],
    ["../**", []],
    ["none", []]
  ] as const)("the glob %s names what one expects", ([glob, expected]) =>
    Effect.gen(function* () {
      const names = ["a.ts", "src/b.ts", "src/deep/c.ts", "src/deep/d.js", "!x.md", "#y.md"]
      const { folder } = yield* confined(Object.fromEntries(names.map((name) => [name, ""])))
      expect(yield* listed(folder, glob)).toEqual(expected)
    })
  )

  // Each path does everything to make its glob take long: with backtracking, or all braces expanded, it would for ever.
  it.live.each([
    ["*a*a*a*a*a*a*b", "a".repeat(250), false],
    [`${"*a".repeat(90)}b`, "a".repeat(250), false],
    [`${"**/a/".repeat(38)}b`, `${"a/".repeat(60)}c`, false],
    [`${"{a,b}".repeat(38)}`, "a".repeat(38), true],
    ["{1..99999999}", "5", true],
    [`${"+(a|aa)".repeat(20)}b`, "a".repeat(100), false],
    ["[a-z]*?".repeat(28), "a".repeat(250), true],
    [`${"{".repeat(99)}a${"}".repeat(99)}`, "{", false]
  ] as const)("the glob %s does not hang", ([glob, path, matching]) =>
    Effect.gen(function* () {
      expect((yield* Glob.compile(glob))(path)).toBe(matching)
    })
  )

  it.live("of rules that take long only the first ones are asked", () =>
    Effect.gen(function* () {
      const rules = Array.from({ length: 1000 }, (_, n) => `*a*a*ab${n}`).join("\n")
      const names = Array.from({ length: 60 }, (_, n) => [`${"a".repeat(240)}${n}`, ""])
      const { folder } = yield* confined({ ".gitignore": `${rules}\n*l*a*st`, last: "", ...Object.fromEntries(names) })
      const { files } = yield* folder.list()
      expect(files).toHaveLength(62)
      expect(files).toContain("last")
    })
  )

  it("the rules that are asked about one path are bounded together", () => {
    const text = Array.from({ length: 5000 }, (_, n) => `*.name${n}`).join("\n")
    const above = Ignored.parse("", `first\n${text}\nlast\n`)
    expect(above.weight).toBeLessThanOrEqual(Ignored.maxWeight)
    expect(["first", "x.name0", "x.name4999"].map((path) => Ignored.isIgnored(path, [above]))).toEqual([
      true,
      true,
      false
    ])
    const below = Ignored.parse("d/", text, Ignored.maxWeight - above.weight)
    expect(above.weight + below.weight).toBeLessThanOrEqual(Ignored.maxWeight)
    expect(Ignored.parse("", `${"**/a/".repeat(3)}b\n${"*a".repeat(9)}\n`).weight).toBe(0)
    const usual = Array.from({ length: 400 }, (_, n) => `*.ending${n}`).join("\n")
    expect(Ignored.isIgnored("x.ending399", [Ignored.parse("", usual)])).toBe(true)
  })

  it.live("the rules of a deeper .gitignore have what those above it leave", () =>
    Effect.gen(function* () {
      const full = Array.from({ length: 5000 }, (_, n) => `*.name${n}`).join("\n")
      const { folder } = yield* confined({
        "a/.gitignore": full,
        "a/b/.gitignore": "*y\n",
        "a/b/xy": "",
        "c/.gitignore": "*y",
        "c/xy": ""
      })
      expect(yield* listed(folder)).toEqual(["a/.gitignore", "a/b/.gitignore", "a/b/xy", "c/.gitignore"])
    })
  )

  it.live.each([0, -5, 1.5, Number.NaN, Number.POSITIVE_INFINITY])("a limit of %s is refused", (limit) =>
    Effect.gen(function* () {
      const { folder } = yield* confined({ f: "" })
      expect(yield* Effect.flip(folder.list({ limit }))).toMatchObject({ _tag: "FileUnavailable", path: "." })
    })
  )

  it.live.each(["[", "a[b", "src/[!", "[]", "[z-a]", "{a,b", "{{a}", "[a]{", "{[a,b]}"])(
    "the glob %s is refused",
    (glob) =>
      Effect.gen(function* () {
        expect(yield* Effect.flip(Glob.compile(glob))).toMatchObject({ _tag: "BadPattern", pattern: glob })
      })
  )

  it.live.each([
    ["[]]", "]"],
    ["[!a]", "b"],
    ["a]", "a]"],
    ["a}", "a}"],
    ["[[:alpha:]]x", "bx"],
    ["[a-]", "-"]
  ] as const)("the glob %s names %s", ([glob, name]) =>
    Effect.gen(function* () {
      expect((yield* Glob.compile(glob))(name)).toBe(true)
    })
  )

  it.live("a glob that is empty or too long is refused", () =>
    Effect.gen(function* () {
      const { folder } = yield* confined()
      for (const glob of ["", " ", "*".repeat(201)]) {
        expect(yield* Effect.flip(folder.list({ glob }))).toMatchObject({ _tag: "BadPattern" })
      }
    })
  )
})
