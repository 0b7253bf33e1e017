import { describe, expect, it } from "@effect/vitest"
import * as BoundedText from "../src/BoundedText.ts"
import * as CommandOutput from "../src/CommandOutput.ts"

const bytes = (text: string) => new TextEncoder().encode(text)
const shown = (output: CommandOutput.CommandOutput) => BoundedText.toText(output.kept())

const noisy =
  "\u001B[1;38;2;255;100;0mré\u001B[0msumé\u001B]8;;https://x.y\u001B\\läuft\u001B]8;;\u0007 😀\u001B(B\u001BP1$r\u001B\\\u009B31m!\r\n\tend\u0000\u0007"

describe("CommandOutput", () => {
  it("O2 O3 a text is the same wherever its bytes are split", () => {
    const all = bytes(noisy)
    for (let size = 1; size <= all.length; size++) {
      const output = CommandOutput.make(1000)
      const pipe = output.open()
      for (let from = 0; from < all.length; from += size) pipe.add(all.slice(from, from + size))
      pipe.end()
      expect(shown(output)).toBe("résuméläuft 😀!\n\tend")
    }
  })

  it("O2 the two pipes do not break each other's characters", () => {
    const output = CommandOutput.make(1000)
    const [one, two] = [output.open(), output.open()]
    const all = bytes("ä")
    one.add(all.slice(0, 1))
    two.add(bytes("x\u001B[3"))
    one.add(all.slice(1))
    two.add(bytes("1my"))
    expect(shown(output)).toBe("xäy")
  })

  it("O1 what is held back of a sequence without an end is bounded, and comes out as text", () => {
    const output = CommandOutput.make(100_000)
    const pipe = output.open()
    pipe.add(bytes("\u001B]0;"))
    for (let n = 0; n < 100; n++) pipe.add(bytes("a".repeat(100)))
    expect(shown(output).length).toBeGreaterThan(7000)
    pipe.end()
    expect(shown(output).replace(/[^a]/g, "").length).toBe(10_000)
  })

  it("O2 bytes that are no text become U+FFFD, and a character that never ends too", () => {
    const output = CommandOutput.make(100)
    const pipe = output.open()
    pipe.add(Uint8Array.of(0xff, 0x41, 0x00, 0xe2, 0x82))
    pipe.end()
    expect(shown(output)).toBe("\uFFFDA\uFFFD")
  })

  it.each([
    ["one start after the other", (start: string) => start.repeat(500_000)],
    ["starts in text", (start: string) => `${start}text `.repeat(150_000)],
    ["one start of a long text", (start: string) => start + "0".repeat(1_000_000)],
    ["starts within another string", (start: string) => `\u001BP${`${start}[0 `.repeat(200_000)}`],
    ["starts and half an end", (start: string) => `${start}\u001B`.repeat(300_000)]
  ])("O4 1 MB takes one pass, in one piece and in many, and not a million: %s", (_, make) => {
    const codes = ["\u0084", "\u0090", "\u0098", "\u009B", "\u009C", "\u009D", "\u009E", "\u009F"]
    const escapes = ["\u001B", "\u001B[", "\u001BP", "\u001BX", "\u001B]", "\u001B^", "\u001B_", "\u001B ", "\u001B[0 "]
    for (const start of [...codes, ...escapes]) {
      const text = make(start)
      expect(CommandOutput.plain(text)).not.toContain(start.slice(0, 1))
    }
    const all = bytes(make("\u0090"))
    const output = CommandOutput.make(1000)
    const pipe = output.open()
    for (let at = 0; at < all.length; at += 100) pipe.add(all.slice(at, at + 100))
    pipe.end()
    expect(shown(output)).not.toContain("\u0090")
  })

  it("O3 a string ends where another one starts", () => {
    expect(CommandOutput.plain("a\u0090b\u009Dc\u009Cd\u001B]e\u0098f\u0007g")).toBe("abdeg")
  })

  it("O3 no control character but newline and tab is left", () => {
    const all = Array.from({ length: 160 }, (_, code) => `${String.fromCharCode(code)}m`).join("")
    expect(CommandOutput.plain(all).match(/[^\P{Cc}\n\t]/u)).toBe(null)
    expect(CommandOutput.plain("a\n\tb")).toBe("a\n\tb")
  })
})
