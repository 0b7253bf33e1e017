import { describe, expect, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import * as Text from "../src/Text.ts"

const whole = (text: string): boolean => Text.wellFormed(text) === text

describe("Text", () => {
  it("RI-041 a cut at ten characters does not split the emoji that it falls into", () => {
    expect(Text.head("aaaaaaaaa😀bbb", 10)).toBe("aaaaaaaaa")
    expect(Text.head("aaaaaaaa😀bbb", 10)).toBe("aaaaaaaa😀")
    expect(Text.tail("bbb😀aaaaaaaaa", 10)).toBe("aaaaaaaaa")
    expect(Text.tail("bbb😀aaaaaaaa", 10)).toBe("😀aaaaaaaa")
    expect(Text.head("short", 10)).toBe("short")
    expect(Text.tail("short", 10)).toBe("short")
    expect(Text.head("😀", 1)).toBe("")
    expect(Text.tail("😀", 0)).toBe("")
  })

  it("RI-041 lone surrogates become U+FFFD and pairs stay", () => {
    expect(Text.wellFormed("\ud83d")).toBe("\ufffd")
    expect(Text.wellFormed("\ude00\ud83d\ud83d\ude00\ude00")).toBe("\ufffd\ufffd😀\ufffd")
  })

  it.prop(
    "RI-041 no cut of any text is ill-formed or too long",
    [
      Schema.Array(Schema.Literals(["a", "😀", "é", "\n", "👩‍👩‍👧"])),
      Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 40 }))
    ],
    ([parts, max]) => {
      const text = parts.join("")
      for (const cut of [Text.head(text, max), Text.tail(text, max)]) {
        expect(whole(cut)).toBe(true)
        expect(cut.length).toBeLessThanOrEqual(max)
        expect(cut.length).toBeGreaterThanOrEqual(Math.min(text.length, max) - 1)
      }
      const middle = Text.middleOut(text, max)
      expect(whole(middle)).toBe(true)
      if (text.length <= max) expect(middle).toBe(text)
      else {
        const [, head = "", cut, tail = ""] = /^([^]*)\n\[… (\d+) characters cut …\]\n([^]*)$/.exec(middle) ?? []
        expect(text.startsWith(head) && text.endsWith(tail)).toBe(true)
        expect(head.length + Number(cut) + tail.length).toBe(text.length)
        expect(head.length + tail.length).toBeLessThanOrEqual(max)
      }
    }
  )

  it("RI-012 a message loses stack frames and folders, keeps the path of a schema, and is never empty", () => {
    const message = [
      "cannot read /home/ann/secret/notes.txt or C:\\Users\\ann\\key.pem",
      "    at Object.<anonymous> (/srv/app/index.js:10:5)",
      "    at node:internal/main:1:1",
      "at async run (file:///srv/app/run.ts:1:2)",
      'Expected string\n  at ["a"][0]',
      "see file:///srv/app/readme.md"
    ].join("\n")
    expect(Text.safeMessage(message, 1000)).toBe(
      'cannot read notes.txt or key.pem\nExpected string\n  at ["a"][0]\nsee readme.md'
    )
    expect(Text.safeMessage("see https://e.com/a/b and/or/nor", 100)).toBe("see https://e.com/a/b and/or/nor")
    expect(Text.safeMessage(" \n    at f (/a/b.js:1:1)", 1000)).toBe("no message")
    expect(Text.safeMessage("\ud83d".repeat(50), 10)).toBe("\ufffd".repeat(10))
  })
})
