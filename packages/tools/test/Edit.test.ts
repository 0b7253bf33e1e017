import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as Edit from "../src/Edit.ts"
import * as Occurrences from "../src/Occurrences.ts"

const applied = (before: string, oldText: string, newText: string) => Edit.apply(before, { oldText, newText })
const after = (before: string, oldText: string, newText: string) =>
  Result.match(applied(before, oldText, newText), {
    onFailure: ({ message, reason }) => `${reason}: ${message}`,
    onSuccess: (edited) => edited.after
  })

/** Every text over a small alphabet up to a length. */
const texts = (letters: ReadonlyArray<string>, max: number): ReadonlyArray<string> => {
  const all = [""]
  for (let from = 0, length = 0; length < max; length++) {
    const to = all.length
    for (; from < to; from++) for (const letter of letters) all.push(`${all[from]}${letter}`)
  }
  return all
}

/** What naive code finds. */
const naive = (text: string, part: string) =>
  Array.from({ length: text.length }, (_, index) => index).filter((index) => text.startsWith(part, index))

describe("Edit", () => {
  it("E1 exactly one occurrence is replaced, and what looks like a replacement pattern is plain text", () => {
    expect(after("a b c", "b", "x")).toBe("a x c")
    expect(after("a b c", "b", "$& $1 $$ $` $'")).toBe("a $& $1 $$ $` $' c")
    expect(after("a.c abc", "a.c", "")).toBe(" abc")
    expect(applied("1\n2\n3\n", "3", "4")).toMatchObject({ success: { before: "1\n2\n3\n", line: 3 } })
    expect(applied("one", "one", "two")).toMatchObject({ success: { line: 1 } })
  })

  it("E1 a text that occurs more than once, also overlapping, is refused with the lines", () => {
    expect(after("x\ny\nx\n", "x", "z")).toBe(
      "several: old_text occurs 2 times, at lines 1, 3; take in lines around the one that is meant"
    )
    expect(after("aaa", "aa", "b")).toContain("occurs 2 times, at lines 1, 1;")
    expect(after("x\n".repeat(30), "x", "z")).toContain("occurs 30 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …;")
  })

  it("a text that does not occur is refused; if it does with other white space, the line is said", () => {
    expect(after("a", "b", "c")).toBe("absent: old_text does not occur in the file; read the file again")
    const code = "// first\nif (a) {\n\treturn  1\n}\n"
    expect(after(code, "if (a) {\n  return 1\n}", "x")).toContain("occurs at line 2 with other white space")
    expect(after("a", "   ", "x")).toContain("does not occur")
  })

  it("equal texts are refused", () => {
    expect(after("a", "a", "a")).toContain("same:")
    expect(after("a\r\nb", "a\nb", "a\r\nb")).toContain("same:")
  })

  it("E2 line ends stay: LF means CRLF where the text has it", () => {
    expect(after("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n")).toBe("x\r\ny\r\nc\r\n")
    expect(after("a\r\nb\r\n", "b", "x\ny")).toBe("a\r\nx\r\ny\r\n")
    expect(after("a\r\nb\r\n", "a\r\nb", "x\ny")).toBe("x\r\ny\r\n")
    expect(after("a\nb\n", "a\nb", "x\ny")).toBe("x\ny\n")
    // Of mixed ones, the line ends that are meant are taken first.
    expect(after("a\nb\nc\r\nd\n", "a\nb", "x\ny")).toBe("x\ny\nc\r\nd\n")
    expect(after("a\nb\nc\r\nd\n", "c\nd", "x\ny")).toBe("a\nb\nx\r\ny\n")
  })

  describe("trace", () => {
    const trace = (now: string, oldText: string, newText: string) => Edit.trace(now, { oldText, newText })

    it("the text tells what became of the edit, with the place where there is only one", () => {
      expect(trace("a old b", "old", "new")).toEqual({ _tag: "NeverStarted" })
      const edited = { before: "1\na old b", after: "1\na new b", line: 2 }
      expect(trace("1\na new b", "old", "new")).toEqual({ _tag: "Done", edited })
      expect(trace("a new new b", "old", "new")).toEqual({ _tag: "Done" })
      expect(trace("a  b", "old", "")).toEqual({ _tag: "Done" })
      expect(trace("old new", "old", "new")).toEqual({ _tag: "NeverStarted" })
      expect(trace("x", "ab", "x ab")).toEqual({ _tag: "Unknown" })
      expect(trace("x ab", "ab", "x ab")).toEqual({ _tag: "Unknown" })
      expect(trace("nothing of it", "old", "new")).toEqual({ _tag: "Unknown" })
      expect(trace("a\r\nx\r\ny\r\n", "b", "x\ny")).toMatchObject({ edited: { before: "a\r\nb\r\n", line: 2 } })
    })

    it.each([
      ["a and b", ["a", "b"], 5, 3],
      ["a, LF and CRLF", ["a", "\n", "\r\n"], 3, 2]
    ] as const)("E3 C1 never wrong: every text over %s, every edit", (_, letters, size, part) => {
      let edits = 0
      const wrong: Array<unknown> = []
      const tags = new Set<string>()
      for (const before of texts(letters, size)) {
        for (const oldText of texts(letters, part).slice(1)) {
          for (const newText of texts(letters, part)) {
            const edited = applied(before, oldText, newText)
            if (Result.isFailure(edited)) continue
            edits++
            const now = edited.success.after
            const earlier = trace(before, oldText, newText)
            const later = trace(now, oldText, newText)
            tags.add(`${earlier._tag} ${later._tag}`)
            if (earlier._tag === "Done" || later._tag === "NeverStarted") wrong.push({ before, oldText, newText })
            if (later._tag !== "Done" || later.edited === undefined) continue
            const right = letters.length > 2 || later.edited.before === before
            if (!right || later.edited.after !== now) wrong.push({ before, oldText, newText, later })
          }
        }
      }
      expect(wrong).toEqual([])
      expect(edits).toBeGreaterThan(500)
      expect([...tags]).toContain("NeverStarted Done")
    })

    it("a place is named only where all others are ruled out", () => {
      expect(trace(`yxy${"ax".repeat(400_000)}`, "aa", "x")).toEqual({ _tag: "Done" })
      expect(trace(`yxy${"ax".repeat(2)}`, "aa", "x")).toMatchObject({ edited: { before: "yaayaxax" } })
    })

    it.each([
      ["of one letter", "a".repeat(1_000_000), "ab", "a"],
      ["that could come from everywhere", "ax".repeat(500_000), "aa", "x"],
      ["that is deleted", "b".repeat(1_000_000), "a".repeat(1000), ""]
    ])("a long text %s is traced or given up, and not looked at for ever", (_, now, oldText, newText) => {
      expect(trace(now, oldText, newText)._tag).not.toBe("NeverStarted")
    })
  })
})

describe("Occurrences", () => {
  it("finds what naive code finds, overlapping ones too", () => {
    for (const text of texts(["a", "b"], 7)) {
      for (const part of texts(["a", "b"], 4).slice(1)) {
        expect(Occurrences.find(text, part)).toEqual(naive(text, part))
        expect(Occurrences.find(text, part, 1)).toEqual(naive(text, part).slice(0, 1))
      }
    }
  })

  it("takes linear time for what nearly occurs everywhere", () => {
    // 62 billion steps if it began anew at each place.
    expect(Occurrences.find("a".repeat(1_000_000), `${"a".repeat(250_000)}b${"a".repeat(250_000)}`)).toEqual([])
  })

  it("counts lines from 1", () => {
    expect([0, 1, 2, 3, 4].map((index) => Occurrences.lineAt("a\n\nb", index))).toEqual([1, 1, 2, 3, 3])
  })
})
