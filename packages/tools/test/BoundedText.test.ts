import { describe, expect, it } from "@effect/vitest"
import * as BoundedText from "../src/BoundedText.ts"

const kept = (limit: number, pieces: ReadonlyArray<string>) => pieces.reduce(BoundedText.add(limit), BoundedText.empty)

/** Numbers that are the same each time (a linear congruential generator). */
const numbers = (seed: number) => () => (seed = (seed * 1103515245 + 12345) % 2 ** 31) / 2 ** 31

describe("BoundedText", () => {
  it("B1 keeps all of a text that fits", () => {
    expect(BoundedText.toText(kept(6, ["abc", "", "def"]))).toBe("abcdef")
    expect(kept(6, ["abc", "def"]).cut).toBe(0)
  })

  it("B1 keeps head and tail, and says how much is missing", () => {
    const all = kept(6, ["abcd", "efgh", "ij"])
    expect(all).toEqual({ head: "abc", tail: "hij", cut: 4 })
    expect(BoundedText.toText(all)).toBe("abc\n[… 4 characters left out …]\nhij")
  })

  it.each([0, 1, 2, 5, 6, 7, 8, 9])("B1 B2 with the limit %s, pieces change nothing but at pairs", (limit) => {
    const next = numbers(limit + 1)
    for (let round = 0; round < 300; round++) {
      const all = Array.from({ length: Math.floor(next() * 12) }, () => (next() < 0.5 ? "😀" : "a")).join("")
      const pieces: Array<string> = []
      for (let from = 0; from < all.length;) {
        const size = 1 + Math.floor(next() * 4)
        pieces.push(all.slice(from, from + size)) // may split a pair: the next piece brings its other half
        from += size
      }
      const { cut, head, tail } = kept(limit, pieces)
      expect(head.length + tail.length).toBeLessThanOrEqual(limit)
      expect(head.length + cut + tail.length).toBe(all.length)
      expect(all.startsWith(head) && all.endsWith(tail)).toBe(true)
      expect([head, tail].filter((part) => /\p{Surrogate}/u.test(part))).toEqual([])
      if (all.length <= limit - (limit % 2)) expect(cut).toBe(0)
    }
  })
})
