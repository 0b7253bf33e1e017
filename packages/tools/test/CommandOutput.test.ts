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

  it("O3 no control character but newline and tab is left", () => {
    const all = Array.from({ length: 160 }, (_, code) => `${String.fromCharCode(code)}m`).join("")
    expect(CommandOutput.plain(all).match(/[^\P{Cc}\n\t]/u)).toBe(null)
    expect(CommandOutput.plain("a\n\tb")).toBe("a\n\tb")
  })
})
