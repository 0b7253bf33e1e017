import { describe, expect, it } from "@effect/vitest"
import * as Excerpts from "../src/Excerpts.ts"
import * as FileDiff from "../src/FileDiff.ts"

const numbered = (count: number, word = "line") =>
  Array.from({ length: count }, (_, n) => `${word} ${n + 1}\n`).join("")

describe("FileDiff", () => {
  it("shows a change as a unified diff with three lines around it", () => {
    expect(FileDiff.unified("a.ts", numbered(10), numbered(10).replace("line 5\n", "new\n"))).toBe(
      [
        "--- a/a.ts\n+++ b/a.ts\n@@ -2,7 +2,7 @@",
        " line 2\n line 3\n line 4\n-line 5\n+new\n line 6\n line 7\n line 8\n"
      ].join("\n")
    )
  })

  it("shows a file that is new, one that is gone, and nothing for no change", () => {
    expect(FileDiff.unified("a", undefined, "1\n")).toBe("--- /dev/null\n+++ b/a\n@@ -0,0 +1,1 @@\n+1\n")
    expect(FileDiff.unified("a", "1\n", undefined)).toBe("--- a/a\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-1\n")
    expect(FileDiff.unified("a", "1", "1")).toBe("")
  })

  it("is bounded, at a line, and says how much is left out", () => {
    const diff = FileDiff.unified("a", undefined, numbered(1500, "😀"))
    expect(diff.length).toBeLessThan(FileDiff.maxLength + 100)
    const [, left] = /\n\(… (\d+) more lines of the diff left out\)\n$/.exec(diff) ?? []
    expect(Number(left) + diff.split("\n").length - 2 - 3).toBe(1500)
    const long = FileDiff.unified("a", undefined, "😀".repeat(100_000))
    expect(long.length).toBeLessThan(FileDiff.maxLength + 100)
    expect(long).toContain("left out")
  })

  it("does not look for minutes for what texts have in common that have nothing", () => {
    const diff = FileDiff.unified("a", numbered(60_000, "x"), numbered(60_000, "y"))
    expect(diff).toContain("(60000 lines became 60000: too different to show)")
  })

  it("a name cannot look like a line of the diff", () => {
    expect(FileDiff.unified("a\n+evil", "1\n", "2\n")).not.toContain("\n+evil")
  })
})

describe("Excerpts", () => {
  const lines = (text: string, range: Excerpts.Range = {}) => {
    const selected = Excerpts.select(text, range)
    if (typeof selected === "string") throw new Error(selected)
    return selected
  }
  const size = (text: string) => JSON.stringify(text).length - 2

  it("selects whole lines with their line ends, and says how many there are", () => {
    expect(Excerpts.share([lines("a\r\nb\nc")])).toEqual([{ text: "a\r\nb\nc", from: 1, to: 3, total: 3 }])
    expect(Excerpts.share([lines("a\nb\nc\n", { from: 2, to: 2 })])).toEqual([
      { text: "b\n", from: 2, to: 2, total: 3 }
    ])
    expect(Excerpts.share([lines("a\n", { to: 9 })])).toEqual([{ text: "a\n", from: 1, to: 1, total: 1 }])
    expect(Excerpts.share([lines("")])).toEqual([{ text: "", from: 1, to: 0, total: 0 }])
  })

  it("says why there are none", () => {
    expect(Excerpts.select("a\n", { from: 3 })).toBe("from_line 3 is after the end: the file has 1 lines")
    expect(Excerpts.select("a\n", { from: 3, to: 2 })).toBe("to_line 2 is before from_line 3")
  })

  it("X1 texts share the room: a short one leaves what it does not need to the others", () => {
    const [short, long, longer] = Excerpts.share([lines("s\n"), lines(numbered(2000)), lines(numbered(3000))])
    expect(short).toEqual({ text: "s\n", from: 1, to: 1, total: 1 })
    expect(Math.abs((long?.to ?? 0) - (longer?.to ?? 0))).toBeLessThan(2)
    const all = [short, long, longer].reduce((sum, one) => sum + size(one?.text ?? ""), 0)
    expect(all).toBeLessThanOrEqual(Excerpts.maxTotal)
    expect(all).toBeGreaterThan(Excerpts.maxTotal - 100)
  })

  it("X1 all of the room is used where one text needs more than its share and fits", () => {
    const parts = Excerpts.share([lines(numbered(700)), lines(numbered(3000))])
    const sizes = parts.map(({ text }) => size(text))
    expect(Math.abs((sizes[0] ?? 0) - (sizes[1] ?? 0))).toBeLessThan(50)
    expect(sizes.reduce((sum, one) => sum + one, 0)).toBeGreaterThan(Excerpts.maxTotal - 100)
  })

  it("X2 whoever goes on where it says sees every line once", () => {
    const text = numbered(5000)
    let seen = ""
    for (let from: number | undefined = 1; from !== undefined;) {
      const [part] = Excerpts.share([lines(text, { from })])
      expect(size(part?.text ?? "")).toBeLessThanOrEqual(Excerpts.maxTotal)
      seen += part?.text ?? ""
      const next: string | undefined = /go on with from_line (\d+)$/.exec(part?.truncated ?? "")?.[1]
      from = next === undefined ? undefined : Number(next)
    }
    expect(seen).toBe(text)
  })

  it("X2 a line that alone is too long is cut at a whole character, and that is said", () => {
    for (const unit of ["x", "😀", '"', "\u0001"]) {
      const [part] = Excerpts.share([lines(`${unit.repeat(20_000)}\nnext\n`)])
      expect(size(part?.text ?? "")).toBeLessThanOrEqual(Excerpts.maxTotal)
      expect(size(part?.text ?? "")).toBeGreaterThan(Excerpts.maxTotal / 2)
      expect((part?.text ?? "").replaceAll(unit, "")).toBe("")
      expect(part?.truncated).toMatch(/^line 1 is cut: it has \d+ characters, \d+ are shown; go on with from_line 2$/)
    }
  })
})
